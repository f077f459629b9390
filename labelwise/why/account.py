"""The account of a text: rows, spans, and their replacements."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from labelwise.annotations import Reason
from labelwise.corpus.docbin_reader import StoredDoc

Row = Mapping[str, Any]  # of a table


class Account(NamedTuple):
    """The outcome of a text, with all rows and spans.

    text (Mapping | None): row in the table of texts; None for rows without a usable text.
    shown (str): known words; may be empty.
    doc (StoredDoc | None): None if the text isn't in the corpus.
    wanted_rows, wanted_spans (Collection[int]): indices of the requested ones.
    """

    text: Row | None
    shown: str
    doc: StoredDoc | None
    rows: Sequence[Row]
    spans: Sequence[Row]
    wanted_rows: Collection[int]
    wanted_spans: Collection[int]

    @property
    def key(self) -> str:
        """The key of the text, if any."""
        return self.text["text"] if self.text else ""

    def kept_row(self, row: Row) -> Row | None:
        """Return the row that replaces a row."""
        return None if row["kept_row"] is None or not self.text else self.rows[row["kept_row"]]

    def review_of(self, span: Row) -> Row | None:
        """Return the review that overruled a span: the latest by time, if all have a time, else the last."""
        if span["reason"] != Reason.OUTVOTED:
            return None
        reviews = [row for row in self.rows if row["review"] and span["label"] in row["covered"]]
        timed = all(row["when"] is not None for row in reviews)
        return max(reviews, key=lambda row: (timed and row["when"], row["row"]), default=None)

    def row_of(self, span: Row) -> Row | None:
        """Return a span's row."""
        return next((row for row in self.rows if row["row"] == span["row"]), None)

    def kept_span(self, span: Row) -> Row | None:
        """Return the span, or else the row, that replaces a span."""
        if span["kept_span"] is not None:
            return self.spans[span["kept_span"]]
        row = self.row_of(span)
        if not row or not self.text:
            return None
        if span["reason"] == Reason.SUPERSEDED and span["label"] in (row["superseded"] or ()):
            number = row["superseded_by"][row["superseded"].index(span["label"])]
            return None if number is None else self.rows[number]
        return None


def without_names(account: Account) -> Account:
    """Return the account without the annotators' names."""
    return account._replace(rows=[{**row, "who": None} for row in account.rows])

"""The books of a merge: everything read is in one bucket, or the command fails."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from labelwise.index import Problem

PROBLEMS = ("bad JSON", "no text", "malformed")


class Books(msgspec.Struct):
    """What happened to everything that was read, in counts.

    rows (dict): rows of the data sets by bucket; they add up to `rows_read`.
    spans (dict): spans by bucket; they add up to `spans_read`.
    texts (dict): distinct texts by split, or "nothing stands", or "not covered" (policy `drop`).
    words (dict): tokens by split.
    labels (dict): for each label: the accepted spans ("gold"), what became of them, the rejected spans, and the texts
        on which the label is complete, partial or none.
    datasets (dict): rows read of each data set.
    stored_hash_differs (int): rows whose stored `_input_hash` isn't that of their text.
    """

    rows_read: int = 0
    spans_read: int = 0
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    spans: Counter[str] = msgspec.field(default_factory=Counter)
    texts: Counter[str] = msgspec.field(default_factory=Counter)
    words: Counter[str] = msgspec.field(default_factory=Counter)
    labels: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    datasets: Counter[str] = msgspec.field(default_factory=Counter)
    stored_hash_differs: int = 0

    @classmethod
    def of_index(cls, rows: Counter[str], problems: Sequence[Problem], labels: Sequence[str]) -> "Books":
        """Start the books with what indexing has read.

        rows (Counter[str]): indexed rows of each data set.
        problems (Sequence[Problem]): the rows that couldn't be indexed.
        """
        books = cls(rows_read=rows.total() + len(problems), labels={label: Counter() for label in labels})
        books.rows.update(problem.reason for problem in problems)
        books.datasets.update(rows)
        books.datasets.update(problem.dataset for problem in problems)
        return books

    def add(self, other: "Books") -> None:
        """Add another's counts to these."""
        self.rows_read += other.rows_read
        self.spans_read += other.spans_read
        self.stored_hash_differs += other.stored_hash_differs
        for mine, others in (
            (self.rows, other.rows),
            (self.spans, other.spans),
            (self.texts, other.texts),
            (self.words, other.words),
            (self.datasets, other.datasets),
        ):
            mine.update(others)
        for label, counts in other.labels.items():
            self.labels.setdefault(label, Counter()).update(counts)

    def check(self) -> None:
        """Check that everything read is in one bucket.

        RAISES (RuntimeError): it isn't, which is an error of this program.
        """
        for what, read, buckets in (("rows", self.rows_read, self.rows), ("spans", self.spans_read, self.spans)):
            if read != buckets.total():
                raise RuntimeError(
                    f"{read} {what} read, but {buckets.total()} counted: {dict(buckets)}; please report this"
                )

    def problems(self) -> int:
        """Count the rows that couldn't be read."""
        return sum(self.rows[reason] for reason in PROBLEMS)

    def sorted(self) -> "Books":
        """Copy with all buckets in alphabetical order, so that equal books are written alike."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        fields |= {name: _sorted(fields[name]) for name in ("rows", "spans", "texts", "words")}
        return Books(**fields | {"labels": {label: _sorted(counts) for label, counts in self.labels.items()}})


def _sorted(counts: Counter[str]) -> Counter[str]:
    return Counter(dict(sorted(counts.items())))

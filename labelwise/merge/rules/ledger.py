"""The ledger of a merge: everything read has one counted outcome, or the command fails."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

PROBLEM_ROWS = ("bad JSON", "no text", "malformed", "miscounted", "other format")
PROBLEM_SPANS = ("invalid", "undeclared label")
# Parts of metrics/merge.json, which are there even if they are empty.
COUNTS = (
    *("rows_read", "spans_read", "rows", "spans", "texts", "words", "labels", "datasets", "partly", "undeclared"),
    *("marked", "lost_spans", "agreement", "gold", "complete", "partial", "seconds", "near_duplicates"),
    *("other_split", "replaced", "inferred", "renamed", "trimmed", "without_split_by", "stored_hash_differs"),
)
TABLES = ("labels", "lost_spans", "agreement", "gold", "complete", "partial")
NUMBERS = ("rows_read", "spans_read", "without_split_by", "stored_hash_differs")


class Problem(NamedTuple):
    """A row, or a span of it, that can't be used.

    file (str): the file of the data set that it is in.
    reason (str): the outcome that it is counted as; details follow after a colon.
    """

    dataset: str
    file: str
    line: int
    reason: str


def outcome_of(reason: str) -> str:
    """Return the outcome that a problem's reason begins with."""
    return reason.partition(":")[0]


def problem_line(problem: Problem) -> bytes:
    """Make a line of JSON: data set, file, line and reason."""
    return msgspec.json.encode(problem._asdict()) + b"\n"


class Ledger(Counter[tuple[str, ...]]):
    """Counts by path, such as ledger["rows", "merged"] and ledger["labels", "PERSON", "gold"].

    rows_read, spans_read: what the readers saw; rows OUTCOME, and spans OUTCOME, add up to them.
    texts SPLIT: distinct texts, also those of "no usable answer", or "not covered" (policy `drop`).
    words SPLIT: tokens.
    labels LABEL: the accepted spans ("gold"), what became of them, the rejected spans, and the texts on which the label
        is complete, partial or none. "learnt as well" isn't an outcome: so many of the spans that aren't entities
        overlap other labels alone; see `merge_counts.split_gold`.
    datasets NAME: rows read.
    partly SPLIT: texts that aren't complete for all labels.
    undeclared "DATA SET: LABEL": spans whose label the data set doesn't declare.
    marked LABEL: texts that have an accepted span of it.
    lost_spans REASON "LOST, KEPT": spans, by the label that lost, and the one that it lost to.
    agreement LABEL: the "texts" that were annotated twice, and over all pairs of versions the spans in "both", and the
        "spans" of the one plus those of the other; see `agreement`.
    pairs LABEL ONE OTHER: the same for two annotators, and what `agreement.kappa` takes; not among the metrics.
    gold SPLIT LABEL: accepted spans.
    complete, partial NAME LABEL: texts that the answers of a data set cover, as a whole or in part.
    seconds NAME: the median time between successive answers of an annotator, where answers have times.
    near_duplicates "SPLIT, SPLIT": pairs of texts that are nearly equal.
    other_split [NAME, OTHER], as JSON: rows left out, as the other data set declares the split of their texts.
    replaced "NAME by OTHER": a person's answers, text by text and label by label, that this person's answer in another
        data set replaces.
    inferred NAME: labels that were used, of data sets whose labels nobody has listed.
    renamed "DATA SET: OLD to NEW": spans.
    trimmed NAME: usable spans that had white space at their edges.
    without_split_by: texts that have no value for `split_by`.
    stored_hash_differs: rows whose stored `_input_hash` isn't that of their text.

    A count of zero says something, such as that a data set has no rows: nothing else has one.

    Each can be read as an attribute, too: `ledger.rows_read` is a number, `ledger.rows` a Counter, and `ledger.labels`
    a dict of Counters.
    """

    def __getattr__(self, name: str) -> Any:
        """Return the number, the Counter or the Counters of a part; see the list above."""
        if name in NUMBERS:
            return self[name,]
        if name in TABLES:
            return self.tables(name)
        if name in COUNTS:
            return self.under(name)
        raise AttributeError(name)

    def under(self, *path: str) -> Counter[str]:
        """Return the counts right below a path, by the last name, in alphabetical order."""
        depth = len(path)
        return Counter({key[-1]: n for key, n in sorted(self.items()) if len(key) == depth + 1 and key[:depth] == path})

    def tables(self, path: str) -> dict[str, Counter[str]]:
        """Return the counts two below a path, by the name in between, as these were first counted."""
        found: dict[str, Counter[str]] = {}
        for key, n in self.items():
            if len(key) == 3 and key[0] == path:
                found.setdefault(key[1], Counter())[key[2]] = n
        return found

    def count(self, path: tuple[str, ...], outcomes: Iterable[str]) -> None:
        """Count outcomes below a path."""
        for outcome, n in Counter(outcomes).items():
            self[(*path, outcome)] += n

    def check(self) -> None:
        """Check that everything read has one outcome.

        RAISES (RuntimeError): it hasn't, which is a bug in this program.
        """
        for what in ("rows", "spans"):
            read, outcomes = self[f"{what}_read",], self.under(what)
            if read != outcomes.total():
                raise RuntimeError(
                    f"{read} {what} read, but {outcomes.total()} counted: {dict(outcomes)}; please report this"
                )

    def problems(self) -> int:
        """Count the rows and spans that couldn't be used."""
        return sum(self["rows", reason] for reason in PROBLEM_ROWS) + sum(
            self["spans", reason] for reason in PROBLEM_SPANS
        )

    def nested(self) -> dict[str, Any]:
        """Return nested dicts in alphabetical order, so that equal ledgers are written alike; labels as declared."""
        content: dict[str, Any] = {name: 0 if name in NUMBERS else {} for name in COUNTS}
        content["labels"] = {label: {} for label in self.labels}  # as declared
        for (*path, name), n in sorted((key, n) for key, n in self.items() if n or key[0] != "labels"):
            place = content
            for part in path:
                place = place.setdefault(part, {})
            place[name] = n
        return content

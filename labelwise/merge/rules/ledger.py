"""The ledger of a merge: everything read has one counted outcome, or the command fails."""

from collections import Counter
from typing import NamedTuple

import msgspec

PROBLEM_ROWS = ("bad JSON", "no text", "malformed", "link outside", "miscounted", "other format")
PROBLEM_SPANS = ("invalid", "undeclared label")


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


class Ledger(msgspec.Struct):
    """The outcomes of all rows and spans, in counts.

    rows (dict): rows of the data sets by outcome; they add up to `rows_read`.
    spans (dict): spans by outcome; they add up to `spans_read`.
    texts (dict): distinct texts by split, or "no usable answer", or "not covered" (policy `drop`).
    words (dict): tokens by split.
    labels (dict): for each label: the accepted spans ("gold"), what became of them, the rejected spans, and the texts
        on which the label is complete, partial or none. "learnt as well" isn't an outcome: so many of the spans that
        aren't entities overlap other labels alone; see `merge_counts.split_gold`.
    datasets (dict): rows read of each data set.
    partly (dict): by split, the texts that aren't complete for all labels.
    undeclared (dict): spans by "DATA SET: LABEL", where the data set doesn't declare the label.
    marked (dict): by label, the texts that have an accepted span of it.
    lost_spans (dict): for each reason, spans by "LOST, KEPT": the label that lost, and the one that it lost to.
    agreement (dict): for each label that was annotated twice, the "texts", and over all pairs of versions the spans in
        "both", and the "spans" of the one plus those of the other; see `agreement`.
    pairs (dict): the same by label and two annotators, as JSON, and what `agreement.kappa` takes.
    gold (dict): by split, accepted spans of each label.
    complete, partial (dict): by data set, the texts that its answers cover for each label, as a whole or in part.
    seconds (dict): by data set, the median time between successive answers of an annotator, where answers have times.
    near_duplicates (dict): pairs of texts that are nearly equal, by the two splits that they are in.
    other_split (dict): rows left out, by "DATA SET, OTHER" as JSON: the other declares the split of their texts.
    inferred (dict): of data sets whose labels nobody has listed, how many labels were used.
    renamed (dict): spans by "DATA SET: OLD to NEW", the names of their label.
    trimmed (dict): by data set, usable spans that had white space at their edges.
    without_split_by (int): texts that have no value for `split_by`.
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
    partly: Counter[str] = msgspec.field(default_factory=Counter)
    undeclared: Counter[str] = msgspec.field(default_factory=Counter)
    marked: Counter[str] = msgspec.field(default_factory=Counter)
    lost_spans: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    agreement: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    pairs: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    gold: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    complete: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    partial: dict[str, Counter[str]] = msgspec.field(default_factory=dict)
    seconds: Counter[str] = msgspec.field(default_factory=Counter)
    near_duplicates: Counter[str] = msgspec.field(default_factory=Counter)
    other_split: Counter[str] = msgspec.field(default_factory=Counter)
    inferred: Counter[str] = msgspec.field(default_factory=Counter)
    renamed: Counter[str] = msgspec.field(default_factory=Counter)
    trimmed: Counter[str] = msgspec.field(default_factory=Counter)
    without_split_by: int = 0
    stored_hash_differs: int = 0

    def add(self, other: "Ledger") -> None:
        """Add another's counts to these."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, int):
                setattr(self, name, mine + theirs)
            elif isinstance(mine, Counter):
                mine.update(theirs)
            else:
                for row, counts in theirs.items():
                    mine.setdefault(row, Counter()).update(counts)

    def check(self) -> None:
        """Check that everything read has one outcome.

        RAISES (RuntimeError): it hasn't, which is a bug in this program.
        """
        for what, read, outcomes in (("rows", self.rows_read, self.rows), ("spans", self.spans_read, self.spans)):
            if read != outcomes.total():
                raise RuntimeError(
                    f"{read} {what} read, but {outcomes.total()} counted: {dict(outcomes)}; please report this"
                )

    def problems(self) -> int:
        """Count the rows and spans that couldn't be used."""
        return sum(self.rows[reason] for reason in PROBLEM_ROWS) + sum(self.spans[reason] for reason in PROBLEM_SPANS)

    def sorted(self) -> "Ledger":
        """Copy without counts of zero, in alphabetical order, so that equal ledgers are written alike."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        counters = {name: counts for name, counts in fields.items() if isinstance(counts, Counter)}
        fields |= {name: _sorted(counts) for name, counts in counters.items() if name not in ("datasets", "renamed")}
        fields["labels"] = {label: _sorted(counts) for label, counts in self.labels.items()}
        fields["lost_spans"] = {reason: _sorted(counts) for reason, counts in sorted(self.lost_spans.items())}
        for name in ("gold", "complete", "partial"):
            fields[name] = {key: _sorted(counts) for key, counts in sorted(getattr(self, name).items())}
        # Annotators may agree on no span, which is a finding.
        fields["agreement"] = {label: Counter(dict(sorted(n.items()))) for label, n in sorted(self.agreement.items())}
        return Ledger(**fields)


def _sorted(counts: Counter[str]) -> Counter[str]:
    return Counter({name: n for name, n in sorted(counts.items()) if n})

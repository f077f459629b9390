"""The ledger of a merge: everything read has one counted outcome, or the command fails."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from labelwise.base.text import counted

PROBLEM_ROWS = ("bad JSON", "no text", "malformed", "miscounted", "other format")
PROBLEM_SPANS = ("invalid", "undeclared label")
NOT_A_SPAN = "not a span"  # the outcome of an annotation of another kind, such as a relation
SPAN_OUTCOMES = (*PROBLEM_SPANS, NOT_A_SPAN)  # of problems that aren't a whole row's

Counts = Counter[str]
Table = dict[str, Counter[str]]


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


def _counts() -> Any:
    return msgspec.field(default_factory=Counter)


def _table() -> Any:
    return msgspec.field(default_factory=lambda: defaultdict(Counter))


class Ledger(msgspec.Struct, kw_only=True):
    """The counts of a merge, or of a part of one; metrics/merge.json has them.

    rows_read, spans_read (int): what the readers saw; `rows` and `spans`, by outcome, add up to them.
    texts (Counter): by split, or by why they are in none: "no usable answer", "not covered" (policy `drop`).
    words (Counter): tokens, by split.
    labels (Table): of each label the accepted spans ("gold"), what became of them, the rejected spans, and the texts
        on which it is complete, partial or none. "learnt as well" isn't an outcome; see `split_gold`.
    datasets (Counter): rows read, by data set.
    partly (Counter): texts that aren't complete for all labels, by split.
    undeclared (Counter): spans whose label the data set doesn't declare, by "DATA SET: LABEL".
    lost_spans (Table): by reason, and by the label that lost and the one that it lost to, "LOST, KEPT".
    agreement (Table): of each label the "texts" that were annotated twice, and over all pairs of versions the spans in
        "both", and the "spans" of the one plus those of the other; see `merge.rules.agreement`.
    gold (Table): accepted spans, by split and label.
    near_duplicates (Counter): pairs of texts that are nearly equal, by the two splits that they are in.
    other_split (Counter): rows left out, by JSON of their data set and of the one that declares another split.
    replaced (Counter): answers that the same person's answer in another data set replaces, by "NAME by OTHER".
    out_of_order (Counter): questions on whose latest answer times and order of files disagree, by data set.
    renamed (Counter): spans, by "DATA SET: OLD to NEW".
    unknown_annotators (Counter): names in the policy `annotators` that no answer has.
    without_split_by (int): texts that have no value for `split_by`.
    pairs (dict): of each label and two annotators, what `agreement` has; not in the metrics,
        since it has names.
    digest (str): of the corpus.
    compared (bool): nearly equal texts were looked for.
    """

    rows_read: int = 0
    spans_read: int = 0
    rows: Counts = _counts()
    spans: Counts = _counts()
    texts: Counts = _counts()
    words: Counts = _counts()
    labels: Table = _table()
    datasets: Counts = _counts()
    partly: Counts = _counts()
    undeclared: Counts = _counts()
    lost_spans: Table = _table()
    agreement: Table = _table()
    gold: Table = _table()
    near_duplicates: Counts = _counts()
    other_split: Counts = _counts()
    replaced: Counts = _counts()
    out_of_order: Counts = _counts()
    renamed: Counts = _counts()
    unknown_annotators: Counts = _counts()
    without_split_by: int = 0
    pairs: dict[tuple[str, str, str], Counts] = msgspec.field(default_factory=lambda: defaultdict(Counter))
    digest: str = ""
    compared: bool = True

    @property
    def problems(self) -> int:
        """The rows and spans that couldn't be used."""
        return sum(self.rows[name] for name in PROBLEM_ROWS) + sum(self.spans[name] for name in PROBLEM_SPANS)

    def add(self, other: "Ledger") -> None:
        """Add the counts of another part of the merge."""
        for name in self.__struct_fields__[:-2]:
            own, more = getattr(self, name), getattr(other, name)
            if isinstance(own, int):
                setattr(self, name, own + more)
            elif isinstance(own, Counter):
                own.update(more)
            else:
                for key, counts in more.items():
                    own[key].update(counts)

    def check(self) -> None:
        """Check that everything read has one outcome.

        RAISES (RuntimeError): it hasn't, which is a bug in this program.
        """
        for what, read, outcomes in (("rows", self.rows_read, self.rows), ("spans", self.spans_read, self.spans)):
            if read != outcomes.total():
                raise RuntimeError(
                    f"{read} {what} read, but {outcomes.total()} counted: {dict(outcomes)}; please report this"
                )

    def nested(self) -> dict[str, Any]:
        """Return the counts as dicts in alphabetical order, but for labels, so that equal ledgers are written alike."""
        content = {name: _sorted(getattr(self, name)) for name in self.__struct_fields__[:-3]}
        content["labels"] = {label: _sorted(+counts) for label, counts in self.labels.items()}
        content["pairs"] = {}
        for (label, one, other), counts in sorted(self.pairs.items()):
            content["pairs"].setdefault(label, {}).setdefault(one, {})[other] = _sorted(counts)
        return content

    def metrics(self) -> dict[str, Any]:
        """Return what metrics/merge.json has: no names of annotators; F1 between them beside the counts."""
        content = self.nested() | {"digest": self.digest, "problems": self.problems, "compared": self.compared}
        del content["pairs"]
        for row in content["agreement"].values():
            row["f"] = pairwise_f(row["both"], row["spans"])
        return content


def _sorted(value: Any) -> Any:
    return {key: _sorted(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def pairwise_f(both: int, spans: int) -> float | None:
    """Compute F1 between two annotators, whichever of them is taken as gold; None if neither marked anything.

    both (int): spans that both marked.
    spans (int): those of the one plus those of the other.
    The formula: Hripcsak and Rothschild (2005), "Agreement, the F-measure, and reliability in information retrieval".
    """
    return 2 * both / spans if spans else None


def split_gold(counts: Mapping[str, int]) -> dict[str, int]:
    """Split a label's accepted spans, by its counts, into what a pipeline can learn of them and what it can't.

    An "entity" is flat. Another span is "learnt as well" by a head for its label, where it overlaps other labels alone.
    What is "lost" has no token boundaries, or overlaps a longer span of its label; nothing learns it.
    """
    entities, more = counts.get("entity", 0), counts.get("learnt as well", 0)
    return {"entity": entities, "learnt as well": more, "lost": counts.get("gold", 0) - entities - more}


def describe_gold(labels: Mapping[str, Mapping[str, int]]) -> str:
    """Say what can be learnt of all accepted spans, given the counts of each label; nothing if all are entities."""
    total: Counter[str] = Counter()
    for counts in labels.values():
        total.update(split_gold(counts))
    if total["entity"] == total.total():
        return ""
    return (
        f"{counted(total.total(), 'accepted span')}: "
        f"{counted(total['entity'], 'flat entity', 'flat entities')}; {total['learnt as well']:,} "
        f'learnt as well, in doc.spans["labels"] (recognizer: per-label); {total["lost"]:,} lost'
    )

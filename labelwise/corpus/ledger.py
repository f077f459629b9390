"""The ledger of a merge: counts of its account. metrics/merge.json has them, and every later stage reads them there."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS
from labelwise.base.text import counted

Counts = Counter[str]
Table = dict[str, Counter[str]]
NOT_METRICS = ("pairs", "doubts")


def _counts() -> Any:
    return msgspec.field(default_factory=Counter)


def _table() -> Any:
    return msgspec.field(default_factory=lambda: defaultdict(Counter))


class Doubt(NamedTuple):
    """A reason to think that data was misread.

    what (str): what speaks for it.
    remedy (str): what to do, before the lines to paste.
    lines (Sequence[str]): these lines.
    sample (Sequence[str]): places, with the words at the offsets in brackets.
    stops (bool): nothing may go on.
    """

    what: str
    remedy: str = ""
    lines: Sequence[str] = ()
    sample: Sequence[str] = ()
    stops: bool = False


class Ledger(msgspec.Struct, kw_only=True):
    """The counts of a merge; each is a query of its tables, see `merge.ledger`.

    rows_read, spans_read (int): what was read; `rows` and `spans`, by outcome, add up to them.
    texts (Counter): by split, or by why they are in none: "no usable answer", "not covered" (policy `drop`).
    words (Counter): tokens, by split.
    labels (Table): of each label the accepted spans ("gold"), what became of them, the rejected spans, and the texts
        on which it is complete, partial or none. "learnt as well" isn't an outcome; see `split_gold`.
    datasets (Table): of each data set its rows and texts; the rows that accept, reject, ignore, or are superseded; its
        spans, and of these the entities, whoever marked them first, and those that lost, so that nothing learns them.
    same_texts (int): texts joined with another one, from which they differ only in white space or Unicode composition.
    partly (Counter): texts that aren't complete for all labels, by split.
    complete (Table): texts that are complete for a label, by split and label.
    undeclared (Table): spans whose label the data set doesn't declare, by data set and label.
    lost_spans (dict): by reason, by the label that lost, and by the one that it lost to; empty if there is none.
    agreement (Table): of each label the "texts" that were annotated twice, over all pairs of versions the spans in
        "both", and the "spans" of the one plus those of the other.
    gold (Table): accepted spans, by split and label.
    near_duplicates (Table): pairs of texts that are nearly equal, by the splits that they are in.
    other_split (Table): rows left out, by their data set and the one that declares another split.
    replaced (Table): answers that the same person's answer in another data set replaces, by both data sets.
    out_of_order (Counter): questions on whose latest answer times and order of files disagree, by data set.
    renamed (dict): spans, by data set, old and new label.
    offsets (dict): how doccano's are counted, by data set, where that isn't declared, and makes a difference.
    unknown_annotators (list): names in the policy `annotators` that no answer has.
    without_split_by (int): texts that have no value for `split_by`.
    compared (bool): nearly equal texts were looked for.
    digest (str): of the corpus.
    problems (int): the rows and spans that couldn't be used.
    pairs (dict): of each label and two annotators, what `agreement` has; not in the metrics, since it has names.
    doubts (list): those about the data; not in the metrics, either.
    """

    rows_read: int = 0
    spans_read: int = 0
    rows: Counts = _counts()
    spans: Counts = _counts()
    texts: Counts = _counts()
    words: Counts = _counts()
    labels: Table = _table()
    datasets: Table = _table()
    same_texts: int = 0
    partly: Counts = _counts()
    complete: Table = _table()
    undeclared: Table = _table()
    lost_spans: dict[str, Table] = {}
    agreement: Table = _table()
    gold: Table = _table()
    near_duplicates: Table = _table()
    other_split: Table = _table()
    replaced: Table = _table()
    out_of_order: Counts = _counts()
    renamed: dict[str, Table] = {}
    offsets: dict[str, str] = {}
    unknown_annotators: list[str] = []
    without_split_by: int = 0
    compared: bool = True
    digest: str = ""
    problems: int = 0
    pairs: dict[tuple[str, str, str], Counts] = {}
    doubts: list[Doubt] = []

    def metrics(self) -> dict[str, Any]:
        """Return what metrics/merge.json has: in alphabetical order, but for labels, so that equal ledgers look so."""
        content = {name: _sorted(getattr(self, name)) for name in self.__struct_fields__ if name not in NOT_METRICS}
        content["labels"] = {label: _sorted(+counts) for label, counts in self.labels.items()}
        for row in content["agreement"].values():
            row["f"] = pairwise_f(row["both"], row["spans"])
        return content


def count_problems(rows: Mapping[str, int], spans: Mapping[str, int]) -> int:
    """Count the rows and spans that couldn't be used, by their outcomes."""
    return sum(rows.get(name, 0) for name in ROW_PROBLEMS) + sum(spans.get(name, 0) for name in SPAN_PROBLEMS)


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
    """Count what can be learnt of all accepted spans, given the counts of each label; nothing if all are entities."""
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

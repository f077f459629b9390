"""The counts of a merge, in metrics/merge.json, for all later stages."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS
from labelwise.base.text import counted, counter_field
from labelwise.corpus.import_checks import ImportCheck

Counts = Counter[str]
Table = dict[str, Counter[str]]
DIGEST = ".sha256"  # suffix of the file of the corpus's digest, beside the metrics
NOT_METRICS = ("pairs", "checks")
ANSWERS = {"accepted": "accept", "rejected": "reject", "ignored": "ignore"}  # of a dataset's rows


def _table() -> Any:
    return msgspec.field(default_factory=lambda: defaultdict(Counter))


class Ledger(msgspec.Struct, kw_only=True):
    """Counts of a merge by dataset, label and outcome: queries of its tables (`merge.table_counts`).

    rows, spans (Counter): rows and spans read, by outcome.
    texts (Counter): by split, or by the reason to leave them out: "no usable answer", or "not fully annotated" (policy
        `drop`).
    words (Counter): tokens, by split.
    labels (Table): by label, accepted spans ("gold"), their outcomes, rejected spans, and texts that are complete,
        partial or none. "overlapping" isn't an outcome; see `split_gold`.
    datasets (Table): by dataset, rows and texts; rows accepted, rejected, ignored, superseded, and otherwise unused;
        spans, entities (also if other datasets have them), and dropped spans.
    same_texts (int): texts joined with another, which differ only in white space or Unicode composition.
    partly (Counter): texts that aren't complete for all labels, by split.
    complete (Table): texts that are complete for a label, by split and label.
    dropped_spans (dict): by reason, label of the dropped span, and label of the kept one ("" without one).
    agreement (Table): by label, "texts" annotated twice; over all pairs of versions, spans in "both", and all "spans".
    gold (Table): accepted spans, by split and label.
    near_duplicates (Table): pairs of nearly equal texts, by both splits.
    renamed (dict): spans, by dataset, old and new label.
    pairs (dict): `agreement` by two annotators, over all labels; not in the metrics, because it has names.
    checks (list): findings of the import checks; not in the metrics.
    """

    rows: Counts = counter_field()
    spans: Counts = counter_field()
    texts: Counts = counter_field()
    words: Counts = counter_field()
    labels: Table = _table()
    datasets: Table = _table()
    same_texts: int = 0
    partly: Counts = counter_field()
    complete: Table = _table()
    dropped_spans: dict[str, Table] = {}
    agreement: Table = _table()
    gold: Table = _table()
    near_duplicates: Table = _table()
    renamed: dict[str, Table] = {}
    pairs: dict[tuple[str, str], Counts] = {}
    checks: list[ImportCheck] = []

    @property
    def problems(self) -> int:
        """Count unusable rows and spans."""
        return sum(self.rows[reason] for reason in ROW_PROBLEMS) + sum(self.spans[reason] for reason in SPAN_PROBLEMS)

    def metrics(self) -> dict[str, Any]:
        """Return metrics/merge.json, keys sorted except labels, so equal counts give equal bytes."""
        content: dict[str, Any] = {"rows_read": self.rows.total(), "spans_read": self.spans.total()}
        content |= {name: _sorted(getattr(self, name)) for name in self.__struct_fields__ if name not in NOT_METRICS}
        content["problems"] = self.problems
        content["labels"] = {label: _sorted(+counts) for label, counts in self.labels.items()}
        for row in content["agreement"].values():
            row["f"] = pairwise_f(row["both"], row["spans"])
        return content


def _sorted(value: Any) -> Any:
    return {key: _sorted(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def pairwise_f(both: int, spans: int) -> float | None:
    """Compute F1 between two annotators, which is symmetric; None without spans.

    both (int): spans that both annotated.
    spans (int): sum of their spans.

    Hripcsak and Rothschild (2005), "Agreement, the F-measure, and reliability in information retrieval".
    """
    return 2 * both / spans if spans else None


def split_gold(counts: Mapping[str, int]) -> dict[str, int]:
    """Split a label's accepted spans, by its counts, into learnable and dropped ones.

    An "entity" is flat. An "overlapping" span overlaps only other labels: a per-label recognizer learns it. A "dropped"
    span is misaligned, or overlaps a longer span of its label: no recognizer learns it.
    """
    entities, overlapping = counts.get("entity", 0), counts.get("overlapping", 0)
    return {"entity": entities, "overlapping": overlapping, "dropped": counts.get("gold", 0) - entities - overlapping}


def describe_gold(labels: Mapping[str, Mapping[str, int]]) -> str:
    """Describe how many accepted spans can be learned, by label counts; empty if all are entities."""
    total: Counter[str] = Counter()
    for counts in labels.values():
        total.update(split_gold(counts))
    if total["entity"] == total.total():
        return ""
    parts = [counted(total["entity"], "entity", "entities")]
    if total["overlapping"]:
        parts.append(f"{total['overlapping']:,} overlapping another label (only per-label pipelines learn these)")
    parts.append(f"{total['dropped']:,} dropped")
    return f"{counted(total.total(), 'accepted span')}: {', '.join(parts)}"

"""What the tables of a merge have of each data set, as doubts about it ask: its spans and rows, and samples of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import ROW_PROBLEMS, Reason
from labelwise.corpus import queries
from labelwise.corpus.tables import Group, read_groups

SAMPLE = 3
UNUSED = (Reason.NO_BOUNDARY, Reason.INVALID, Reason.UNDECLARED)
SUPERSEDED = (Reason.SUPERSEDED, Reason.IN_SUPERSEDED)


class Figures:
    """What the tables have of all data sets.

    spans (Counter): by data set, label, and what became of them; of an equal span, what became of the first.
    rows (Counter): by data set, and what became of them.
    replaced (Counter): accepted spans that are superseded, by data set and label.
    passes (Counter): by data set, superseded "rows" with accepted spans; those "disjoint", as the labels of their spans
        are none of those of the row that counts; and those that are "alone" with spans of a label; with their "spans".
    copies (Counter): rows that repeat an answer, by their data set and that of the answer.
    samples (dict): the first rows of the tables, by data set and what became of them.
    """

    def __init__(self, corpus: Path) -> None:
        """Count what is in the tables of a corpus."""
        self.spans: Counter[tuple[str, str, str]] = Counter()
        self.rows: Counter[tuple[str, str]] = Counter()
        self.replaced: Counter[tuple[str, str]] = Counter()
        self.passes: Counter[tuple[str, str]] = Counter()
        self.copies: Counter[tuple[str, str]] = Counter()
        self.samples: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for group in read_groups(corpus, merged=False):
            self._add(group)

    def _add(self, group: Group) -> None:
        rows = queries.of_sources(group.rows)
        found = queries.count(rows, "dataset", "reason")
        self.rows.update(found)
        self._sample(group, rows, found, ROW_PROBLEMS)
        reasons = pc.take(group.spans["reason"], queries.firsts(group.spans))
        spans = group.spans.set_column(group.spans.schema.get_field_index("reason"), "reason", reasons)
        self.spans.update(queries.count(spans, "dataset", "label", "reason"))
        self._sample(group, spans, queries.count(spans, "dataset", "reason"), UNUSED)
        if any(reason == Reason.SAME_ANSWER for _, reason in found):
            by = pc.take(group.rows["dataset"], queries.winners(group.rows, "row"))
            copies = queries.where(group.rows.append_column("by", by), "reason", [Reason.SAME_ANSWER])
            self.copies.update(queries.count(copies, "dataset", "by"))
        self._compare_passes(group)

    def _sample(self, group: Group, table: pa.Table, found: Mapping[Any, int], reasons: Sequence[str]) -> None:
        """Keep the first rows of a table for each of some reasons."""
        for dataset, reason in found:
            kept = self.samples.setdefault((dataset, reason), []) if reason in reasons else None
            if kept is not None and len(kept) < SAMPLE:
                chosen = table.filter(pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["reason"], reason)))
                kept += _with_split(group, chosen.slice(0, SAMPLE - len(kept)))

    def _compare_passes(self, group: Group) -> None:
        """Compare the rows that are superseded with those that count instead, by the labels of their spans."""
        lost = queries.where(group.spans, "reason", SUPERSEDED)
        lost = lost.filter(pc.and_(pc.equal(lost["verdict"], "accept"), pc.is_valid(lost["row"])))
        if not len(lost):
            return
        self.replaced.update(queries.count(lost, "dataset", "label"))
        texts = pc.unique(lost["text"])
        rows = {(row["text"], row["row"]): row for row in _of(group.rows, texts)}
        marked: dict[tuple[str, int], Counter[str]] = {}
        for span in _of(group.spans.select(["text", "row", "label", "verdict"]), texts):
            if span["verdict"] == "accept":
                marked.setdefault((span["text"], span["row"]), Counter())[span["label"]] += 1
        alone: dict[str, list[tuple[str, int]]] = {}
        for place in dict.fromkeys(zip(lost["text"].to_pylist(), lost["row"].to_pylist(), strict=True)):
            row = rows[place]
            by = [row["winner"]] if row["reason"] == Reason.SUPERSEDED else row["superseded_by"]
            instead = {label for number in by if number is not None for label in marked.get((place[0], number), ())}
            left = [n for label, n in marked[place].items() if label not in instead]
            figures = {"rows": 1, "alone": bool(left), "spans": sum(left)}
            figures["disjoint"] = instead.isdisjoint(marked[place])
            self.passes.update({(row["dataset"], name): int(n) for name, n in figures.items()})
            if left:
                alone.setdefault(row["dataset"], []).append(place)
        for dataset, found in alone.items():
            kept = self.samples.setdefault((dataset, "alone"), [])
            for text, number in found[: SAMPLE - len(kept)]:
                same = pc.and_(pc.equal(lost["text"], text), pc.equal(lost["row"], number))
                kept += _with_split(group, lost.filter(same).slice(0, 1))

    def labels(self, dataset: str, reasons: Sequence[str]) -> Counter[str]:
        """Count the spans of a data set that some became of, by label."""
        found: Counter[str] = Counter()
        for (name, label, reason), n in self.spans.items():
            if name == dataset and reason in reasons:
                found[label] += n
        return found

    def rows_of(self, dataset: str) -> Counter[str]:
        """Count the rows of a data set by what became of them."""
        return Counter({reason: n for (name, reason), n in self.rows.items() if name == dataset})


def _of(table: pa.Table, texts: pa.Array) -> list[dict[str, Any]]:
    """List the rows of some texts."""
    return table.filter(pc.is_in(table["text"], texts)).to_pylist()


def _with_split(group: Group, table: pa.Table) -> list[dict[str, Any]]:
    """List the rows of a table with the splits of their texts."""
    splits = pc.take(group.texts["split"], queries.texts_of(group, table))
    return table.append_column("split", splits).to_pylist()

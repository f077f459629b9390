"""Counts and samples of each dataset's rows and spans, for import checks."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import ROW_PROBLEMS, SPAN_PROBLEMS, Reason
from labelwise.corpus import queries
from labelwise.corpus.tables import Group, read_columns

SAMPLE = 3
# Superseded spans that the counting row of the dataset lacks, by what makes that row later.
ALONE = "alone"  # its line in the file
OTHER_FILE = "other file"  # the order of files; of an annotator without a name
LATER = "later"  # its time
USED = (
    Reason.ENTITY,
    Reason.SAME_SPAN,
    Reason.NESTED,
    Reason.CROSSING,
    Reason.OUTVOTED,
    Reason.CONFLICT,
    Reason.REMOVED,
)
UNUSED = (Reason.MISALIGNED, *SPAN_PROBLEMS)
OVERLAPPED = (Reason.SAME_SPAN, Reason.NESTED)
ANSWERED = (Reason.MERGED, Reason.SUPERSEDED)  # rows of accepted texts
SUPERSEDED = (Reason.SUPERSEDED, Reason.IN_SUPERSEDED)


@dataclass
class Figures:
    """Counts of a dataset.

    rows (Counter): by outcome.
    spans (Counter): by label and outcome (of equal spans, that of the first).
    people (Counter): rows by annotator; None without a name.
    split_conflict (Counter): rows left out, by the dataset with another declared split.
    out_of_order (int): questions whose latest answer differs by times and by files.
    replaced_by (Counter): answers replaced by the same annotator's in another dataset, by that dataset.
    replaced (Counter): superseded accepted spans, by label.
    passes (Counter): superseded "rows" with accepted spans; "disjoint" ones, without a common label with the row that
        counts; and the spans that are ALONE, OTHER_FILE or LATER.
    copies (Counter): rows that copy an answer, by its dataset.
    unnamed (Counter): texts with an anonymous and a named answer, by that name.
    shared (Counter): texts also in an earlier declared dataset, by that dataset.
    overlapped (Counter): spans dropped for an overlapping span of another dataset, by label and dataset.
    """

    rows: Counter[str] = field(default_factory=Counter)
    spans: Counter[tuple[str, str]] = field(default_factory=Counter)
    people: Counter[str | None] = field(default_factory=Counter)
    split_conflict: Counter[str] = field(default_factory=Counter)
    out_of_order: int = 0
    replaced_by: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    unnamed: Counter[str] = field(default_factory=Counter)
    shared: Counter[str] = field(default_factory=Counter)
    overlapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def labels(self, *reasons: str) -> Counter[str]:
        """Count the spans with these outcomes, by label."""
        counts: Counter[str] = Counter()
        for (label, reason), n in self.spans.items():
            if reason in reasons:
                counts[label] += n
        return counts

    def sample(self, *reasons: str) -> list[dict[str, Any]]:
        """Return the first rows with these outcomes."""
        return [row for reason in reasons for row in self.samples[reason]][:SAMPLE]


def add_figures(all_figures: defaultdict[str, Figures], group: Group) -> None:
    """Add the counts of a row group, by dataset."""
    rows = queries.of_sources(group.rows)
    reasons = pc.take(group.spans["reason"], queries.firsts(group.spans))
    spans = group.spans.set_column(group.spans.schema.get_field_index("reason"), "reason", reasons)
    kept = queries.with_kept(group.rows, "row", "dataset")
    repeated = pc.fill_null(pc.greater(rows["row"][1:], 0), fill_value=False)  # of the same text as the row before
    pairs = pa.table({"dataset": rows["dataset"][1:], "by": rows["dataset"][:-1]}).filter(repeated)
    overlapped = queries.where(queries.with_kept(group.spans, "span", "dataset"), "reason", OVERLAPPED)
    for name, counts in {
        "rows": queries.count(rows, "dataset", "reason"),
        "spans": queries.count(spans, "dataset", "label", "reason"),
        "people": queries.count(rows, "dataset", "who"),
        "copies": queries.count(queries.where(kept, "reason", [Reason.SAME_ANSWER]), "dataset", "by"),
        "split_conflict": queries.count(queries.where(kept, "reason", [Reason.SPLIT_CONFLICT]), "dataset", "by"),
        "shared": _of_others(queries.count(pairs, "dataset", "by")),
        "overlapped": _of_others(queries.count(overlapped, "dataset", "label", "by")),
    }.items():
        for (dataset, *key), n in counts.items():
            getattr(all_figures[dataset], name)[key[0] if len(key) == 1 else tuple(key)] += n
    for dataset, n in queries.count(group.rows.filter(group.rows["out_of_order"]), "dataset").items():
        all_figures[dataset].out_of_order += n
    _sample(all_figures, group, rows, ROW_PROBLEMS)
    _sample(all_figures, group, spans, UNUSED)
    _count_replaced(all_figures, group)
    _compare_passes(all_figures, group)
    _find_unnamed(all_figures, group)


def _of_others(counts: Counter[Any]) -> Counter[Any]:
    return Counter({key: n for key, n in counts.items() if key[0] != key[-1]})


def _sample(all_figures: Mapping[str, Figures], group: Group, table: pa.Table, reasons: Sequence[str]) -> None:
    for dataset, reason in queries.count(queries.where(table, "reason", reasons), "dataset", "reason"):
        sample = all_figures[dataset].samples[reason]
        if len(sample) < SAMPLE:
            chosen = table.filter(pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["reason"], reason)))
            sample += _with_split(group, chosen.slice(0, SAMPLE - len(sample)))


def _find_unnamed(all_figures: Mapping[str, Figures], group: Group) -> None:
    """Count texts with named and anonymous answers of one dataset, which count as several annotators'."""
    rows = group.rows.filter(pc.greater(pc.list_value_length(group.rows["version"]), 0))
    people: defaultdict[tuple[str, str], set[str | None]] = defaultdict(set)
    for text, dataset, who in read_columns(rows, "text", "dataset", "who"):
        people[text, dataset].add(who)
    for (_, dataset), names in people.items():
        if None in names:
            all_figures[dataset].unnamed.update(name for name in names if name)


def _count_replaced(all_figures: Mapping[str, Figures], group: Group) -> None:
    rows = group.rows.filter(pc.greater(pc.list_value_length(group.rows["superseded"]), 0))
    dataset, first = group.rows["dataset"].to_pylist(), pc.index_in(rows["text"], group.rows["text"]).to_pylist()
    for name, start, by in zip(rows["dataset"].to_pylist(), first, rows["superseded_by"].to_pylist(), strict=True):
        others = (dataset[start + row] for row in by if row is not None)
        all_figures[name].replaced_by.update(other for other in others if other != name)


def _compare_passes(all_figures: Mapping[str, Figures], group: Group) -> None:
    lost = queries.where(group.spans, "reason", SUPERSEDED)
    lost = lost.filter(pc.and_(pc.equal(lost["verdict"], "accept"), pc.is_valid(lost["row"])))
    for (dataset, label), n in queries.count(lost, "dataset", "label").items():
        all_figures[dataset].replaced[label] += n
    texts = pc.unique(lost["text"])
    rows = {(row["text"], row["row"]): row for row in _of(group.rows, texts)}
    verdicts: defaultdict[tuple[str, int], dict[tuple[int, int, str], str]] = defaultdict(dict)
    for span in _of(group.spans.select(["text", "row", "start", "end", "label", "verdict"]), texts):
        verdicts[span["text"], span["row"]][span["start"], span["end"], span["label"]] = span["verdict"]
    places: defaultdict[tuple[str, int], dict[int, tuple[int, int, str]]] = defaultdict(dict)  # by place in `lost`
    for place, (text, number, start, end, label) in enumerate(
        read_columns(lost, "text", "row", "start", "end", "label")
    ):
        places[text, number][place] = (start, end, label)
    for (text, number), dropped_spans in places.items():
        row = rows[text, number]
        figures = all_figures[row["dataset"]]
        by = [row["kept_row"]] if row["reason"] == Reason.SUPERSEDED else row["superseded_by"]
        replacing = [rows[text, other] for other in by if other is not None]
        replacing_spans = {span: verdict for kept in replacing for span, verdict in verdicts[text, kept["row"]].items()}
        labels = {label for (_, _, label), verdict in replacing_spans.items() if verdict == "accept"}
        own = {span for span, verdict in verdicts[text, number].items() if verdict == "accept"}
        figures.passes.update({"rows": 1, "disjoint": labels.isdisjoint(label for _, _, label in own)})
        if replacing and (kind := _why_later(row, replacing)):
            alone = [place for place, span in dropped_spans.items() if span not in replacing_spans]
            figures.passes[kind] += len(alone)
            sample = figures.samples[kind]
            if alone and len(sample) < SAMPLE:
                sample += _with_split(group, lost.slice(alone[0], 1))


def _why_later(row: Mapping[str, Any], replacing: Sequence[Mapping[str, Any]]) -> str:
    """Return what makes rows of its dataset later than a row, or "" if it is declared: other datasets, or its name."""
    if any(kept["dataset"] != row["dataset"] for kept in replacing):
        return ""
    if any(None not in (kept["when"], row["when"]) and kept["when"] > row["when"] for kept in replacing):
        return LATER
    if all(kept["file"] == row["file"] for kept in replacing):
        return ALONE
    return "" if row["who"] else OTHER_FILE


def _of(table: pa.Table, texts: pa.Array) -> list[dict[str, Any]]:
    return table.filter(pc.is_in(table["text"], texts)).to_pylist()


def _with_split(group: Group, table: pa.Table) -> list[dict[str, Any]]:
    splits = pc.take(group.texts["split"], queries.texts_of(group, table))
    return table.append_column("split", splits).to_pylist()

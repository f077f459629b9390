"""Count the outcomes of a merge by queries, summed over the row groups of its tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.corpus import queries
from labelwise.corpus.agreement import count_agreement
from labelwise.corpus.ledger import ANSWERS, Ledger
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.queries import count, where
from labelwise.corpus.tables import Group

SUPERSEDED = (Reason.SUPERSEDED, Reason.SAME_ANSWER)
ANSWERED = (Reason.MERGED, Reason.REJECTED, Reason.IGNORED)  # outcomes with the annotators' answer


def new_ledger(labels: Sequence[str], datasets: Sequence[str], renames: Mapping[str, Mapping[str, str]]) -> Ledger:
    """Make empty counts for declared labels, datasets and renamings."""
    return Ledger(
        labels={label: Counter() for label in labels},
        datasets={name: Counter() for name in datasets},
        renamed={
            name: {old: Counter({new: 0}) for old, new in of.items()} for name, of in sorted(renames.items()) if of
        },
    )


def add_group(ledger: Ledger, group: Group) -> None:
    """Add the counts of a row group."""
    for name, figures in count_group(group, len(ledger.labels)).items():
        _add(getattr(ledger, name), figures)
    ledger.same_texts += len(pc.list_flatten(group.texts["same"]))


def finish_ledger(ledger: Ledger) -> None:
    """Add the counts that follow from the row groups' counts."""
    for counts in ledger.labels.values():
        counts["gold"] = sum(counts[reason] for reason in queries.GOLD)
        counts["none"] = ledger.texts.total() - counts["complete"] - counts["partial"]


def _add(table: dict[Any, Any], figures: Counter[Any]) -> None:
    for key, n in figures.items():
        *outer, last = key if isinstance(key, tuple) else (key,)
        level = table
        for part in outer:
            level = level.setdefault(part, Counter())
        level[last] += n


def count_group(group: Group, labels: int) -> dict[str, Counter[Any]]:
    """Count a row group's content, by the names of `Ledger`."""
    texts, rows, spans = group
    inside = texts.filter(pc.is_valid(texts["split"])).combine_chunks()
    words = {split: pc.sum(inside["words"].filter(pc.equal(inside["split"], split))).as_py() for split in SPLITS}
    partly = inside.filter(pc.less(pc.list_value_length(inside["complete"]), labels))
    complete = pa.table(
        {
            "split": inside["split"].take(pc.list_parent_indices(inside["complete"])),
            "label": pc.list_flatten(inside["complete"]),
        }
    )
    gold = where(spans, "reason", queries.GOLD)
    gold = gold.append_column("split", pc.take(texts["split"], queries.texts_of(group, gold)))
    lost = count(where(queries.with_kept(spans, "span", "label"), "reason", queries.DROPPED), "reason", "label", "by")
    agreement, pairs = count_agreement(group)
    return {
        "rows": count(rows, "reason"),
        "spans": count(spans, "reason"),
        "texts": count(pa.table({"in": pc.coalesce(texts["split"], texts["reason"])}), "in"),
        "words": Counter({split: n for split, n in words.items() if n}),
        "labels": count(gold, "label", "reason") + _count_labels(group, gold),
        "datasets": _count_datasets(group),
        "partly": count(partly, "split"),
        "complete": count(complete, "split", "label"),
        "dropped_spans": Counter({(reason, label, by or ""): n for (reason, label, by), n in lost.items()}),
        "agreement": agreement,
        "pairs": pairs,
        "gold": count(gold, "split", "label"),
        "renamed": count(spans.filter(pc.is_valid(spans["renamed"])), "dataset", "renamed", "label"),
    }


def _count_labels(group: Group, gold: pa.Table) -> Counter[Any]:
    return _count_each(
        "label",
        {
            "complete": pa.table({"label": pc.list_flatten(group.texts["complete"])}),
            "partial": pa.table({"label": pc.list_flatten(group.texts["partial"])}),
            "realigned": gold.filter(gold["realigned"]),
            "overlapping": gold.filter(gold["learned"]),
            "rejected": where(group.spans, "reason", queries.REJECTED),
            "outvoted": where(group.spans, "reason", [Reason.OUTVOTED]),
        },
    )


def _count_datasets(group: Group) -> Counter[Any]:
    """Count rows, texts and spans by dataset; equal spans have the outcome of the first."""
    answers = queries.of_sources(group.rows)
    outcomes = group.spans.select(["reason", "learned"]).take(queries.firsts(group.spans))
    spans = outcomes.append_column("dataset", group.spans["dataset"])
    counts = _count_each(
        "dataset",
        {
            "rows": answers,
            **{name: where(answers, "answer", [answer]) for name, answer in ANSWERS.items()},
            "superseded": where(answers, "reason", SUPERSEDED),
            "unused": answers.filter(pc.invert(pc.is_in(answers["reason"], pa.array([*SUPERSEDED, *ANSWERED])))),
            "spans": spans,
            "entities": where(spans, "reason", [Reason.ENTITY]),
            "dropped": where(spans.filter(pc.invert(spans["learned"])), "reason", queries.DROPPED),
        },
    )
    with_text = answers.filter(pc.is_valid(answers["text"]))
    counts.update((dataset, "texts") for dataset, _ in count(with_text, "dataset", "text"))
    return counts


def _count_each(column: str, tables: Mapping[str, pa.Table]) -> Counter[Any]:
    return Counter({(value, name): n for name, table in tables.items() for value, n in count(table, column).items()})

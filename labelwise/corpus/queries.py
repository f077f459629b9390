"""What a merge says of itself: each figure is a query of the three tables, and each query a function of a row group.

A row group has all rows and all spans of its texts, so figures of groups add up. The rows and the spans of a text are
numbered from 0, and stand in this order: the place of a winner follows from its number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.corpus.tables import Group

# Of accepted spans of a text that is in the corpus.
GOLD = (Reason.ENTITY, Reason.SAME_SPAN, Reason.NESTED, Reason.CROSSING, Reason.NO_BOUNDARY)
REJECTED = (Reason.REJECTED, Reason.REJECTED_NO_BOUNDARY)
# Of spans that somebody accepted, or rejected, and that lost to the tokenizer, to another span, or to a vote.
LOST = (*GOLD[1:], Reason.OUTVOTED, Reason.ACCEPT_REJECT)

Figures = Counter[Any]


def count(table: pa.Table, *columns: str) -> Figures:
    """Count the rows of a table by the values of one column, or by tuples of the values of several."""
    if not len(table):
        return Counter()
    encoded = [table[name].combine_chunks().dictionary_encode("encode") for name in columns]
    values = [column.dictionary.to_pylist() for column in encoded]
    places = [column.indices.to_numpy(zero_copy_only=False) for column in encoded]
    sizes = [len(one) for one in values]
    found, counts = np.unique(np.ravel_multi_index(places, sizes), return_counts=True)
    named = ([one[at] for at in place] for one, place in zip(values, np.unravel_index(found, sizes), strict=True))
    keys: Iterable[Any] = zip(*named, strict=True) if len(columns) > 1 else next(named)
    return Counter(dict(zip(keys, counts.tolist(), strict=True)))


def where(table: pa.Table, column: str, values: Sequence[str]) -> pa.Table:
    """Keep the rows that have one of some values in a column."""
    return table.filter(pc.is_in(table[column], pa.array(values, pa.string())))


def winners(table: pa.Table, number: str) -> pa.Array:
    """Find the place of each row's winner in its table; null where it has none.

    number (str): the column that numbers the rows of a text.
    """
    places = pa.array(np.arange(len(table)))
    return pc.add(pc.subtract(places, table[number]), table["winner"])


def firsts(spans: pa.Table) -> pa.Array:
    """Find the place of the first of equal spans, which has the outcome of all, for each span."""
    repeats = pc.equal(spans["reason"], Reason.DUPLICATE)
    return pc.if_else(repeats, winners(spans, "span"), np.arange(len(spans)))


def of_sources(rows: pa.Table) -> pa.Table:
    """Keep the rows of data sets: decisions are none of theirs."""
    return rows.filter(pc.not_equal(pc.fill_null(rows["kind"], ""), "decision"))


def texts_of(group: Group, table: pa.Table) -> pa.Array:
    """Find the place of the text of each row of a table."""
    return pc.index_in(table["text"], group.texts["text"])


def count_reasons(group: Group) -> tuple[Figures, Figures]:
    """Count rows and spans by what became of them."""
    return count(group.rows, "reason"), count(group.spans, "reason")


def count_texts(group: Group) -> Figures:
    """Count texts by split, or by why they are in none."""
    return count(pa.table({"in": pc.coalesce(group.texts["split"], group.texts["reason"])}), "in")


def count_words(group: Group) -> Figures:
    """Add up words by split."""
    found: Figures = Counter()
    for split, words in zip(group.texts["split"].to_pylist(), group.texts["words"].to_pylist(), strict=True):
        found[split] += words or 0
    return Counter({split: words for split, words in found.items() if split})


def count_partly(group: Group, labels: Sequence[str]) -> Figures:
    """Count by split the texts that aren't complete for all labels."""
    partly = pc.less(pc.list_value_length(group.texts["complete"]), len(labels))
    return count(group.texts.filter(pc.and_(partly, pc.is_valid(group.texts["split"]))), "split")


def count_complete(group: Group) -> Figures:
    """Count the texts that are complete for a label, by split and label."""
    places = pc.list_parent_indices(group.texts["complete"])
    label, split = pc.list_flatten(group.texts["complete"]), pc.take(group.texts["split"], places)
    return count(pa.table({"split": split, "label": label}).filter(pc.is_valid(split)), "split", "label")


def count_states(group: Group) -> Figures:
    """Count texts by label and state."""
    return Counter(
        {
            (label, state): texts
            for state in ("complete", "partial")
            for label, texts in count(pa.table({"label": pc.list_flatten(group.texts[state])}), "label").items()
        }
    )


def count_gold(group: Group) -> tuple[Figures, Figures]:
    """Count accepted spans by label and what became of them, with what else is said of a label; and by split."""
    gold = where(group.spans, "reason", GOLD)
    found = count(gold, "label", "reason")
    for column, name in (("realigned", "realigned"), ("learnt", "learnt as well")):
        found.update({(label, name): n for label, n in count(gold.filter(gold[column]), "label").items()})
    found.update(
        {(label, "rejected"): n for label, n in count(where(group.spans, "reason", REJECTED), "label").items()}
    )
    outvoted = count(where(group.spans, "reason", [Reason.OUTVOTED]), "label")
    found.update({(label, Reason.OUTVOTED.value): n for label, n in outvoted.items()})
    split = pc.take(group.texts["split"], texts_of(group, gold))
    return found, count(pa.table({"split": split, "label": gold["label"]}), "split", "label")


def count_lost(group: Group) -> Figures:
    """Count the spans that lost by reason, label, and the label of the winner."""
    by = pc.take(group.spans["label"], winners(group.spans, "span"))
    return count(where(group.spans.append_column("by", by), "reason", LOST), "reason", "label", "by")


def count_undeclared(group: Group) -> Figures:
    """Count the spans of labels that their data set doesn't declare, by both."""
    return count(where(group.spans, "reason", [Reason.UNDECLARED]), "dataset", "label")


def count_renamed(group: Group) -> Figures:
    """Count the spans whose label was renamed, by data set, old and new label."""
    return count(group.spans.filter(pc.is_valid(group.spans["renamed"])), "dataset", "renamed", "label")


def count_other_split(group: Group) -> Figures:
    """Count the rows whose text another data set declares for another split, by both data sets."""
    by = pc.take(group.rows["dataset"], winners(group.rows, "row"))
    return count(where(group.rows.append_column("by", by), "reason", [Reason.OTHER_SPLIT]), "dataset", "by")


def count_replaced(group: Group) -> Figures:
    """Count the answers for a label that the same person's later one in another data set replaces, by both."""
    rows = group.rows.filter(pc.greater(pc.list_value_length(group.rows["superseded"]), 0))
    dataset, first = group.rows["dataset"].to_pylist(), pc.index_in(rows["text"], group.rows["text"]).to_pylist()
    found: Figures = Counter()
    for name, start, by in zip(rows["dataset"].to_pylist(), first, rows["superseded_by"].to_pylist(), strict=True):
        found.update((name, dataset[start + row]) for row in by if row is not None and dataset[start + row] != name)
    return found


def count_out_of_order(group: Group) -> Figures:
    """Count by data set the questions on whose latest answer times and the order of files disagree."""
    return count(group.rows.filter(group.rows["out_of_order"]), "dataset")


def count_datasets(group: Group) -> Figures:
    """Count by data set: its rows and texts; the rows that accept, reject, ignore, or are superseded; and its spans.

    Of spans: all, those that are an entity of the corpus, whoever marked it first, and those that lost, so that nothing
    learns them.
    """
    found: Figures = Counter()
    rows, spans = group.rows, group.spans

    def add(name: str, table: pa.Table) -> None:
        """Count the rows of a table by data set."""
        found.update({(dataset, name): n for dataset, n in count(table, "dataset").items()})

    answers = of_sources(rows)
    add("rows", answers)
    with_text = answers.filter(pc.is_valid(answers["text"]))
    found.update((dataset, "texts") for dataset, _ in count(with_text, "dataset", "text"))
    for name, answer in (("accepted", "accept"), ("rejected", "reject"), ("ignored", "ignore")):
        add(name, where(answers, "answer", [answer]))
    add("superseded", where(answers, "reason", [Reason.SUPERSEDED, Reason.SAME_ANSWER]))
    add("spans", spans)
    said = spans.select(["reason", "learnt"]).take(firsts(spans)).append_column("dataset", spans["dataset"])
    add("entities", where(said, "reason", [Reason.ENTITY]))
    add("lost", where(said.filter(pc.invert(said["learnt"])), "reason", LOST))
    return found


def count_hashed(group: Group) -> int:
    """Count the texts whose split was chosen by a hash of the text."""
    return count(group.texts, "chosen_by")["hash"]


def count_same(group: Group) -> int:
    """Count the texts that differ from another one only in white space or Unicode composition."""
    return len(pc.list_flatten(group.texts["same"]))


def names_of_annotators(group: Group) -> set[str]:
    """List who answered."""
    return set(pc.unique(group.rows["who"]).drop_null().to_pylist())


def list_problems(table: pa.Table, reasons: Sequence[str]) -> list[tuple[str, str, int, str]]:
    """List the rows or spans that can't be used: data set, file, line, and why."""
    found = where(table, "reason", reasons).to_pylist()
    return [(one["dataset"], one["file"], one["line"], describe(one)) for one in found]


def describe(row: Mapping[str, Any]) -> str:
    """Describe what became of a row or a span."""
    return f"{row['reason']}: {row['detail']}" if row["detail"] else str(row["reason"])

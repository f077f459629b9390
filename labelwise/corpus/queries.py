"""Queries of a merge's tables, by row group.

A row group has all rows and spans of its texts, so counts of groups add up. Rows and spans of a text are numbered from
0, in order, so numbers are also indices.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelwise.annotations import Reason
from labelwise.corpus.tables import Group

# The outcomes of accepted spans of texts in the corpus.
GOLD = (Reason.ENTITY, Reason.SAME_SPAN, Reason.NESTED, Reason.CROSSING, Reason.MISALIGNED)
REJECTED = (Reason.REJECTED, Reason.REJECTED_MISALIGNED)
# The outcomes of spans that were dropped by the tokenizer, another span, or a vote.
DROPPED = (*GOLD[1:], Reason.OUTVOTED, Reason.CONFLICT)


def count(table: pa.Table, *columns: str) -> Counter[Any]:
    """Count the rows of a table by values of one column, or tuples of several."""
    if not len(table):
        return Counter()
    encoded = [table[name].combine_chunks().dictionary_encode("encode") for name in columns]
    values = [column.dictionary.to_pylist() for column in encoded]
    places = [column.indices.to_numpy(zero_copy_only=False) for column in encoded]
    sizes = [len(one) for one in values]
    codes, counts = np.unique(np.ravel_multi_index(places, sizes), return_counts=True)
    named = ([one[at] for at in place] for one, place in zip(values, np.unravel_index(codes, sizes), strict=True))
    keys: Iterable[Any] = zip(*named, strict=True) if len(columns) > 1 else next(named)
    return Counter(dict(zip(keys, counts.tolist(), strict=True)))


def where(table: pa.Table, column: str, values: Sequence[str]) -> pa.Table:
    """Keep rows with some values in a column."""
    return table.filter(pc.is_in(table[column], pa.array(values, pa.string())))


def count_labels(rows: pa.Table, spans: pa.Table) -> Counter[tuple[str, str]]:
    """Count each dataset's texts that have spans of a label, by any dataset; keys are dataset and label."""
    answered, marked = (
        table.group_by(["text", column]).aggregate([]) for table, column in ((rows, "dataset"), (spans, "label"))
    )
    return count(answered.join(marked, "text", join_type="inner", use_threads=False), "dataset", "label")


def find_kept(table: pa.Table, number: str) -> pa.Array:
    """Return the index of the row or span kept instead, by `number`, "row" or "span"; null without."""
    places = pa.array(np.arange(len(table)))
    return pc.add(pc.subtract(places, table[number]), table[f"kept_{number}"])


def with_kept(table: pa.Table, number: str, column: str) -> pa.Table:
    """Add a column of the kept row or span as `by`; see `find_kept`."""
    return table.append_column("by", pc.take(table[column], find_kept(table, number)))


def firsts(spans: pa.Table) -> pa.Array:
    """Map each span to the first span with the same offsets and label, whose outcome applies to all."""
    repeats = pc.equal(spans["reason"], Reason.DUPLICATE)
    return pc.if_else(repeats, find_kept(spans, "span"), np.arange(len(spans)))


def of_sources(rows: pa.Table) -> pa.Table:
    """Keep the rows of datasets, without decisions."""
    return rows.filter(pc.not_equal(pc.fill_null(rows["kind"], ""), "decision"))


def texts_of(group: Group, table: pa.Table) -> pa.Array:
    """Return the index of each row's text."""
    return pc.index_in(table["text"], group.texts["text"])


def find_rows(group: Group) -> pa.Array:
    """Return the index of each span's row; null without."""
    return pc.add(pc.index_in(group.spans["text"], group.rows["text"]), group.spans["row"])


def describe(row: Mapping[str, Any]) -> str:
    """Describe an outcome, with its detail."""
    return f"{row['reason']}: {row['detail']}" if row["detail"] else str(row["reason"])

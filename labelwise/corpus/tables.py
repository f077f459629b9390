"""The provenance tables of a merge: the outcome of each text, row and span.

`text` is a key, in hexadecimal; its rows include those of keys in `same`. `row` and `span` number the rows and the
spans of a text from 0; `kept_row` and `kept_span` count instead, in the same text. Texts are sorted by key, rows by
dataset, file and line, decisions last. Corresponding row groups of the three files have the same texts. The last have
only rows without a usable text, and decisions about missing texts.

All figures of a merge are queries of these tables: see `merge.table_counts`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from labelwise.base.errors import InputError
from labelwise.corpus.columns import OWN, Columns
from labelwise.corpus.manifest import TABLES, read_manifest

GROUP_ROWS = 2**13  # rows of the largest table in a row group; with 16,384, a merge takes 11 MB more

_labels = pa.list_(pa.string())
TEXTS = pa.schema(
    {
        "text": pa.string(),  # the key
        "split": pa.string(),  # null where the text is left out of the corpus,
        "reason": pa.string(),  # for this reason
        "chosen_by": pa.string(),  # the reason for the split: declared, group (of near duplicates), split_by, hash
        "words": pa.int32(),
        "doc": pa.string(),
        "complete": _labels,
        "partial": _labels,
        "same": pa.list_(pa.string()),  # keys of texts that differ only in white space or Unicode composition
    }
)
ROWS = pa.schema(
    {
        "text": pa.string(),
        "row": pa.int32(),
        "dataset": pa.string(),
        "file": pa.string(),  # as declared
        "line": pa.int32(),
        "who": pa.string(),
        "anonymous": pa.bool_(),  # the name is known within the dataset only
        "when": pa.float64(),
        "kind": pa.string(),  # complete, binary, other, decision
        "answer": pa.string(),  # or the verdict of a decision
        "reason": pa.string(),
        "detail": pa.string(),
        "kept_row": pa.int32(),
        "covered": _labels,  # labels for which the row counts
        "superseded": _labels,  # labels for which another row of the same person counts,
        "superseded_by": pa.list_(pa.int32()),  # and that row; null where several count
        "version": _labels,  # labels for which it is its annotator's latest work, if others annotated the text, too
        "review": pa.bool_(),  # it decides between several annotators
        "out_of_order": pa.bool_(),  # the latest by time, though another file is declared as a later export
    }
)
SPANS = pa.schema(
    {
        "text": pa.string(),
        "row": pa.int32(),  # null for a problem outside any row
        "span": pa.int32(),
        "dataset": pa.string(),
        "file": pa.string(),  # its own place, such as a line in a brat file, or else that of its row
        "line": pa.int32(),
        "start": pa.int32(),
        "end": pa.int32(),
        "label": pa.string(),
        "renamed": pa.string(),  # the label in the source, if that is another
        "words": pa.string(),  # null in rows that are ignored
        "verdict": pa.string(),
        "reason": pa.string(),
        "detail": pa.string(),
        "kept_span": pa.int32(),
        "realigned": pa.bool_(),  # it was expanded or contracted to whole tokens
        "learned": pa.bool_(),  # it isn't an entity, but a head for its label learns it
    }
)
# Arrow's own allocator keeps the memory that it has used, in each process.
pa.set_memory_pool(pa.system_memory_pool())
SCHEMAS = {"texts": TEXTS, "rows": ROWS, "spans": SPANS}


class Group(NamedTuple):
    """The texts of a row group, with all rows and spans."""

    texts: pa.Table
    rows: pa.Table
    spans: pa.Table


def write_tables(batches: Iterable[Sequence[Columns]], folder: Path) -> Iterator[Group]:
    """Write the three tables, and yield their row groups; rows without a usable text have their own."""
    with ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(folder / name, schema))
            for name, schema in zip(TABLES, SCHEMAS.values(), strict=True)
        ]
        waiting: list[list[pa.RecordBatch]] = []

        def write() -> Group:
            tables = [pa.Table.from_batches(columns) for columns in zip(*waiting, strict=True)]
            waiting.clear()
            for writer, table in zip(writers, tables, strict=True):
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            return Group(*(table.combine_chunks() for table in tables))

        for batch in batches:
            if waiting and waiting[-1][0].num_rows and not batch[0].own:
                yield write()
            waiting.append([_make_batch(name, columns) for name, columns in zip(SCHEMAS, batch, strict=True)])
            if max(sum(one.num_rows for one in columns) for columns in zip(*waiting, strict=True)) >= GROUP_ROWS:
                yield write()
        if waiting:
            yield write()


def _make_batch(table: str, columns: Columns) -> pa.RecordBatch:
    schema = SCHEMAS[table]
    own_names = OWN.get(table, schema.names)
    others = [name for name in schema.names if name not in own_names]
    *values, numbers = columns.own or [()] * (len(own_names) + 1)
    arrays = {name: pa.array(column, schema.field(name).type) for name, column in zip(own_names, values, strict=True)}
    for name, shared in zip(others, [*zip(*columns.shared, strict=True)] or [()] * len(others), strict=True):
        arrays[name] = pa.array(shared, schema.field(name).type).take(pa.array(numbers, pa.int32()))
    return pa.record_batch([arrays[name] for name in schema.names], schema=schema)


def read_columns(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row in some columns."""
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def has_tables(folder: Path) -> bool:
    """Return whether a folder has a merge's table, even of a killed merge."""
    for name, schema in zip(TABLES, SCHEMAS.values(), strict=True):
        with suppress(OSError, pa.ArrowException):
            if pq.read_schema(folder / name).equals(schema):
                return True
    return False


def read_groups(
    corpus: Path, *, merged: bool = True, stopped: bool = False, columns: Collection[str] = ()
) -> Iterator[Group]:
    """Yield the row groups of a corpus's tables.

    merged, stopped (bool): require the manifest; accept a corpus that an import check stops.
    columns (Collection[str]): columns to read; empty for all.
    RAISES (InputError): if no merge has written them.
    """
    if merged:
        read_manifest(corpus, stopped=stopped)
    with ExitStack() as stack:
        files = []
        for name in TABLES:
            if not (corpus / name).is_file():
                raise InputError(f"{corpus / name}: there is no such file; run the merge")
            try:
                files.append(stack.enter_context(pq.ParquetFile(corpus / name, pre_buffer=False)))
            except pa.ArrowException as error:
                raise InputError(f"{corpus / name}: not what a merge writes ({error}); run the merge again") from error
        names = [[name for name in schema.names if not columns or name in columns] for schema in SCHEMAS.values()]
        for number in range(files[0].num_row_groups):
            tables = zip(files, names, strict=True)
            yield Group(*(file.read_row_group(number, some, use_threads=False) for file, some in tables))

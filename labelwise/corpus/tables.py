"""The account of a merge, as three tables: what became of each text, each row and each span that was read.

    texts.parquet   text, split, reason, chosen_by, words, doc, complete, partial, same
    rows.parquet    text, row, dataset, file, line, who, when, kind, answer, reason, detail, winner, ...
    spans.parquet   text, row, span, dataset, file, line, start, end, label, words, verdict, reason, detail, winner, ...

A text is known by its key, in hexadecimal; it has the rows of those in `same`, too. `row` and `span` number the rows
and the spans of a text from 0; `winner` is the one of the same text that counts instead. Texts are in the order of
their keys, their rows in that of data sets, files and lines, decisions last. The row groups of the three files
correspond: each has the same texts in all three. The last ones have the rows without a usable text, and the decisions
about texts that aren't there.

Everything that a merge says is a query of these: see `queries`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from labelwise.base.errors import InputError
from labelwise.corpus.manifest import TABLES, read_manifest

GROUP_ROWS = 2**14  # of a row group, in the table that has the most: with 65,536, a merge takes 55 MB more

_labels = pa.list_(pa.string())
TEXTS = pa.schema(
    {
        "text": pa.string(),  # the key
        "split": pa.string(),  # null where the text is left out of the corpus,
        "reason": pa.string(),  # for this reason
        "chosen_by": pa.string(),  # what chose the split: declared, group (of near duplicates), split_by, hash
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
        "anonymous": pa.bool_(),  # the name is known within the data set only
        "when": pa.float64(),
        "kind": pa.string(),  # complete, binary, other, decision
        "answer": pa.string(),  # of a decision: what it says
        "reason": pa.string(),
        "detail": pa.string(),
        "winner": pa.int32(),
        "covered": _labels,  # those for which the row counts
        "superseded": _labels,  # those for which another row of the same person counts,
        "superseded_by": pa.list_(pa.int32()),  # which is this one; null where several count
        "version": _labels,  # those for which it is its annotator's latest work, and others annotated the text, too
        "out_of_order": pa.bool_(),  # the latest by time, though another file is declared as a later export
    }
)
SPANS = pa.schema(
    {
        "text": pa.string(),
        "row": pa.int32(),  # null where a problem is no row's
        "span": pa.int32(),
        "dataset": pa.string(),
        "file": pa.string(),  # its own place, such as a line of brat's, or else that of its row
        "line": pa.int32(),
        "start": pa.int32(),
        "end": pa.int32(),
        "label": pa.string(),
        "renamed": pa.string(),  # the label in the source, if that is another
        "words": pa.string(),  # null in rows that are ignored
        "verdict": pa.string(),
        "reason": pa.string(),
        "detail": pa.string(),
        "winner": pa.int32(),
        "realigned": pa.bool_(),  # it was expanded or contracted to whole tokens
        "learnt": pa.bool_(),  # it isn't an entity, but a head for its label learns it as well
    }
)
# Arrow's own allocator keeps what was used once, in each process.
pa.set_memory_pool(pa.system_memory_pool())
SCHEMAS = {"texts": TEXTS, "rows": ROWS, "spans": SPANS}


class Group(NamedTuple):
    """The texts of a row group, with all of their rows and spans."""

    texts: pa.Table
    rows: pa.Table
    spans: pa.Table


def write_tables(batches: Iterable[Sequence[Sequence[Sequence[Any]]]], folder: Path) -> None:
    """Write the three tables into the folder of a corpus.

    batches (Iterable): of some texts each: for each table its columns, or none if it has no rows.
    """
    with ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(folder / name, schema))
            for name, schema in zip(TABLES, SCHEMAS.values(), strict=True)
        ]
        waiting: list[list[pa.RecordBatch]] = []

        def write() -> None:
            """Write the batches that wait as a row group."""
            for writer, columns in zip(writers, zip(*waiting, strict=True), strict=True):
                table = pa.Table.from_batches(columns)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            waiting.clear()

        for batch in batches:
            waiting.append(
                [
                    pa.record_batch([*map(pa.array, columns or [()] * len(schema), schema.types)], schema=schema)
                    for columns, schema in zip(batch, SCHEMAS.values(), strict=True)
                ]
            )
            if max(sum(one.num_rows for one in columns) for columns in zip(*waiting, strict=True)) >= GROUP_ROWS:
                write()
        if waiting:
            write()


def has_tables(folder: Path) -> bool:
    """Return whether a folder has the account of a merge, which may have been replacing it when it was killed."""
    for name, schema in zip(TABLES, SCHEMAS.values(), strict=True):
        with suppress(OSError, pa.ArrowException):
            if pq.read_schema(folder / name).equals(schema):
                return True
    return False


def read_groups(corpus: Path, *, merged: bool = True, doubted: bool = False) -> Iterator[Group]:
    """Yield the row groups of the tables of a corpus.

    merged, doubted (bool): the corpus has to be complete, and may have doubts.
    RAISES (InputError): a merge hasn't written them.
    """
    if merged:
        read_manifest(corpus, doubted=doubted)
    with ExitStack() as stack:
        files = []
        for name in TABLES:
            if not (corpus / name).is_file():
                raise InputError(f"{corpus / name}: there is no such file; run the merge")
            try:
                files.append(stack.enter_context(pq.ParquetFile(corpus / name, pre_buffer=False)))
            except pa.ArrowException as error:
                raise InputError(f"{corpus / name}: not what a merge writes ({error}); run the merge again") from error
        for number in range(files[0].num_row_groups):
            yield Group(*(file.read_row_group(number, use_threads=False) for file in files))

"""The work of a merge on one partition: which tasks, and where they are in the chunks.

A partition is a range of text keys, cut into BUCKETS buckets.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from labelwise.chunks import Slice, TaskReader, decode_task, join_key, read_index, text_key
from labelwise.datasets import DataSet, Split
from labelwise.errors import InputError
from labelwise.merge import Answer
from labelwise.settings import Settings

BUCKETS = 64


class Source(msgspec.Struct):
    """What chunks were read from."""

    dataset: DataSet
    path: Path


class Group(NamedTuple):
    """What texts that are nearly equal share: what chooses their split by hash, and the split that one declares."""

    unit: bytes
    declared: Split | None


class Job(msgspec.Struct):
    """One partition's work; it goes to a worker as a whole.

    number, of (int): the position of the partition among how many; a power of two, so that its keys begin alike.
    slices (list[Slice]): where its tasks are, in the order of sources and lines.
    folder (Path): gets the results; what an earlier run left there is used.
    groups (Mapping[bytes, Group]): of the texts, by key, that are to be in one split with others.
    """

    number: int
    of: int
    slices: list[Slice]
    sources: list[Source]
    labels: list[str]
    settings: Settings
    folder: Path
    groups: Mapping[bytes, Group] = {}

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(piece.count for piece in self.slices)

    @property
    def size(self) -> int:
        """Their bytes in the chunks."""
        return sum(piece.size for piece in self.slices)


class Row(msgspec.Struct):
    """Where a task is: `task` bytes from `offset` in a chunk, and `text` bytes of text behind them."""

    slice: int
    line: int
    offset: int
    task: int
    text: int


Texts = list[tuple[bytes, list[Row]]]


def read_buckets(job: Job) -> Iterator[tuple[bytes, Texts]]:
    """Yield for each bucket that has texts its fingerprint, and its rows by text, in the order of sources and lines."""
    common = hashlib.blake2b(msgspec.json.encode([job.settings, job.labels]))
    declared = [_declaration_digest(source) for source in job.sources]
    columns = _load_columns(job)
    order = np.lexsort((columns["line"], columns["slice"], columns["low"], columns["high"]))
    columns = {name: column[order] for name, column in columns.items()}
    sources = np.array([source.source for source in job.slices], int)
    datasets = np.array(declared, "<u8")[sources][columns["slice"]] if len(order) else columns["high"]
    bits = (job.of * BUCKETS).bit_length() - 1
    numbers = columns["high"] >> np.uint64(64 - bits)
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
    facts = [columns["high"], columns["low"], columns["line"], columns["digest"], datasets]
    for first, last in pairwise(cuts):
        if first == last:
            continue
        digest = common.copy()
        for column in facts:
            digest.update(column[first:last].tobytes())
        names = ("high", "low", "slice", "line", "offset", "task", "text")
        rows = zip(*(columns[name][first:last].tolist() for name in names), strict=True)
        texts = [
            (join_key(*key), [Row(*row[2:]) for row in group]) for key, group in groupby(rows, key=itemgetter(0, 1))
        ]
        if groups := [(key, *job.groups[key]) for key, _ in texts if key in job.groups]:
            digest.update(repr(groups).encode())
        yield digest.digest()[:16], texts


def group_rows(job: Job) -> Iterator[tuple[bytes, list[Row]]]:
    """Yield the rows of each text of a partition, in the order of sources and lines."""
    for _, texts in read_buckets(job):
        yield from texts


def _declaration_digest(source: Source) -> int:
    """Digest what is declared of a source, and what its problems call it."""
    dataset = source.dataset
    facts = [dataset.name, dataset.labels, dataset.kind, dataset.split, source.path.name]
    return int.from_bytes(hashlib.blake2b(msgspec.json.encode(facts), digest_size=8).digest(), "little")


def _load_columns(job: Job) -> dict[str, Any]:
    """Read the index of a partition's tasks, unsorted."""
    names = ("high", "low", "line", "digest", "task", "text", "slice", "offset")
    parts: dict[str, list[Any]] = {name: [np.zeros(0, "<u8")] for name in names}
    for number, piece in enumerate(job.slices):
        index = read_index(piece.path, piece.first, piece.count)
        for name in ("high", "low", "digest", "task", "text"):
            parts[name].append(index[name].astype("<u8"))
        parts["line"].append(index["line"].astype("<u8") + np.uint64(piece.base))
        parts["slice"].append(np.full(piece.count, number, "<u8"))
        lengths = index["task"].astype("<u8") + index["text"]
        parts["offset"].append(np.cumsum(lengths) - lengths + np.uint64(piece.offset))
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def read_text(key: bytes, row: Row, job: Job, reader: TaskReader) -> str:
    """Read the text of a task.

    RAISES (InputError): it isn't the one that the key is of.
    """
    text = reader.read(job.slices[row.slice].path, row.offset + row.task, row.text)
    if text_key(text) != key:
        raise InputError(f"{job.folder.parent.parent}: the cache is damaged; delete it and run the merge again")
    return text.decode("utf8", "surrogatepass")


def read_answer(row: Row, job: Job, reader: TaskReader) -> Answer:
    """Read a task."""
    piece = job.slices[row.slice]
    source = job.sources[piece.source]
    return Answer(source.dataset, row.line, decode_task(reader.read(piece.path, row.offset, row.task)), source.path)

"""The work of a merge on one partition: which tasks, and where they are in the chunks.

A partition is a range of text keys, cut into BUCKETS buckets.
"""

import hashlib
from collections.abc import Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from labelwise.answers import Answer
from labelwise.chunks import Slice, TaskReader, decode_task, read_index
from labelwise.datasets import DataSet, Split
from labelwise.errors import InputError
from labelwise.keys import join_key, text_key
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

    def identity(self) -> bytes:
        """Digest what the work is: where the tasks are, in chunks that never change, and all else that counts.

        It says sooner than TaskTable.fingerprint that nothing is new, but not that what is new is the same.
        """
        slices = [(piece.path.name, piece.source, piece.base, piece.first, piece.count) for piece in self.slices]
        declared = {piece.source: _declaration_digest(self.sources[piece.source]) for piece in self.slices}
        facts = [slices, list(declared.values()), self.common, sorted(self.groups.items())]
        return hashlib.blake2b(msgspec.msgpack.encode(facts), digest_size=16).digest()

    @property
    def common(self) -> bytes:
        """What all partitions of a merge follow from."""
        return msgspec.json.encode([self.settings, self.labels])

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


class TaskTable:
    """Where the tasks of a partition are, sorted by text, then source, then line; in columns, an array each."""

    def __init__(self, job: Job) -> None:
        """Read the index of a partition's tasks."""
        self.job = job
        columns = _load_columns(job)
        order = np.lexsort((columns["line"], columns["slice"], columns["low"], columns["high"]))
        self.columns = {name: column[order] for name, column in columns.items()}

    def cut_buckets(self) -> list[tuple[int, int]]:
        """Give first and last of the tasks of each bucket that has some; the last is exclusive."""
        bits = (self.job.of * BUCKETS).bit_length() - 1
        return _cut(self.columns["high"] >> np.uint64(64 - bits))

    def fingerprint(self, first: int, last: int) -> bytes:
        """Digest what the merge of some tasks follows from: the tasks, their declarations, and the settings."""
        digest = hashlib.blake2b(self.job.common, digest_size=16)
        for name in ("high", "low", "line", "digest", "declared"):
            digest.update(self.columns[name][first:last].tobytes())
        if self.job.groups:
            groups = [(key, *self.job.groups[key]) for key in self.keys(first, last) if key in self.job.groups]
            digest.update(repr(groups).encode() if groups else b"")
        return digest.digest()

    def keys(self, first: int, last: int) -> list[bytes]:
        """List the keys of the texts of some tasks."""
        high, low = (self.columns[name][first:last].tolist() for name in ("high", "low"))
        return list(dict.fromkeys(join_key(*key) for key in zip(high, low, strict=True)))

    def cut_texts(self) -> list[tuple[int, int]]:
        """Give first and last of the tasks of each text; the last is exclusive."""
        return _cut(self.columns["high"], self.columns["low"])

    def rows(self, first: int, last: int) -> list[Row]:
        """List some tasks' places."""
        names = ("slice", "line", "offset", "task", "text")
        return [Row(*row) for row in zip(*(self.columns[name][first:last].tolist() for name in names), strict=True)]

    def texts(self, first: int, last: int) -> Texts:
        """List the texts of some tasks, each with its tasks' places."""
        high, low = (self.columns[name][first:last].tolist() for name in ("high", "low"))
        rows = zip(high, low, self.rows(first, last), strict=True)
        return [(join_key(*key), [row for *_, row in group]) for key, group in groupby(rows, key=itemgetter(0, 1))]


def _cut(*columns: Any) -> list[tuple[int, int]]:
    """Cut where a value of any column isn't that of the row before."""
    size = len(columns[0])
    differs = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return list(pairwise([0, *(np.flatnonzero(differs) + 1).tolist(), size])) if size else []


def _declaration_digest(source: Source) -> int:
    """Digest what is declared of a source, and what its problems call it."""
    dataset = source.dataset
    facts = [dataset.name, dataset.labels, dataset.kind, dataset.split, source.path.name]
    return int.from_bytes(hashlib.blake2b(msgspec.json.encode(facts), digest_size=8).digest(), "little")


def _load_columns(job: Job) -> dict[str, Any]:
    """Read the index of a partition's tasks, unsorted."""
    names = ("high", "low", "line", "digest", "task", "text", "slice", "offset", "declared")
    declared = [_declaration_digest(source) for source in job.sources]
    parts: dict[str, list[Any]] = {name: [np.zeros(0, "<u8")] for name in names}
    for number, piece in enumerate(job.slices):
        index = read_index(piece.path, piece.first, piece.count)
        for name in ("high", "low", "digest", "task", "text"):
            parts[name].append(index[name].astype("<u8"))
        parts["line"].append(index["line"].astype("<u8") + np.uint64(piece.base))
        parts["slice"].append(np.full(piece.count, number, "<u8"))
        parts["declared"].append(np.full(piece.count, declared[piece.source], "<u8"))
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

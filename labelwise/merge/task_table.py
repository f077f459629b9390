"""Where the tasks of a partition are, text by text; and how to read them.

A partition is cut into PORTIONS portions, whose results are cached one by one.
"""

import hashlib
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from labelwise.common.errors import InputError
from labelwise.common.keys import join_key, text_key
from labelwise.merge.jobs import MergeJob, declaration_digest
from labelwise.merge.rules.answers import Answer
from labelwise.merge.task_store import TaskReader, decode_task, read_index

PORTIONS = 64


class TaskPlace(msgspec.Struct):
    """Where a task is: `task` bytes from `offset` in a task file, followed by `text` bytes of text.

    key_range (int): the position of the KeyRange that it belongs to.
    """

    key_range: int
    line: int
    offset: int
    task: int
    text: int


Texts = list[tuple[bytes, list[TaskPlace]]]


class TaskTable:
    """Where the tasks of a partition are, sorted by text, then source, then line; in columns, one array each."""

    def __init__(self, job: MergeJob) -> None:
        """Read the index of a partition's tasks."""
        self.job = job
        columns = _load_columns(job)
        order = np.lexsort((columns["line"], columns["key_range"], columns["low"], columns["high"]))
        self.columns = {name: column[order] for name, column in columns.items()}

    def cut_portions(self) -> list[tuple[int, int]]:
        """Return the first and the last of the tasks of each portion that has any; the last is exclusive."""
        bits = (self.job.of * PORTIONS).bit_length() - 1
        return _cut(self.columns["high"] >> np.uint64(64 - bits))

    def fingerprint(self, first: int, last: int) -> bytes:
        """Digest what the merge of some tasks depends on: the tasks, their declarations, and the settings."""
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
        """Return the first and the last of the tasks of each text; the last is exclusive."""
        return _cut(self.columns["high"], self.columns["low"])

    def rows(self, first: int, last: int) -> list[TaskPlace]:
        """List some tasks' places."""
        names = ("key_range", "line", "offset", "task", "text")
        return [
            TaskPlace(*row) for row in zip(*(self.columns[name][first:last].tolist() for name in names), strict=True)
        ]

    def texts(self, first: int, last: int) -> Texts:
        """List the texts of some tasks, each with its tasks' places."""
        high, low = (self.columns[name][first:last].tolist() for name in ("high", "low"))
        rows = zip(high, low, self.rows(first, last), strict=True)
        return [(join_key(*key), [row for *_, row in group]) for key, group in groupby(rows, key=itemgetter(0, 1))]


def _cut(*columns: Any) -> list[tuple[int, int]]:
    """Cut where a value of any column differs from that of the row before."""
    size = len(columns[0])
    differs = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return list(pairwise([0, *(np.flatnonzero(differs) + 1).tolist(), size])) if size else []


def _load_columns(job: MergeJob) -> dict[str, Any]:
    """Read the index of a partition's tasks, unsorted."""
    names = ("high", "low", "line", "digest", "task", "text", "key_range", "offset", "declared")
    declared = [declaration_digest(source) for source in job.sources]
    columns: dict[str, list[Any]] = {name: [np.zeros(0, "<u8")] for name in names}
    for number, keys in enumerate(job.ranges):
        index = read_index(keys.path, keys.first, keys.count)
        for name in ("high", "low", "digest", "task", "text"):
            columns[name].append(index[name].astype("<u8"))
        columns["line"].append(index["line"].astype("<u8") + np.uint64(keys.base))
        columns["key_range"].append(np.full(keys.count, number, "<u8"))
        columns["declared"].append(np.full(keys.count, declared[keys.source], "<u8"))
        lengths = index["task"].astype("<u8") + index["text"]
        columns["offset"].append(np.cumsum(lengths) - lengths + np.uint64(keys.offset))
    return {name: np.concatenate(arrays) for name, arrays in columns.items()}


def read_text(key: bytes, row: TaskPlace, job: MergeJob, reader: TaskReader) -> str:
    """Read the text of a task.

    RAISES (InputError): it doesn't match the key.
    """
    text = reader.read(job.ranges[row.key_range].path, row.offset + row.task, row.text)
    if text_key(text) != key:
        raise InputError(f"{job.folder.parent.parent}: the cache is damaged; delete it and run the merge again")
    return text.decode("utf8", "surrogatepass")


def read_answer(row: TaskPlace, job: MergeJob, reader: TaskReader) -> Answer:
    """Read a task."""
    keys = job.ranges[row.key_range]
    source = job.sources[keys.source]
    return Answer(source.dataset, row.line, decode_task(reader.read(keys.path, row.offset, row.task)), source.path)

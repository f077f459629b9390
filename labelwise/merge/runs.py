"""Tasks on disk, in runs sorted by the keys of their texts, so that a merge holds the tasks of one text at a time.

What the merge needs of a source, about a tenth of it, goes to runs: each is held in memory once, sorted, and written.
A run is two files. `.index` has an ENTRY for each task; `.tasks` has the tasks themselves as MessagePack, each followed
by its text, in the same order.
"""

import hashlib
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.datasets.declarations import DataSet
from labelwise.sources.prodigy import Task

# The fields of a Place; `digest` is one of the task without its text.
ENTRY = np.dtype(
    [
        *[("key", "S12"), ("run", "<u4"), ("line", "<u4"), ("spans", "<u4")],
        *[("digest", "<u8"), ("offset", "<u8"), ("task", "<u4"), ("text", "<u4")],
    ]
)
RUN_BYTES = 2**23  # of tasks that wait to be sorted
TASK_OVERHEAD = 400  # roughly the bytes of Python objects for a task that waits to be sorted
AT_ONCE = 2**15  # entries that are read and sorted at a time: 1.5 MB
MOST_OPEN = 200  # files
END = b"\xff" * 13  # sorts after every key

Entries = npt.NDArray[np.void]

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class Source(NamedTuple):
    """One of a data set's files, and its position among those of all data sets; see `declarations.SourceFile`."""

    number: int
    dataset: DataSet
    path: Path
    name: str


class Run(NamedTuple):
    """A run: its path without suffix, its source, and the number of its tasks."""

    path: Path
    source: Source
    tasks: int


class Place(NamedTuple):
    """Where a task is.

    key (bytes): of its text.
    run (int): its position among the runs of the partition.
    line (int): in its source.
    spans (int): how many its row had.
    digest (int): of the task.
    offset (int): in the `.tasks` file, where `task` bytes of task are followed by `text` bytes of text.
    """

    key: bytes
    run: int
    line: int
    spans: int
    digest: int
    offset: int
    task: int
    text: int


class RunWriter:
    """Holds tasks until there are enough of them to be written, sorted, as a run.

    runs (list[int]): the number of tasks of each run that was written.
    """

    def __init__(self, out: Path) -> None:
        """Take the path that the paths of the runs begin with."""
        self.out = out
        self.runs: list[int] = []
        self._waiting: list[tuple[bytes, int, int, bytes, bytes]] = []
        self._size = 0

    def add(self, line: int, task: Task) -> None:
        """Take one task, which loses its text."""
        text = (task.text or "").encode("utf8", "surrogatepass")
        task.text = None
        encoded = encode_task(task)
        self._waiting.append((text_key(text), line, len(task.spans or ()), encoded, text))
        self._size += len(encoded) + len(text) + TASK_OVERHEAD
        if self._size > RUN_BYTES:
            self.write()

    def write(self) -> None:
        """Write a run of the tasks that wait, if there are any."""
        if not self._waiting:
            return
        self._waiting.sort()
        path = run_path(self.out, len(self.runs))
        entries = []
        offset = 0
        with path.with_suffix(".tasks").open("wb") as tasks:
            for key, line, spans, encoded, text in self._waiting:
                digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")
                entries.append((key, 0, line, spans, digest, offset, len(encoded), len(text)))
                offset += tasks.write(encoded) + tasks.write(text)
        path.with_suffix(".index").write_bytes(np.array(entries, ENTRY).tobytes())
        self.runs.append(len(entries))
        self._waiting, self._size = [], 0


def run_path(out: Path, number: int) -> Path:
    """Name a run of a source."""
    return out.with_name(f"{out.name}-{number}")


def read_entries(runs: Sequence[Run], first: bytes, end: bytes) -> Entries:
    """Read the entries with keys from `first` on, before `end`: sorted by key, then in the order of runs and lines."""
    pieces = [np.zeros(0, ENTRY)]
    for number, run in enumerate(runs):
        entries = np.memmap(run.path.with_suffix(".index"), ENTRY, "r")
        keys = entries["key"]
        piece = np.array(entries[bisect_left(keys, first) : bisect_left(keys, end)])
        piece["run"] = number
        pieces.append(piece)
    found = np.concatenate(pieces)
    return found[found["key"].argsort(kind="stable")]


def count_texts(runs: Sequence[Run], limit: int = AT_ONCE) -> tuple[int, int]:
    """Count the distinct texts, and their bytes, in runs.

    Texts of more than `limit` tasks are estimated from a share of the keys: the estimate depends on the texts, not on
    how they are distributed over the runs.
    """
    shift = 0
    while sum(run.tasks for run in runs) >> shift > limit:
        shift += 1
    entries = read_entries(runs, b"", edge(1, 1 << shift))
    _, first = np.unique(entries["key"], return_index=True)
    return len(first) << shift, int(entries["text"][first].sum()) << shift


def edge(number: int, of: int) -> bytes:
    """Return what the keys of a range are not less than, and those of the range before are.

    of (int): the number of equal ranges that all keys are cut into, a power of two.
    """
    return END if number == of else ((number << 64) // of).to_bytes(8, "big")


def range_of(key: bytes, of: int) -> int:
    """Return the number of the range that a key is in."""
    return int.from_bytes(key[:8], "big") * of >> 64


def cut_runs(runs: Sequence[Run], of: int) -> Iterator[Entries]:
    """Yield the entries of each of `of` equal ranges of keys; memory holds AT_ONCE, or those of one range."""
    at_once = max(1, of * AT_ONCE // max(1, sum(run.tasks for run in runs)))
    for start in range(0, of, at_once):
        stop = min(start + at_once, of)
        entries = read_entries(runs, edge(start, of), edge(stop, of))
        edges = np.array([edge(number, of) for number in range(start + 1, stop)], "S12")
        for first, end in pairwise([0, *entries["key"].searchsorted(edges).tolist(), len(entries)]):
            yield entries[first:end]


def read_texts(entries: Entries) -> Iterator[tuple[bytes, list[Place]]]:
    """Yield the keys of texts in sorted order, each with its tasks in the order of sources and lines."""
    for key, places in groupby(map(Place._make, entries.tolist()), attrgetter("key")):
        yield key, list(places)


class RunReader:
    """Reads texts and tasks from runs, which are opened when first read from, at most MOST_OPEN at a time."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """Take the runs of a partition."""
        self.runs = runs
        self._files: dict[int, int] = {}

    def __enter__(self) -> "RunReader":
        """Begin to read."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close all files."""
        for file in self._files.values():
            os.close(file)

    def read_text(self, place: Place) -> str:
        """Read the text of a task.

        RAISES (InputError): it doesn't match the key.
        """
        text = self._read(place.run, place.offset + place.task, place.text)
        if text_key(text) != place.key:
            folder = self.runs[place.run].path.parent.parent
            raise InputError(f"{folder}: the cache is damaged; delete it and run the merge again")
        return text.decode("utf8", "surrogatepass")

    def read_task(self, place: Place) -> Task:
        """Read a task, without its text."""
        return decode_task(self._read(place.run, place.offset, place.task))

    def _read(self, run: int, offset: int, length: int) -> bytes:
        if run not in self._files:
            if len(self._files) == MOST_OPEN:
                os.close(self._files.pop(next(iter(self._files))))
            self._files[run] = os.open(self.runs[run].path.with_suffix(".tasks"), os.O_RDONLY)
        return os.pread(self._files[run], length, offset)

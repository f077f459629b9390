"""Tasks on disk, in runs sorted by the keys of their texts, so that a merge holds the tasks of one text at a time.

What the merge needs from a slice of a source goes to runs, about a tenth of it, since tokens aren't needed: each is
held in memory once, sorted, and written. The tasks of one text are then together in every run, and the merge of a range
of keys reads nothing else.

A run is two files. `.index` has an ENTRY of 36 bytes for each task; `.tasks` has the tasks themselves as MessagePack,
each followed by its text, in the same order.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from labelwise.common.errors import InputError
from labelwise.common.keys import join_key, key_parts, text_key
from labelwise.common.memory import give_back
from labelwise.sources.prodigy import Task

# The key in two parts, the line in its source, a digest of the task without text, the number of its spans, and the
# lengths of task and text.
ENTRY = np.dtype(
    [
        *[("high", "<u8"), ("low", "<u4"), ("line", "<u4"), ("digest", "<u8")],
        *[("spans", "<u4"), ("task", "<u4"), ("text", "<u4")],
    ]
)
RUN_BYTES = 2**24  # of tasks that wait to be sorted
TASK_OVERHEAD = 400  # roughly the bytes of Python objects for a task that waits to be sorted
CELLS = 2**20  # ranges of keys, times runs, that are planned at a time: 12 MB

Entries = npt.NDArray[np.void]

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class Run(NamedTuple):
    """A run: its path without suffix, its source's position among all, the lines before its slice, and its tasks."""

    path: Path
    source: int
    base: int
    tasks: int


class Part(msgspec.Struct):
    """The tasks of a range of keys in one run.

    source, base (int): see `Run`.
    first, count (int): the entries in the index.
    offset (int): of the first in the `.tasks` file, in bytes.
    """

    path: Path
    source: int
    base: int
    first: int
    count: int
    offset: int


class TaskPlace(NamedTuple):
    """Where a task is: `task` bytes from `offset` in a run, followed by `text` bytes of text.

    line (int): in its source.
    spans (int): how many its row had.
    """

    part: Part
    line: int
    spans: int
    offset: int
    task: int
    text: int


class RunWriter:
    """Holds tasks until there are enough of them to be written, sorted, as a run.

    runs (list[tuple[int, int]]): of each run that was written the number of tasks, and the bytes of its `.tasks` file.
    """

    def __init__(self, out: Path) -> None:
        """Take the path that the paths of the runs begin with."""
        self.out = out
        self.runs: list[tuple[int, int]] = []
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
        entries = np.zeros(len(self._waiting), ENTRY)
        with path.with_suffix(".tasks").open("wb") as tasks, path.with_suffix(".index").open("wb") as index:
            for number, (key, line, spans, encoded, text) in enumerate(self._waiting):
                digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")
                entries[number] = (*key_parts(key), line, digest, spans, len(encoded), len(text))
                tasks.write(encoded)
                tasks.write(text)
            index.write(entries.tobytes())
            self.runs.append((len(entries), tasks.tell()))
        self._waiting, self._size = [], 0


def run_path(out: Path, number: int) -> Path:
    """Name a run of a slice; its two files have suffixes."""
    return out.with_name(f"{out.name}-{number}")


def read_index(path: Path, first: int = 0, count: int = -1) -> Entries:
    """Read entries of a run."""
    return np.fromfile(path.with_suffix(".index"), ENTRY, count, offset=first * ENTRY.itemsize)


def count_texts(runs: Sequence[Run], limit: int = 2**17) -> tuple[int, int]:
    """Count the distinct texts, and their bytes, in runs.

    Texts of more than `limit` tasks are estimated from a share of the keys: the estimate depends on the texts, not on
    how they are distributed over the runs.
    """
    shift = 0
    while sum(run.tasks for run in runs) >> shift > limit:
        shift += 1
    highs, lengths = [np.zeros(0, "<u8")], [np.zeros(0, "<u4")]
    for run in runs:
        index = read_index(run.path)
        end = np.searchsorted(index["high"], np.uint64((2**64 >> shift) - 1), side="right")
        # Copies, since a view keeps the whole array in memory.
        highs.append(index["high"][:end].copy())
        lengths.append(index["text"][:end].copy())
    distinct, first = np.unique(np.concatenate(highs), return_index=True)
    return len(distinct) << shift, int(np.concatenate(lengths)[first].sum()) << shift


def cut_runs(runs: Sequence[Run], of: int) -> Iterator[list[Part]]:
    """Cut all keys into equal ranges: yield the parts of the runs that each of them has, in the order of the runs.

    of (int): the number of ranges, a power of two.

    Some ranges are cut after others: for all at once, memory would grow with the number of ranges times that of runs,
    and so with the square of the data.
    """
    at_once = max(1, CELLS // max(1, len(runs)))
    for start in range(0, of, at_once):
        numbers = range(start, min(start + at_once, of))
        edges = np.array([(number << 64) // of for number in numbers[1:]], np.uint64)
        firsts = np.zeros((len(numbers) + 1, len(runs)), np.uint32)
        offsets = np.zeros((len(numbers) + 1, len(runs)), np.uint64)
        for column, run in enumerate(runs):
            entries = read_index(run.path)
            highs = entries["high"]
            begin = highs.searchsorted(np.uint64((start << 64) // of))
            stop = len(highs) if numbers.stop == of else highs.searchsorted(np.uint64((numbers.stop << 64) // of))
            cuts = np.concatenate([[begin], highs.searchsorted(edges), [stop]])
            ends = np.concatenate([[0], np.cumsum(entries["task"].astype(np.int64) + entries["text"])])
            firsts[:, column], offsets[:, column] = cuts, ends[cuts]
        give_back()  # what that took on the way: tens of megabytes where runs are many
        for row in range(len(numbers)):
            counts = firsts[row + 1] - firsts[row]
            yield [
                Part(*runs[i][:3], int(firsts[row, i]), int(counts[i]), int(offsets[row, i]))
                for i in np.flatnonzero(counts).tolist()
            ]


def find_texts(parts: Sequence[Part]) -> list[tuple[bytes, list[TaskPlace]]]:
    """List the texts of a range of keys, sorted by key, each with its tasks in the order of sources and lines."""
    texts: dict[bytes, list[TaskPlace]] = {}
    for part in parts:
        offset = part.offset
        for high, low, line, _, spans, task, text in read_index(part.path, part.first, part.count).tolist():
            place = TaskPlace(part, part.base + line, spans, offset, task, text)
            texts.setdefault(join_key(high, low), []).append(place)
            offset += task + text
    return sorted(texts.items())


class RunReader:
    """Reads texts and tasks from runs, which are opened when first read from, at most MOST at a time."""

    MOST = 200

    def __init__(self) -> None:
        """Open nothing yet."""
        self._files: dict[Path, int] = {}

    def __enter__(self) -> "RunReader":
        """Begin to read."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close all files."""
        for file in self._files.values():
            os.close(file)

    def read_text(self, key: bytes, place: TaskPlace) -> str:
        """Read the text of a task.

        RAISES (InputError): it doesn't match the key.
        """
        text = self._read(place.part.path, place.offset + place.task, place.text)
        if text_key(text) != key:
            raise InputError(
                f"{place.part.path.parent.parent}: the cache is damaged; delete it and run the merge again"
            )
        return text.decode("utf8", "surrogatepass")

    def read_task(self, place: TaskPlace) -> Task:
        """Read a task, without its text."""
        return decode_task(self._read(place.part.path, place.offset, place.task))

    def _read(self, path: Path, offset: int, length: int) -> bytes:
        if path not in self._files:
            if len(self._files) == self.MOST:
                os.close(self._files.pop(next(iter(self._files))))
            self._files[path] = os.open(path.with_suffix(".tasks"), os.O_RDONLY)
        return os.pread(self._files[path], length, offset)

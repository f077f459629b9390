"""Tasks on disk, sorted by the keys of their texts: the data sets once they have been read.

What the merge needs from a slice of a source goes to task files, about a tenth of it, since tokens aren't needed: each
is held in memory once, sorted, and written. The tasks of one text are then together in every task file, and a merge of
any range of keys reads nothing else.

A task file is a pair. `.index` has an ENTRY of 32 bytes for each task; `.tasks` has the tasks themselves as
MessagePack, each followed by its text, in the same order.
"""

import hashlib
import os
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from labelwise.common.keys import key_parts, text_key
from labelwise.sources.prodigy import Task

# The key in two parts, the line in its source, a digest of the task without text, and the lengths of task and text.
ENTRY = np.dtype(
    [("high", "<u8"), ("low", "<u4"), ("line", "<u4"), ("digest", "<u8"), ("task", "<u4"), ("text", "<u4")]
)
TASK_OVERHEAD = 400  # roughly the bytes of Python objects for a task that waits to be sorted

Entries = npt.NDArray[np.void]

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class KeyRange(msgspec.Struct):
    """The tasks of a range of keys in one task file.

    source (int): the position of its source among all.
    base (int): the number of lines before the slice of the source.
    first, count (int): the entries in the index.
    offset, size (int): the bytes in the `.tasks` file.
    """

    path: Path
    source: int
    base: int
    first: int
    count: int
    offset: int
    size: int


def task_file_path(out: Path, number: int) -> Path:
    """Name a task file of an extract; its two files have suffixes."""
    return out.with_name(f"{out.name}-{number}")


class TaskWriter:
    """Holds tasks until there are enough of them to be written, sorted, as a task file.

    tasks (list): those that wait: key, line, task and text.
    size (int): roughly the bytes of memory that they take.
    """

    def __init__(self, out: Path) -> None:
        """Take the path that the task files' paths begin with."""
        self.out = out
        self.tasks: list[tuple[bytes, int, bytes, bytes]] = []
        self.size = 0

    def add(self, line: int, task: Task) -> None:
        """Take one task, which loses its text."""
        text = (task.text or "").encode("utf8", "surrogatepass")
        task.text = None
        try:
            encoded = encode_task(task)
        except OverflowError:
            encoded = encode_task(_fit(task))
        self.tasks.append((text_key(text), line, encoded, text))
        self.size += len(encoded) + len(text) + TASK_OVERHEAD

    def write(self, file: int) -> tuple[int, int]:
        """Write a task file and forget its tasks.

        RETURNS (tuple): the number of tasks, and the bytes of the `.tasks` file.
        """
        self.tasks.sort()
        path = task_file_path(self.out, file)
        entries = np.zeros(len(self.tasks), ENTRY)
        with path.with_suffix(".tasks").open("wb") as tasks, path.with_suffix(".index").open("wb") as index:
            for number, (key, line, encoded, text) in enumerate(self.tasks):
                digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")
                entries[number] = (*key_parts(key), line, digest, len(encoded), len(text))
                tasks.write(encoded)
                tasks.write(text)
            index.write(entries.tobytes())
            written = len(entries), tasks.tell()
        self.tasks, self.size = [], 0
        return written


def _fit(task: Task) -> Task:
    """Replace values that hold integers of more than 64 bits, which MessagePack doesn't have; none is valid anyway."""
    for item in (task, *(task.spans or ())):
        for name in item.__struct_fields__:
            value = getattr(item, name)
            try:
                encode_task(value)
            except OverflowError:
                if name != "spans":
                    setattr(item, name, [str(value)])
    return task


def read_index(path: Path, first: int = 0, count: int = -1) -> Entries:
    """Read entries of a task file."""
    return np.fromfile(path.with_suffix(".index"), ENTRY, count, offset=first * ENTRY.itemsize)


def count_texts(files: list[tuple[Path, int]], limit: int = 2**17) -> tuple[int, int]:
    """Count the distinct texts, and their bytes, in task files, each given with its number of tasks.

    Texts of more than `limit` tasks are estimated from a share of the keys: the estimate depends on the texts, not on
    how they are distributed over the files.
    """
    shift = 0
    while sum(count for _, count in files) >> shift > limit:
        shift += 1
    highs, lengths = [np.zeros(0, "<u8")], [np.zeros(0, "<u4")]
    for path, _ in files:
        index = read_index(path)
        end = np.searchsorted(index["high"], np.uint64((2**64 >> shift) - 1), side="right")
        # Copies, since a view keeps the whole array in memory.
        highs.append(index["high"][:end].copy())
        lengths.append(index["text"][:end].copy())
    distinct, first = np.unique(np.concatenate(highs), return_index=True)
    return len(distinct) << shift, int(np.concatenate(lengths)[first].sum()) << shift


class TaskReader:
    """Reads from task files; they are opened when first read from, at most MOST at a time."""

    MOST = 200

    def __init__(self) -> None:
        """Open nothing yet."""
        self.files: dict[Path, int] = {}

    def __enter__(self) -> "TaskReader":
        """Begin to read."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close all files."""
        for file in self.files.values():
            os.close(file)

    def read(self, path: Path, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset`."""
        if path not in self.files:
            if len(self.files) == self.MOST:
                os.close(self.files.pop(next(iter(self.files))))
            self.files[path] = os.open(path.with_suffix(".tasks"), os.O_RDONLY)
        return os.pread(self.files[path], length, offset)

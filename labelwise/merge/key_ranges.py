"""Where the tasks of ranges of keys are in many task files; see `task_store`."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelwise.merge.task_store import ENTRY, Entries

# A range of keys in a task file: the number of the range, its first entry, how many, and the same in bytes.
CELL = np.dtype(
    [("number", "<u4"), ("file", "<u4"), ("first", "<u4"), ("count", "<u4"), ("offset", "<u8"), ("size", "<u8")]
)
AT_ONCE = 2**16  # entries that are looked at together: numpy takes as long for one as for a hundred

Cells = npt.NDArray[np.void]


class KeyRanges:
    """Cuts all keys into ranges of equal width, and task files with them, some ranges after others."""

    def __init__(self, files: Sequence[tuple[Path, int]], of: int) -> None:
        """Take the task files, each with its number of tasks, and the number of ranges, a power of two."""
        self.indexes = [os.fspath(path.with_suffix(".index")) for path, _ in files]
        self.of, self.bits = of, of.bit_length() - 1
        self.left = np.array([tasks for _, tasks in files], np.int64)
        self.firsts, self.offsets = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        self.done, self.end = 0, 0  # ranges, and the least key behind them, in its first 64 bits

    def take(self, count: int) -> Cells:
        """Return a CELL for each of the next `count` ranges in each file that has entries of it, sorted by range."""
        share = count / (self.of - self.done)  # of the ranges that were left
        self.done += count
        self.end = (self.done << 64) // self.of
        files = range(len(self.indexes))
        step = max(1, int(AT_ONCE / max(1, self.left.max(initial=0) * share)))
        found = np.concatenate(
            [np.zeros(0, CELL), *(self._cut(files[start : start + step], share) for start in files[::step])]
        )
        return found[np.argsort(found["number"], kind="stable")]

    def _cut(self, files: range, share: float) -> Cells:
        """Cut what the next ranges have of some files."""
        read = [self._read(file, share) for file in files]
        lengths = np.array([len(entries) for entries in read])
        begins = np.cumsum(lengths) - lengths  # of each file
        entries = np.concatenate(read)
        file = np.repeat(np.arange(len(files)), lengths)
        number = entries["high"] >> np.uint64(63 - self.bits) >> np.uint64(1)
        ends = np.concatenate([[0], np.cumsum(entries["task"].astype(np.int64) + entries["text"])])
        new = np.ones(len(entries), bool)
        new[1:] = (np.diff(file) != 0) | (np.diff(number) != 0)
        cuts = np.flatnonzero(new)
        cells, of = np.zeros(len(cuts), CELL), file[cuts]
        cells["number"], cells["file"] = number[cuts], of + files.start
        cells["first"] = cuts - begins[of] + self.firsts[files.start : files.stop][of]
        cells["offset"] = ends[cuts] - ends[begins][of] + self.offsets[files.start : files.stop][of]
        behind = np.append(cuts[1:], len(entries))
        cells["count"], cells["size"] = behind - cuts, ends[behind] - ends[cuts]
        self.firsts[files.start : files.stop] += lengths
        self.left[files.start : files.stop] -= lengths
        self.offsets[files.start : files.stop] += ends[begins + lengths] - ends[begins]
        return cells

    def _read(self, file: int, share: float) -> Entries:
        """Read the entries of the next ranges; as keys are random, about a share of those that are left."""
        left, first = int(self.left[file]), int(self.firsts[file])
        count = int(left * share + 4 * (left * share) ** 0.5) + 4
        index = os.open(self.indexes[file], os.O_RDONLY)
        try:
            while True:
                content = os.pread(index, min(count, left) * ENTRY.itemsize, first * ENTRY.itemsize)
                entries = np.frombuffer(content, ENTRY)
                end = len(entries) if self.done == self.of else int(entries["high"].searchsorted(np.uint64(self.end)))
                if end < len(entries) or len(entries) == left:
                    return entries[:end]
                count *= 2
        finally:
            os.close(index)

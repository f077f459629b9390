"""Ranges of keys are cut out of task files a block after another, as a plain loop over all entries has them."""

import random
from itertools import groupby

import numpy as np
import pytest

from labelwise.merge import key_ranges
from labelwise.merge.key_ranges import KeyRanges
from labelwise.merge.task_store import ENTRY, read_index


def write_index(path, keys: list[int], rng: random.Random) -> tuple:
    """Write the index of a task file with these keys, its tasks being of different sizes."""
    entries = np.zeros(len(keys), ENTRY)
    entries["high"] = sorted(keys)
    entries["task"], entries["text"] = ([rng.randrange(9) for _ in keys] for _ in range(2))
    path.with_suffix(".index").write_bytes(entries.tobytes())
    return path, len(keys)


def plain_cells(files: list[tuple], of: int) -> list[tuple]:
    """All cells: number, file, first, count, offset, size."""
    found = []
    for file, (path, _) in enumerate(files):
        first = offset = 0
        rows = read_index(path).tolist()
        for number, group in groupby(rows, lambda row: row[0] * of >> 64):
            sizes = [row[4] + row[5] for row in group]
            found.append((number, file, first, len(sizes), offset, sum(sizes)))
            first, offset = first + len(sizes), offset + sum(sizes)
    return sorted(found)


@pytest.mark.parametrize("at_once", [1, 40, 10_000])
@pytest.mark.parametrize(("of", "block"), [(1, 1), (64, 1), (64, 3), (64, 64), (2**20, 2**18)])
def test_cells_are_those_of_a_plain_loop(tmp_path, monkeypatch, of, block, at_once):
    monkeypatch.setattr(key_ranges, "AT_ONCE", at_once)
    rng = random.Random(0)
    keys = [
        [rng.randrange(2**64) for _ in range(50)],
        [],
        [rng.randrange(2**58) for _ in range(200)],  # far more in the first ranges than their share
        [0, 2**64 - 1, 2**63, 2**63 - 1],
        [rng.randrange(2**64) for _ in range(300)],
    ]
    files = [write_index(tmp_path / str(number), found, rng) for number, found in enumerate(keys)]
    ranges = KeyRanges(files, of)
    found = [cell for start in range(0, of, block) for cell in ranges.take(min(block, of - start)).tolist()]
    assert found == plain_cells(files, of)


def test_no_file_has_no_cell():
    assert not len(KeyRanges([], 4).take(4))

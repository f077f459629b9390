"""Runs are cut into ranges of keys as a plain loop over all entries has them."""

import random
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from labelwise.merge import runs
from labelwise.merge.runs import ENTRY, Run, cut_runs, read_index


def write_index(path: Path, keys: list[int], rng: random.Random) -> None:
    """Write the index of a run with these keys, its tasks being of different sizes."""
    entries = np.zeros(len(keys), ENTRY)
    entries["high"] = sorted(keys)
    entries["task"], entries["text"] = ([rng.randrange(9) for _ in keys] for _ in range(2))
    path.with_suffix(".index").write_bytes(entries.tobytes())


def plain_parts(made: list[Run], of: int) -> list[list[tuple]]:
    """The parts of each range: source, base, first, count, offset."""
    found: list[list[tuple]] = [[] for _ in range(of)]
    for run in made:
        first = offset = 0
        rows = [dict(zip(ENTRY.names, row, strict=True)) for row in read_index(run.path).tolist()]
        for number, group in groupby(rows, lambda row: row["high"] * of >> 64):
            sizes = [row["task"] + row["text"] for row in group]
            found[number].append((run.source, run.base, first, len(sizes), offset))
            first, offset = first + len(sizes), offset + sum(sizes)
    return found


@pytest.mark.parametrize("cells", [1, 12, 2**20])
@pytest.mark.parametrize("of", [1, 2, 64, 2**12])
def test_parts_are_those_of_a_plain_loop(tmp_path, monkeypatch, of, cells):
    monkeypatch.setattr(runs, "CELLS", cells)
    rng = random.Random(0)
    keys = [
        [rng.randrange(2**64) for _ in range(50)],
        [],
        [rng.randrange(2**58) for _ in range(200)],  # far more in the first ranges than their share
        [0, 2**64 - 1, 2**63, 2**63 - 1],
        [rng.randrange(2**64) for _ in range(300)],
    ]
    made = []
    for number, found in enumerate(keys):
        write_index(tmp_path / str(number), found, rng)
        made.append(Run(tmp_path / str(number), number // 2, number, len(found)))
    parts = [
        [(part.source, part.base, part.first, part.count, part.offset) for part in parts]
        for parts in cut_runs(made, of)
    ]
    assert parts == plain_parts(made, of)


def test_ranges_without_runs_are_empty():
    assert list(cut_runs([], 4)) == [[], [], [], []]

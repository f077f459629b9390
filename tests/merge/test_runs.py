"""Entries of runs are cut into ranges of keys as a plain loop over all of them has it."""

import random
from itertools import groupby
from pathlib import Path

import pytest

from labelwise.merge import runs
from labelwise.merge.runs import Place, Run, RunReader, RunWriter, Source, count_texts, cut_runs, read_texts
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task

SOURCE = Source(0, DataSet("a", (Path("a.jsonl"),), ("A",)), Path("a.jsonl"))


def write_run(path: Path, texts: list[str]) -> list[Run]:
    """Write tasks, each with the number of its text as its time, as one run or none."""
    writer = RunWriter(path)
    for line, text in enumerate(texts, 1):
        writer.add(line, Task(text, timestamp=line))
    writer.write()
    return [Run(runs.run_path(path, number), SOURCE, 0, tasks) for number, tasks in enumerate(writer.runs)]


def all_places(made: list[Run], of: int) -> list[list[tuple[bytes, list[Place]]]]:
    return [list(read_texts(entries)) for entries in cut_runs(made, of)]


@pytest.mark.parametrize("at_once", [1, 40, 2**17])
@pytest.mark.parametrize("of", [1, 2, 64, 2**12])
def test_ranges_have_the_tasks_of_their_keys_in_the_order_of_runs_and_lines(tmp_path, monkeypatch, of, at_once):
    monkeypatch.setattr(runs, "AT_ONCE", at_once)
    rng = random.Random(0)
    texts = [[f"text {rng.randrange(90)}" for _ in range(size)] for size in (50, 0, 200, 1)]
    made = [run for number, found in enumerate(texts) for run in write_run(tmp_path / str(number), found)]
    expected = sorted(
        (runs.text_key(text.encode()), number, line, text)
        for number, found in enumerate(filter(None, texts))
        for line, text in enumerate(found, 1)
    )
    ranges = all_places(made, of)
    assert len(ranges) == of
    assert all(int.from_bytes(key, "big") * of >> 96 == number for number, one in enumerate(ranges) for key, _ in one)
    found = [found for one in ranges for found in one]
    assert [(key, [place[1:3] for place in places]) for key, places in found] == [
        (key, [one[1:3] for one in group]) for key, group in groupby(expected, lambda one: one[0])
    ]
    with RunReader(made) as reader:
        for (_, places), (_, group) in zip(found, groupby(expected, lambda one: one[0]), strict=True):
            for place, (*_, line, text) in zip(places, group, strict=True):
                assert (reader.read_text(place), reader.read_task(place).timestamp) == (text, line)


def test_ranges_without_runs_are_empty():
    assert all_places([], 4) == [[], [], [], []]
    assert count_texts([]) == (0, 0)


def test_texts_are_counted_or_estimated(tmp_path):
    texts = [f"text number {number}" for number in range(600)]
    made = [*write_run(tmp_path / "a", texts), *write_run(tmp_path / "b", texts[100:])]
    assert count_texts(made) == (600, sum(map(len, texts)))
    number, size = count_texts(made, limit=300)
    assert abs(number - 600) < 150
    assert abs(size - sum(map(len, texts))) < 2500

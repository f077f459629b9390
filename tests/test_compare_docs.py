"""The script that compares two corpora sees what differs in their Docs, and nothing else."""

import pytest

from tests.compare_docs import differences

TASKS = [{"text": "one two", "spans": [{"start": 0, "end": 3, "label": "A"}]}, {"text": "three", "spans": []}]
AS_B = [{"text": "one two", "spans": [{"start": 0, "end": 3, "label": "B"}]}, {"text": "three", "spans": []}]


@pytest.mark.parametrize(
    ("tasks", "declared", "expected"),
    [
        (TASKS[::-1], {"labels": ["A"]}, []),
        ([*TASKS, {"text": "new"}], {"labels": ["A"]}, ["only in"]),
        (AS_B, {"labels": ["A", "B"]}, ["entities", "gold"]),
        (TASKS, {"labels": ["A"], "split": "dev"}, ["split", "split"]),
    ],
)
def test_differences_of_docs_are_found(merging, tasks, declared, expected):
    merging.add("a", ["A"], TASKS)
    merging.run("before", dev_ratio=0, test_ratio=0)
    merging.declared.clear()
    merging.add("b", rows=tasks, **declared)
    merging.run("after", dev_ratio=0, test_ratio=0, docs_per_partition=1)
    found = list(differences(merging.root / "before", merging.root / "after"))
    assert len(found) == len(expected)
    assert all(f": {field}" in line for field, line in zip(expected, found, strict=True))

from pathlib import Path

import pytest

from labelwise.annotations import Span, Task
from labelwise.datasets.declarations import DataSet
from labelwise.merge.rules.answers import make_answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Policies, choose_duplicates
from labelwise.sources.files import SourceFile

FILE = SourceFile(Path("a"), "a")
A = DataSet(name="a", labels=("X",))
UNION = DataSet(name="b", labels=("X",), duplicates="union")
LATEST = DataSet(name="c", labels=("X",), duplicates="latest")


@pytest.mark.parametrize(
    ("datasets", "policy", "kept"),
    [
        ([A, A], "latest", [1]),
        ([UNION, UNION], "latest", [0, 1]),
        ([LATEST, LATEST], "union", [1]),
        ([A, UNION, UNION], "latest", [1, 2]),
        ([UNION, UNION, A], "latest", [2]),
        ([UNION, A, UNION, A], "union", [0, 1, 2, 3]),
        ([LATEST, A, LATEST], "union", [1, 2]),
    ],
)
def test_a_data_set_chooses_among_its_own_answers_first(datasets, policy, kept):
    answers = [make_answer(n, Task(n, "text", when=float(n)), dataset, FILE) for n, dataset in enumerate(datasets)]
    assert [one.number for one in choose_duplicates(answers, policy)] == kept


@pytest.mark.parametrize(
    ("own", "lost", "gold"), [("", "superseded", False), ("latest", "superseded", False), ("union", "conflict", True)]
)
def test_verdicts_on_a_span_are_chosen_by_it_too(own, lost, gold):
    dataset = DataSet(name="a", labels=("X",), duplicates=own)
    tasks = [
        Task(n, "text", (Span(0, 4, "X"),), (), verdict, "binary") for n, verdict in enumerate(["accept", "reject"])
    ]
    merged = merge_text("text", [make_answer(n, task, dataset, FILE) for n, task in enumerate(tasks)], Policies())
    assert ({outcome.reason for outcome in merged.spans.values()}, bool(merged.gold)) == ({lost}, gold)

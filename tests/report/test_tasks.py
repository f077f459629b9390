"""What to do about a label, by what its errors are."""

import pytest

from labelwise.corpus.merge_counts import MergeCounts
from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.scores import Details, Errors, Familiarity, Found
from labelwise.report.tasks import FIX, Pace, Task, choose, first_tasks, list_labels, open_lists
from tests.evaluate.test_ranking import make_metrics

NOTHING = Found()


def chosen(
    errors: Errors,
    variously: Found = NOTHING,
    never: Found = NOTHING,
    contradicted: int = 0,
    pipeline: str = "cpu",
) -> tuple[str, str]:
    (row,) = rank_labels(make_metrics({"A": errors}))
    task = choose(row, [NOTHING, variously, never], contradicted, "A.jsonl", Pace(), pipeline)
    return task.do, task.file


@pytest.mark.parametrize(
    ("found", "do", "file"),
    [
        ({"errors": Errors(60)}, "leave it", ""),
        ({"errors": Errors(60, 9), "variously": Found(20, 12, 8)}, "leave it", ""),
        (
            {"errors": Errors(60, 9), "variously": Found(20, 11, 9)},
            "decide which of its words count",
            "training/check/tasks/A.jsonl",
        ),
        ({"errors": Errors(60, 9), "never": Found(80, 72, 8)}, "leave it", ""),
        ({"errors": Errors(60, 9), "never": Found(80, 71, 9)}, "annotate 50 more texts", "to-annotate/A.jsonl"),
        ({"errors": Errors(60, 9), "variously": Found(9, 0, 9)}, "leave it", ""),
        ({"errors": Errors(60, 9, 3, 1), "never": Found(20, 11, 9)}, "annotate 50 more texts", "to-annotate/A.jsonl"),
        ({"errors": Errors(60, 9, 3, 1), "never": Found(20, 4, 9)}, "a transformer, or word vectors", ""),
        (
            {"errors": Errors(60, 9, 3, 1), "never": Found(20, 4, 9), "pipeline": "gpu"},
            "annotate 50 more texts",
            "to-annotate/A.jsonl",
        ),
        ({"errors": Errors(60, 9, 3, 1), "never": Found(4, 3, 1)}, "leave it", ""),
        ({"errors": Errors(60, 3, 9, 1)}, "look at what is found but not marked", "training/check/tasks/A.jsonl"),
        ({"errors": Errors(60, 3, 9, 5)}, "decide where it begins and ends", "training/check/tasks/A.jsonl"),
        ({"errors": Errors(60, 3, 9, 5), "contradicted": 1}, "fix annotations", "training/check/tasks/A.jsonl"),
        (
            {"errors": Errors(60, 3, 9, 5), "contradicted": 0},
            "decide where it begins and ends",
            "training/check/tasks/A.jsonl",
        ),
        (
            {"errors": Errors(60, 3, 9, unjudged=69)},
            "look at what is found but not marked",
            "training/check/tasks/A.jsonl",
        ),
        (
            {"errors": Errors(60, 3, 9, unjudged=70)},
            "annotate 100 random test texts for A, or declare it absent",
            "training/check/test/A.jsonl",
        ),
    ],
)
def test_what_costs_the_most_is_answered(found, do, file):
    found = {"errors": Errors(), **found}
    assert chosen(**found) == (do, file)


def test_labels_with_few_test_spans_have_no_task_and_if_all_have_few_test_texts_come_first():
    few, many = Errors(10, 5), Errors(60, 3, 9)
    metrics = make_metrics({"FEW": few, "MANY": many, "FINE": Errors(70)})
    assert [task.label for task in first_tasks(list_labels(metrics, None), metrics)] == ["MANY"]
    metrics = make_metrics({"FEW": few, "FEWER": Errors(3, 1)}, texts=30)
    (task,) = first_tasks(list_labels(metrics, None), metrics)
    assert (task.label, task.do) == ("", "annotate 10 test texts more")


@pytest.mark.parametrize(
    ("alike", "scores", "why"),
    [
        (Found(100, 49, 51), [0.6, 0.6], "only 49 of 100 spans found whose words train marks alike"),
        (Found(100, 50, 50), [0.6, 0.6], None),
        (Found(9, 0, 9), [0.6, 0.6], None),
        (Found(10, 4, 6), [0.6], "only 4 of 10 spans found whose words train marks alike"),
        (NOTHING, [0.6], None),
        (NOTHING, [0.6, 0.7, 0.706], "F1 on dev still rises: by 0.6 points at the last evaluation"),
        (NOTHING, [0.6, 0.7, 0.704], None),
        (NOTHING, [0.6, 0.7, 0.69, 0.71], None),  # no higher above the best than it fell
        (NOTHING, [0.6, 0.7, 0.69, 0.72], "F1 on dev still rises: by 2.0 points at the last evaluation"),
        (NOTHING, [0.7, 0.6, 0.69], None),
    ],
)
def test_an_undertrained_pipeline_is_trained_longer_before_anything_else(alike, scores, why):
    """Fewer than half of the words that train marks alike are found, or dev still rises, by more than noise."""
    metrics = make_metrics({"FEW": Errors(10, 5), "FEWER": Errors(3, 1)}, texts=30)
    details = Details({}, {}, {}, familiarity=Familiarity({"FEW": {"alike": alike}, "FEWER": {}}))
    curve = {"step": [200.0 * n for n in range(1, len(scores) + 1)], "score": scores}
    rows, steps = list_labels(metrics, details), 400 * len(scores)
    for pipeline, command in (("cpu", "weasel run all"), ("gpu", "weasel run gpu")):
        (*longer, texts) = first_tasks(rows, metrics, details, curve, pipeline)
        assert texts.do == "annotate 10 test texts more"
        do = f"train longer ({pipeline}_steps: {steps} in project.yml)"
        assert longer == ([Task("", do, why, command=command)] if why else [])


def test_time_is_told_by_the_answers_of_the_data_sets_about_a_label():
    metrics = make_metrics({"A": Errors(60, 3, 9), "B": Errors(61, 3, 9)}, texts=20)
    merge = MergeCounts({}, {}, {}, complete={"a": {"A": 9}, "c": {"A": 1}}, seconds={"a": 14, "c": 20, "d": 1})
    times = {row.ranked.label: row.task.time for row in list_labels(metrics, None, merge)}
    assert times == {
        "A": "the first 50 findings: 12 minutes at 14 s a text",
        "B": "the first 50 findings: 5 minutes at 6 s a span",
    }
    assert Pace().tell(100, 3.0) == "30 minutes at 6 s a span"


def test_a_list_that_is_there_is_opened_with_all_labels_of_its_data_set(tmp_path):
    """An answer that is saved again is about all of them."""
    file = tmp_path / "training" / "check" / "tasks" / "B.jsonl"
    file.parent.mkdir(parents=True)
    file.touch()
    tasks = [Task(label, "fix", "", f"training/check/tasks/{label}.jsonl", FIX) for label in "BC"]
    tasks.append(Task("B", "annotate", "", "to-annotate/B.jsonl", "weasel run predict"))
    commands = [task.command for task in open_lists(tasks, tmp_path, "es", {"x": ["A"], "y": ["B", "C"]})]
    opened = "prodigy ner.manual y blank:es training/check/tasks/B.jsonl --label B,C"
    assert commands == [opened, FIX, "weasel run predict"]


@pytest.mark.parametrize(
    ("contradicted", "fixed"),
    [({"A": 2}, []), ({"A": 3}, ["A"]), ({"B": 3}, []), ({"B": 4}, ["B"]), ({"A": 2, "B": 4}, ["B", "A"])],
)
def test_annotations_are_fixed_where_contradictions_are_many(contradicted, fixed):
    """Three, and a hundredth of the label's gold; one, if they are a hundredth of all; and a fifth of those missed."""
    metrics = make_metrics({"A": Errors(91, 9, 2), "B": Errors(382, 18, 2)})
    details = Details({}, {}, {}, familiarity=Familiarity(contradicted=contradicted))
    rows = list_labels(metrics, details)
    assert [row.ranked.label for row in rows if row.task.do == "fix annotations"] == fixed

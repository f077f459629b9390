"""doccano's JSONL, in all its forms."""

import json

import pytest

from labelwise.sources import doccano
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import Task
from tests.conftest import Merging

ENTITY = {"id": 7, "label": "A", "start_offset": 4, "end_offset": 8}


def read(tmp_path, *rows) -> list:
    path = tmp_path / "a.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return list(read_items(path))


@pytest.mark.parametrize(
    "marked",
    [
        {"label": [[4, 8, "A"]]},
        {"labels": [[4, 8, "A"]]},
        {"entities": [[4, 8, "A"]]},
        {"entities": [ENTITY], "relations": []},
    ],
)
def test_each_form_has_the_same_spans(tmp_path, marked):
    (item,) = read(tmp_path, {"id": 3, "text": "Add 5 mL", **marked, "username": "ann"})
    assert [(span.start, span.end, span.label) for span in item.task.spans] == [(4, 8, "A")]
    assert (item.task.annotator_id, item.task.meta, item.task.answer) == ("ann", {"doc": "3"}, "accept")


def test_what_cannot_be_used_is_told_and_costs_nothing_else(tmp_path):
    items = read(
        tmp_path,
        {"text": "one", "label": []},
        "{oops",
        "",
        "[]",
        {"text": 3, "label": []},
        {"text": "two", "annotations": [{"label": 7, "start_offset": 0, "end_offset": 3}]},
        {"text": "three", "label": None},
        {"text": "four", "label": [[0, 4], "x", [0, 4, "A"]]},
    )
    assert [(item.line, item.problem) for item in items if item.problem] == [
        (2, "bad JSON"),
        (4, "malformed: Expected `object`, got `array`"),
        (5, "malformed: Expected `str | null`, got `int` - at `$.text`"),
        (6, "malformed: its labels are numbers; export them as text"),
        (7, "not annotated: no list of spans"),
    ]
    assert [span.label for span in items[-1].task.spans] == [None, None, "A"]


@pytest.mark.parametrize(
    ("predicted", "unchanged"),
    [
        ([[4, 8, "A"], [0, 3, "B"]], True),
        ([[4, 8, "A"]], False),
        ([], False),
        (None, False),
        ("yes", False),
        ([3], False),
    ],
)
def test_a_row_says_what_was_predicted(tmp_path, predicted, unchanged):
    """As pandas writes it for a row that hasn't said it, too; spans that can't be used are compared as they are."""
    (item,) = read(tmp_path, {"id": 1, "text": "Add 5 mL", "label": [[0, 3, "B"], [4, 8, "A"]], "predicted": predicted})
    assert item.task.meta == {"doc": "1"} | ({"predicted": "yes"} if unchanged else {})
    (item,) = read(tmp_path, {"text": "x", "label": [[None, 3]], "predicted": [[None, 3], None]})
    assert item.task.meta is None


@pytest.mark.parametrize("empty", ["label", "labels", "entities"])
def test_a_list_that_is_empty_does_not_hide_another(tmp_path, empty):
    marked = {"label": [[4, 8, "A"]], "entities": [ENTITY]}
    first, second = read(tmp_path, {"text": "Add 5 mL", **marked}, {"text": "Add 5 mL", **marked, empty: []})
    assert [len(item.task.spans) for item in (first, second)] == [1, 1]
    (item,) = read(tmp_path, {"text": "Add 5 mL", **marked, "labels": [[0, 3, "A"]]})
    assert (item.task, item.problem) == (None, "malformed: its label and labels and entities differ; keep one of them")


def test_spans_that_get_lost_are_miscounted(tmp_path, monkeypatch):
    """As if they were read by code that is wrong."""
    monkeypatch.setattr(doccano, "Task", lambda text, spans, **rest: Task(text, spans[:3], **rest))
    (item,) = read(tmp_path, {"text": "Add 5 mL", "label": [[n, n + 1, "A"] for n in range(5)]})
    assert (len(item.task.spans), item.problem) == (3, "miscounted: 5 spans, of which 3 were read")


def test_it_is_merged_and_the_ledger_balances(merging: Merging):
    rows = [{"id": n, "text": f"Add {n} mL", "label": [[4, 8, "A"], [0, 99, "A"]]} for n in range(1, 4)]
    merging.add("a", ["A"], [*rows, "{oops"])
    ledger = merging.run()
    assert (ledger.rows["merged"], ledger.rows["bad JSON"]) == (3, 1)
    assert (ledger.spans["entity"], ledger.spans["invalid"]) == (3, 3)

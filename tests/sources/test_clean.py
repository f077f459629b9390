import pytest

from labelwise.annotations import Span, rename_labels
from labelwise.sources.clean import RawSpan, clean

TEXT = " Add\t5 mL "


@pytest.mark.parametrize(
    ("raw", "span"),
    [
        (RawSpan(1, 4, "A"), Span(1, 4, "A")),
        (RawSpan(0, 5, "A", "reject"), Span(1, 4, "A", "reject")),  # trimmed
        (RawSpan(5, 10, "A", place=("a.ann", 3)), Span(5, 9, "A", None, "a.ann", 3)),
        *((RawSpan(1, 4, "A", verdict), Span(1, 4, "A", "ignore")) for verdict in ("skip", 1, [], "ignore", False)),
        (RawSpan(4, 5, "A"), Span(0, 0, "A", problem="A 4 5: white space alone")),  # white space alone
        (RawSpan(9, 11, "A"), Span(0, 0, "A", problem="A 9 11: the text has 10 characters")),
        (RawSpan(4, 4, "A"), Span(0, 0, "A", problem="A 4 4: its end isn't after its start")),
        (RawSpan(-1, 4, "A"), Span(0, 0, "A", problem="A -1 4: its start is below 0")),
        (RawSpan(True, 4, "A"), Span(0, 0, "A", problem="A True 4: start isn't an integer")),
        (RawSpan(1.5, 4, "A", "accept"), Span(0, 0, "A", "accept", problem="A 1.5 4: start isn't an integer")),
        (RawSpan("1", "4", "A"), Span(1, 4, "A")),
        (
            RawSpan("1", "\u0664", 7, 7),
            Span(0, 0, "7", "ignore", problem="7 1 \u0664: end isn't an integer, label isn't a string"),
        ),
        (RawSpan(), Span(0, 0, "None", problem="None None None: no start, no end, no label")),
    ],
)
def test_a_span_is_trimmed_and_one_that_cannot_be_used_costs_itself(raw, span):
    task = clean(1, TEXT, [raw, RawSpan(1, 4, "B")])
    assert (*task.spans[:-1], *task.unusable) == (span,)
    assert task.spans[-1] == Span(1, 4, "B")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"answer": "reject"}, {"answer": "reject"}),
        ({"answer": "skip"}, {"answer": "skip"}),
        ({"answer": None}, {"answer": "none"}),
        ({"who": (None, "ann")}, {"who": "ann"}),
        ({"who": ("", 3)}, {"who": ""}),
        ({"when": 5}, {"when": 5.0}),
        *(({"when": value}, {"when": None}) for value in ("5", True, 2**63, -(10.0**30), [])),
        ({"meta": {"doc": 3, "x": [1], "y": None}}, {"doc": "3", "meta": {"x": "[1]"}}),
        ({"meta": {"predicted": ""}}, {"predicted": True}),
        ({"meta": {"predicted": None, "doc": None}}, {"predicted": False, "doc": ""}),
        ({"meta": "doc"}, {"meta": {}, "doc": ""}),
    ],
)
def test_a_value_that_cannot_be_used_counts_as_missing(keys, expected):
    task = clean(1, TEXT, **keys)
    assert {name: getattr(task, name) for name in expected} == expected


def test_labels_are_renamed_once_and_keep_their_old_names():
    task = clean(1, TEXT, [RawSpan(1, 4, "A"), RawSpan(1, 4, "B"), RawSpan(0, 0, "A"), RawSpan(1, 4, "C")])
    renamed = rename_labels(task, {"A": "B", "B": "A"})
    assert [(span.label, span.renamed) for span in renamed.spans] == [("B", "A"), ("A", "B"), ("C", "")]
    assert renamed.unusable == (Span(0, 0, "B", renamed="A", problem="A 0 0: its end isn't after its start"),)
    covered = clean(1, TEXT, uncovered={"A": "none", "C": "partial"})
    assert rename_labels(covered, {"A": "B"}).uncovered == {"B": "none", "C": "partial"}
    assert rename_labels(task, {}) is task

"""The merge of one text, where the oracle doesn't look: absent labels, errors, bad spans, declared splits."""

from collections import Counter
from pathlib import Path

import pytest

from labelwise.corpus.ledger import outcome_of
from labelwise.errors import InputError
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import COVERAGE, Policies
from labelwise.merge.text_result import find_problems
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan
from tests.merge.rules.texts import make_answer, rows_of, said, spans_of

TEXT = "Add 5 mL of Jordan water."
WATER, JORDAN, AMOUNT = (12, 24, "Reagent"), (12, 18, "Place"), (4, 8, "Amount")


def dataset(name="a", labels=("Reagent", "Place", "Amount"), kind="complete", split="auto", absent=()) -> DataSet:
    return DataSet(name, (Path(f"{name}.jsonl"),), tuple(labels), kind, split, absent=tuple(absent))


def answer(*spans, line=1, answer="accept", time=None, data=None) -> Answer:
    """One task; a span is (start, end, label) or (start, end, label, answer)."""
    task = Task(TEXT, [TaskSpan(*span) for span in spans], answer=answer, timestamp=time)
    return make_answer(data or dataset(), line, task)


def merge(*answers, split=None, **policies):
    return merge_text(TEXT, answers, Policies(**policies), split)


def test_data_sets_unite_and_each_covers_its_labels():
    merged = merge(
        answer(WATER, data=dataset("r", ["Reagent"])),
        answer(data=dataset("p", ["Place"])),
        answer(AMOUNT, WATER, data=dataset("x", ["Amount", "Reagent"])),
    )
    assert said(merged.accepted) == {AMOUNT: ["x"], WATER: ["r", "x"]}
    assert merged.coverage == {"Reagent": "complete", "Place": "complete", "Amount": "complete"}
    assert (rows_of(merged), spans_of(merged)) == (Counter(merged=3), Counter(duplicate=1))


@pytest.mark.parametrize(
    ("given", "kind", "coverage"),
    [
        ({}, "complete", {"Reagent": "complete", "Place": "complete"}),
        ({}, "binary", {"Reagent": "partial", "Place": "complete"}),
        # an answer that says nothing doesn't say this either
        ({"answer": "reject"}, "complete", {}),
        ({"answer": "ignore"}, "binary", {}),
    ],
)
def test_a_text_is_complete_for_labels_that_are_absent_from_its_data_set(given, kind, coverage):
    merged = merge(answer(WATER, data=dataset("r", ["Reagent"], kind, absent=["Place"]), **given))
    assert merged.coverage == coverage


def test_duplicates_can_be_an_error_that_names_file_and_lines():
    message = r"a\.jsonl:3, a\.jsonl:7: data set 'a' answers one text more than once; choose latest or union"
    with pytest.raises(InputError, match=message):
        merge(answer(line=3), answer(line=7), duplicates="error")
    binary = dataset(kind="binary")
    with pytest.raises(InputError, match=message):
        merge(answer(WATER, line=3, data=binary), answer(WATER, line=7, data=binary), duplicates="error")
    assert rows_of(merge(answer(WATER), answer(answer="ignore"), duplicates="error")) == {"merged": 1, "ignored": 1}


@pytest.mark.parametrize(
    ("first", "last", "accepted"), [("accept", "reject", False), ("reject", "accept", True), ("accept", "ignore", True)]
)
def test_of_two_judgements_of_a_data_set_on_a_span_the_latest_counts(first, last, accepted):
    binary = dataset("b", kind="binary")
    answers = [answer(WATER, line=1, answer=first, data=binary), answer(WATER, line=2, answer=last, data=binary)]
    merged = merge(*answers)
    assert (list(merged.accepted), list(merged.rejected)) == ([WATER] * accepted, [WATER] * (not accepted))


@pytest.mark.parametrize(
    ("span", "outcome"),
    [
        ((None, 3, "Place"), "invalid"),
        ((0, 3, None), "invalid"),
        ((5, 3, "Place"), "invalid"),
        ((-1, 3, "Place"), "invalid"),
        ((0, len(TEXT) + 1, "Place"), "invalid"),
        ((3, 4, "Place"), "invalid"),  # a space
        (("3", 4, "Place"), "invalid"),
        ((0, 3.5, "Place"), "invalid"),
        ((0, True, "Place"), "invalid"),
        ((0, 3, ["Place"]), "invalid"),
        ((0, 3, "Other"), "undeclared label"),
    ],
)
def test_a_bad_span_costs_only_itself(span, outcome):
    merged = merge(answer(span, WATER))
    assert list(merged.accepted) == [WATER]
    assert spans_of(merged) == Counter({outcome: 1})
    (problem,) = find_problems(merged.answers, merged.judged)
    assert (problem.dataset, problem.line, outcome_of(problem.reason)) == ("a", 1, outcome)


def test_spans_of_complete_tasks_can_have_answers_too():
    merged = merge(answer((*WATER, "accept"), (*JORDAN, "reject"), (*AMOUNT, "ignore")))
    assert (list(merged.accepted), list(merged.rejected)) == ([WATER], [JORDAN])
    assert (merged.coverage["Place"], spans_of(merged)) == ("complete", {"ignored": 1})


def test_a_declared_split_keeps_data_sets_of_other_splits_out_and_no_others():
    answers = [
        answer(AMOUNT, data=dataset("train", split="train")),
        answer(WATER, data=dataset("own", split="test")),
        answer(JORDAN, data=dataset("new")),
    ]
    merged = merge(*answers, split="test")
    assert said(merged.accepted) == {WATER: ["own"], JORDAN: ["new"]}
    assert rows_of(merged) == Counter({"merged": 2, "other split": 1})
    assert merged.other_split == [("train", "own")]


def test_what_an_earlier_merge_did_not_cover_stays_uncovered():
    task = Task(TEXT, [TaskSpan(*JORDAN), TaskSpan(*WATER)], uncovered={"Place": "partial", "Reagent": "none"})
    merged = merge(make_answer(dataset(), 1, task))
    assert merged.coverage == {"Place": "partial", "Amount": "complete"}
    assert (list(merged.accepted), spans_of(merged)) == ([JORDAN], {"invalid": 1})


@pytest.mark.parametrize(
    ("policy", "train", "test"),
    [("by-label", "missing", "missing"), ("drop", None, "missing"), ("outside", "outside", "outside")],
)
def test_coverage_decides_what_is_unmarked(policy, train, test):
    assert [COVERAGE[policy](split) for split in ("train", "dev", "test")] == [train, test, test]

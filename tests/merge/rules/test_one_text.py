"""The merge of one text: policies as tables, ledger that balance."""

from collections import Counter
from pathlib import Path

import pytest

from labelwise.common.errors import InputError
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import Claim, LostSpan, merge_text, missing_labels
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
    data = data or dataset()
    return make_answer(data, line, task)


def merge(*answers, **policies):
    return merge_text(TEXT, answers, Policies(**policies))


def test_data_sets_unite_and_each_covers_its_labels():
    merged = merge(
        answer(WATER, data=dataset("r", ["Reagent"])),
        answer(data=dataset("p", ["Place"])),
        answer(AMOUNT, WATER, data=dataset("x", ["Amount", "Reagent"])),
    )
    assert said(merged.accepted) == {AMOUNT: ["x"], WATER: ["r", "x"]}
    assert merged.coverage == {"Reagent": "complete", "Place": "complete", "Amount": "complete"}
    assert rows_of(merged) == Counter(merged=3)
    assert spans_of(merged) == Counter(duplicate=1)
    assert missing_labels(merged.coverage, ["Reagent", "Place", "Amount", "Time"]) == {"Time": "none"}


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


def test_a_span_of_an_absent_label_is_undeclared():
    merged = merge(answer(JORDAN, data=dataset("r", ["Reagent"], absent=[JORDAN[2]])))
    assert spans_of(merged) == Counter({"undeclared label": 1})


@pytest.mark.parametrize(
    ("answers", "policy", "accepted", "rows"),
    [
        # by time, whatever the line
        ([(WATER, "accept", 5), (JORDAN, "accept", 3)], "latest", [WATER], {"merged": 1, "superseded": 1}),
        # by line, where there is no time
        ([(WATER, "accept", None), (JORDAN, "accept", None)], "latest", [JORDAN], {"merged": 1, "superseded": 1}),
        # a time beats none
        ([(WATER, "accept", 1), (JORDAN, "accept", None)], "latest", [WATER], {"merged": 1, "superseded": 1}),
        # the latest is a reject: no usable answer
        ([(WATER, "accept", 1), (JORDAN, "reject", 2)], "latest", [], {"rejected": 1, "superseded": 1}),
        # an earlier reject is superseded
        ([(WATER, "reject", 1), (JORDAN, "accept", 2)], "latest", [JORDAN], {"merged": 1, "superseded": 1}),
        # ignore leaves no trace, even if it is the latest
        ([(WATER, "accept", 1), (JORDAN, "ignore", 2)], "latest", [WATER], {"merged": 1, "ignored": 1}),
        ([(WATER, "accept", 1), (JORDAN, "accept", 2)], "union", [WATER, JORDAN], {"merged": 2}),
        ([(WATER, "accept", 1), (JORDAN, "reject", 2)], "union", [WATER], {"merged": 1, "superseded": 1}),
        ([(WATER, "reject", 1), (JORDAN, "reject", 2)], "union", [], {"rejected": 1, "superseded": 1}),
        ([(WATER, "accept", 1), (JORDAN, "ignore", 2)], "error", [WATER], {"merged": 1, "ignored": 1}),
    ],
)
def test_duplicates(answers, policy, accepted, rows):
    given = [answer(span, line=i, answer=a, time=t) for i, (span, a, t) in enumerate(answers, 1)]
    for order in (given, given[::-1]):
        merged = merge(*order, duplicates=policy)
        assert sorted(merged.accepted) == sorted(accepted)
        assert rows_of(merged) == Counter(rows)
        assert merged.coverage == (dict.fromkeys(["Reagent", "Place", "Amount"], "complete") if accepted else {})


def test_duplicates_can_be_an_error_that_names_file_and_lines():
    message = r"a\.jsonl:3, a\.jsonl:7: data set 'a' answers one text more than once; choose latest or union"
    with pytest.raises(InputError, match=message):
        merge(answer(line=3), answer(line=7), duplicates="error")


def test_binary_tasks_judge_spans_and_cover_partly():
    binary = dataset("teach", ["Reagent", "Place"], "binary")
    merged = merge(answer(WATER, data=binary), answer(JORDAN, line=2, answer="reject", data=binary))
    assert said(merged.accepted) == {WATER: ["teach"]}
    assert said(merged.rejected) == {JORDAN: ["teach"]}
    assert merged.coverage == {"Reagent": "partial", "Place": "partial"}
    assert rows_of(merged) == Counter(merged=2)


def test_old_binary_tasks_answer_each_span():
    merged = merge(
        answer((*WATER, "accept"), (*JORDAN, "reject"), (*AMOUNT, "ignore"), data=dataset(kind="auto")),
    )
    assert (list(merged.accepted), list(merged.rejected)) == ([WATER], [JORDAN])
    assert merged.coverage == {"Reagent": "partial", "Place": "partial"}
    assert spans_of(merged) == Counter(ignored=1)


def test_complete_beats_partial_whatever_comes_first():
    complete, binary = dataset("c", ["Place"]), dataset("b", ["Place"], "binary")
    answers = [answer(data=complete), answer(JORDAN, data=binary)]
    for order in (answers, answers[::-1]):
        assert merge(*order).coverage == {"Place": "complete"}


@pytest.mark.parametrize(
    ("policy", "accepts", "rejects"), [("latest", False, True), ("union", True, True), ("latest", True, False)]
)
def test_a_span_judged_twice_by_one_data_set(policy, accepts, rejects):
    binary = dataset("b", kind="binary")
    first, last = ("accept", "reject") if rejects else ("reject", "accept")
    answers = [answer(WATER, line=1, answer=first, data=binary), answer(WATER, line=2, answer=last, data=binary)]
    if policy == "union":  # both count, and the conflict is settled like one between data sets
        merged = merge(*answers, duplicates=policy)
        assert list(merged.accepted) == [WATER]
        assert spans_of(merged) == Counter({"accept/reject": 1})
    else:
        merged = merge(*answers, duplicates=policy)
        assert (list(merged.accepted), list(merged.rejected)) == ([WATER] * accepts, [WATER] * rejects)
        assert spans_of(merged) == Counter(superseded=1)


@pytest.mark.parametrize(
    ("policy", "times", "accepted"),
    [
        ("accept-wins", (1, 2), True),
        ("reject-wins", (2, 1), False),
        ("latest", (1, 2), False),
        ("latest", (2, 1), True),
        ("latest", (None, None), True),
    ],
)
def test_conflicts(policy, times, accepted):
    merged = merge(
        answer(WATER, time=times[0], data=dataset("yes")),
        answer(WATER, time=times[1], answer="reject", data=dataset("no", kind="binary")),
        conflicts=policy,
    )
    assert said(merged.accepted) == ({WATER: ["yes"]} if accepted else {})
    assert said(merged.rejected) == ({} if accepted else {WATER: ["no"]})
    yes, no = Claim(WATER, "accept", ["yes"]), Claim(WATER, "reject", ["no"])
    assert merged.lost == [LostSpan("accept/reject", *((no, yes) if accepted else (yes, no)))]


@pytest.mark.parametrize(
    ("span", "outcome"),
    [
        ((None, 3, "Place"), "invalid"),
        ((3, None, "Place"), "invalid"),
        ((0, 3, None), "invalid"),
        ((3, 3, "Place"), "invalid"),
        ((5, 3, "Place"), "invalid"),
        ((-1, 3, "Place"), "invalid"),
        ((0, len(TEXT) + 1, "Place"), "invalid"),
        ((3, 4, "Place"), "invalid"),  # a space
        (("3", 4, "Place"), "invalid"),
        ((0, 3.5, "Place"), "invalid"),
        ((False, True, "Place"), "invalid"),
        ((0, True, "Place"), "invalid"),
        ((0, 3, ["Place"]), "invalid"),
        ((0, 3, "Other"), "undeclared label"),
    ],
)
def test_a_bad_span_costs_only_itself(span, outcome):
    merged = merge(answer(span, WATER))
    assert list(merged.accepted) == [WATER]
    assert spans_of(merged) == Counter({outcome: 1})
    assert [(p.dataset, p.line, p.reason.split(":")[0]) for p in find_problems(merged.answers, merged.judged)] == [
        ("a", 1, outcome)
    ]


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        ({"answer": "no"}, "unknown answer"),
        ({"answer": None}, "unknown answer"),
        ({"view_id": "classification"}, "other interface"),
        ({"view_id": "review", "reviewed_view_id": "choice"}, "other interface"),
    ],
)
def test_answers_that_say_nothing_about_spans(task, outcome):
    data = dataset(kind="auto")
    merged = merge(make_answer(data, 1, Task(TEXT, [TaskSpan(*WATER)], **task)), answer(JORDAN, line=2, data=data))
    assert list(merged.accepted) == [JORDAN]
    assert rows_of(merged) == Counter({"merged": 1, outcome: 1})


def test_spans_of_complete_tasks_can_have_answers_too():
    merged = merge(answer((*WATER, "accept"), (*JORDAN, "reject"), (*AMOUNT, "ignore")))
    assert (list(merged.accepted), list(merged.rejected)) == ([WATER], [JORDAN])
    assert merged.coverage["Place"] == "complete"


def test_a_declared_split_keeps_data_sets_of_other_splits_out_and_no_others():
    answers = [
        answer(AMOUNT, data=dataset("train", split="train")),
        answer(WATER, data=dataset("own", split="test")),
        answer(JORDAN, data=dataset("new")),
    ]
    merged = merge_text(TEXT, answers, Policies(), "test")
    assert said(merged.accepted) == {WATER: ["own"], JORDAN: ["new"]}
    assert rows_of(merged) == Counter({"merged": 2, "other split": 1})
    assert merged.other_split == [("train", "own")]


def test_white_space_at_the_edges_is_trimmed():
    merged = merge(answer((11, 19, "Place")), answer(JORDAN, data=dataset("b")))
    assert said(merged.accepted) == {JORDAN: ["a", "b"]}


def test_spans_of_dropped_tasks_are_counted_with_them():
    merged = merge(answer(WATER, JORDAN, answer="ignore"), answer(AMOUNT, answer="reject"))
    assert spans_of(merged) == Counter({"in ignored task": 2, "in rejected task": 1})
    assert merged.coverage == {}


@pytest.mark.parametrize("time", ["2020-01-01", True])
def test_latest_compares_times_of_any_kind(time):
    """A time that is no number counts as none, and costs nothing."""
    assert list(merge(answer(WATER, time=0.5), answer(JORDAN, line=2, time=time)).accepted) == [WATER]


@pytest.mark.parametrize(
    ("policy", "train", "dev", "test"),
    [
        ("by-label", "missing", "missing", "missing"),
        ("drop", None, "missing", "missing"),
        ("outside", *["outside"] * 3),
    ],
)
def test_coverage_decides_what_is_unmarked(policy, train, dev, test):
    assert [COVERAGE[policy](split) for split in ("train", "dev", "test")] == [train, dev, test]

"""Several annotators of one text, as tables: what each marked, and what stands."""

from collections import Counter
from pathlib import Path

import pytest

from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.votes import standing
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan
from tests.merge.rules.texts import make_answer, rows_of, spans_of

TEXT = "Zoë Barton of Mercury Labs paid."
NAME, FIRST, LABS, MERCURY = (0, 10), (0, 3), (14, 26), (14, 21)


@pytest.mark.parametrize(
    ("marked", "half", "everybody"),
    [
        # one of two is half, one of three isn't
        ([{NAME}, set()], {NAME}, set()),
        ([{NAME}, set(), set()], set(), set()),
        # three people, three boundaries: an entity that all of them saw; the longest
        ([{(0, 3)}, {(0, 10)}, {(4, 10)}], {(0, 10)}, {(0, 10)}),
        # the boundaries that most of them chose
        ([{FIRST}, {FIRST}, {NAME}, set()], {FIRST}, set()),
        # nested, and more than half have both
        ([{NAME, FIRST}, {NAME, FIRST}, {NAME}], {NAME, FIRST}, {NAME, FIRST}),
        # two of equally many that don't overlap: each stands; one that does loses
        ([{FIRST, (4, 10)}, {FIRST, (4, 10)}, {NAME}, {(0, 4)}], {FIRST, (4, 10)}, {FIRST, (4, 10)}),
        # spans that touch are two candidates
        ([{(0, 3)}, {(3, 5)}, set()], set(), set()),
    ],
)
def test_what_stands(marked, half, everybody):
    assert standing(marked, len(marked) / 2) == half
    assert standing(marked, len(marked)) == everybody


def answered(who: str, *spans: tuple[int, int], line: int = 1, data: str = "a", **given) -> Answer:
    dataset = DataSet(data, (Path(f"{data}.jsonl"),), ("NAME",))
    task = Task(TEXT, [TaskSpan(*span, "NAME") for span in spans], annotator_id=who, view_id="ner_manual")
    for name, value in given.items():
        setattr(task, name, value)
    return make_answer(dataset, line, task)


def merged(*answers, annotators: str = "half"):
    return merge_text(TEXT, answers, Policies(annotators=annotators))


def offsets(found) -> list[tuple[int, int]]:
    return [key[:2] for key in found.accepted]


def test_a_span_that_too_few_marked_is_outvoted_and_no_rejection():
    found = merged(answered("ann", NAME, LABS), answered("bob", NAME, line=2), answered("eve", NAME, line=3))
    assert offsets(found) == [NAME]
    assert (found.rejected, found.coverage) == ({}, {"NAME": "complete"})
    assert spans_of(found) == Counter(duplicate=2, outvoted=1)
    (lost,) = found.lost
    assert (lost.reason, lost.lost.span, lost.kept) == ("outvoted", (*LABS, "NAME"), None)


def test_what_lost_to_other_boundaries_names_them():
    found = merged(answered("ann", NAME), answered("bob", NAME, line=2), answered("eve", FIRST, line=3))
    (lost,) = found.lost
    assert (lost.lost.span[:2], lost.kept.span[:2]) == (FIRST, NAME)


@pytest.mark.parametrize(
    ("annotators", "expected"),
    [
        ("union", [NAME, LABS]),
        ("all", []),
        ("bob, ann", [LABS]),
        ("nobody, ann", [NAME]),
        ("nobody", [NAME, LABS]),  # none is there: half
    ],
)
def test_policies_of_two(annotators, expected):
    assert offsets(merged(answered("ann", NAME), answered("bob", LABS, line=2), annotators=annotators)) == expected


def test_a_session_is_named_without_its_data_set():
    answers = [answered("a-ann", NAME), answered("a-bob", LABS, line=2)]
    assert offsets(merged(*answers, annotators="bob")) == [LABS]


@pytest.mark.parametrize("annotators", ["half", "all", "union", "ann"])
def test_an_adjudication_wins_over_all(annotators):
    review = answered("chief", LABS, line=9, data="review", view_id="review", reviewed_view_id="ner_manual")
    answers = [answered("ann", NAME), answered("bob", NAME, line=2), review]
    assert offsets(merged(*answers, annotators=annotators)) == [LABS]


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_a_reject_is_no_vote(answer):
    answers = [answered("ann", NAME), answered("bob", line=2, answer=answer), answered("eve", line=3, answer=answer)]
    assert offsets(merged(*answers)) == [NAME]


def test_a_judgement_of_a_single_span_is_no_vote_and_stays():
    judged = answered("eve", MERCURY, line=4, data="b", view_id="ner")
    answers = [answered("ann"), answered("bob", line=2), answered("tim", line=3), judged]
    assert offsets(merged(*answers)) == [MERCURY]


def test_duplicates_decide_within_one_annotator_only():
    answers = [answered("ann", NAME, timestamp=1), answered("bob", NAME, line=2, timestamp=2)]
    later = answered("ann", NAME, LABS, line=3, timestamp=3)
    found = merged(*answers, later, annotators="union")
    assert rows_of(found) == Counter(merged=2, superseded=1)
    assert offsets(found) == [NAME, LABS]


def test_two_sessions_that_nobody_named_are_one_annotator():
    answers = [answered("a-2024-05-03_12-00-00", NAME), answered("a-2024-05-04_09-30-00", LABS, line=2)]
    found = merged(*answers)
    assert (offsets(found), rows_of(found)) == ([LABS], Counter(merged=1, superseded=1))

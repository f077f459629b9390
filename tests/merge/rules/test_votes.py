"""Several annotators of one text, where the oracle doesn't look: named people, adjudications, single judgements."""

from pathlib import Path

import pytest

from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.votes import standing
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan
from tests.merge.rules.texts import make_answer

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
    marked = [TaskSpan(*span, "NAME") for span in spans]
    return make_answer(dataset, line, Task(TEXT, marked, annotator_id=who, **{"view_id": "ner_manual", **given}))


def offsets(*answers, annotators: str = "half") -> list[tuple[int, int]]:
    return [key[:2] for key in merge_text(TEXT, answers, Policies(annotators=annotators)).accepted]


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
@pytest.mark.parametrize("session", ["", "a-"])
def test_policies_of_two(annotators, expected, session):
    """A session is named without its data set."""
    answers = answered(f"{session}ann", NAME), answered(f"{session}bob", LABS, line=2)
    assert offsets(*answers, annotators=annotators) == expected


@pytest.mark.parametrize("annotators", ["half", "all", "union", "ann"])
def test_an_adjudication_wins_over_all(annotators):
    review = answered("chief", LABS, line=9, data="review", view_id="review", reviewed_view_id="ner_manual")
    assert offsets(answered("ann", NAME), answered("bob", NAME, line=2), review, annotators=annotators) == [LABS]


def test_a_judgement_of_a_single_span_is_no_vote_and_stays():
    judged = answered("eve", MERCURY, line=4, data="b", view_id="ner")
    assert offsets(answered("ann"), answered("bob", line=2), answered("tim", line=3), judged) == [MERCURY]


def test_two_sessions_that_nobody_named_are_one_annotator():
    answers = answered("a-2024-05-03_12-00-00", NAME), answered("a-2024-05-04_09-30-00", LABS, line=2)
    assert offsets(*answers) == [LABS]

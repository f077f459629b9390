"""Agreement where texts were annotated twice, where the oracle doesn't look: names, kappa, what is written."""

import json
import random
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwise.corpus.ledger import pairwise_f
from labelwise.merge.commit import ANNOTATORS, AnnotatorPair
from labelwise.merge.rules.agreement import count_pairs, kappa
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import Policies
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import Task, TaskSpan
from tests.conftest import Merging
from tests.merge.rules.texts import make_answer

TEXT = "Add 5 mL of Jordan water."
AMOUNT, JORDAN, WATER, PLACE = (4, 8, "R"), (12, 18, "R"), (12, 24, "R"), (12, 18, "P")


def answer(*spans, data="a", labels="R", line=1, who=None, session=None, time=None, **task) -> Answer:
    """One answer, complete if nothing else is said."""
    marked = [TaskSpan(*span) for span in spans]
    dataset = DataSet(data, (Path(f"{data}.jsonl"),), tuple(labels), "auto")
    fields = {"view_id": "ner_manual", "annotator_id": who, "session_id": session, "timestamp": time} | task
    return make_answer(dataset, line, Task(TEXT, marked, **fields))


CASES: dict[str, tuple[list[Answer], dict[str, tuple[int, int]]]] = {
    # By label the spans in both and those of the one plus those of the other.
    "two data sets": ([answer(AMOUNT, JORDAN), answer(AMOUNT, WATER, data="b")], {"R": (1, 4)}),
    # Spans in both: 1, 1 and 1. Spans: 2 + 1, 2 + 2 and 1 + 2.
    "three versions are three pairs": (
        [answer(AMOUNT, JORDAN, who="ann"), answer(AMOUNT, line=2, who="bob"), answer(AMOUNT, WATER, data="b")],
        {"R": (3, 10)},
    ),
    "a redo is no second opinion": ([answer(AMOUNT, who="ann"), answer(JORDAN, line=2, who="ann")], {}),
    "nor is one by nobody in particular": ([answer(AMOUNT), answer(JORDAN, line=2)], {}),
    "nor is one in another data set": ([answer(AMOUNT, who="ann"), answer(JORDAN, data="b", who="ann")], {}),
    "the latest answer of each counts, by time": (
        [answer(AMOUNT, who="ann", time=5), answer(JORDAN, line=2, who="ann", time=3), answer(AMOUNT, line=3, who="b")],
        {"R": (1, 2)},
    ),
    "a session names who has no other name": (
        [answer(AMOUNT, session="ann"), answer(AMOUNT, line=2, who="", session="bob")],
        {"R": (1, 2)},
    ),
    "an annotator and a data set of one name are two": (
        [answer(AMOUNT, who="b"), answer(AMOUNT, data="b")],
        {"R": (1, 2)},
    ),
    **{
        f"no name: {who!r}": ([answer(AMOUNT, who=who), answer(AMOUNT, line=2, session=who)], {})
        for who in (3, ["ann"], {"name": "ann"}, 10**30, "")
    },
    "a rejection takes no version back": (
        [answer(AMOUNT, who="ann"), answer(line=2, who="ann", answer="reject"), answer(AMOUNT, data="b", who="bob")],
        {"R": (1, 2)},
    ),
    "a binary task is no version": ([answer(AMOUNT), answer(AMOUNT, data="b", view_id="ner")], {}),
    "several labels": (
        [answer(AMOUNT, PLACE, labels="RP"), answer(AMOUNT, JORDAN, data="b", labels="PR")],
        {"R": (1, 3), "P": (0, 1)},
    ),
    "labels that an earlier merge doesn't cover": (
        [answer(AMOUNT, labels="RP"), answer(AMOUNT, data="b", labels="RP", uncovered={"R": "partial", "P": "none"})],
        {},
    ),
    "a span that is there twice": ([answer(AMOUNT, AMOUNT), answer(AMOUNT, data="b")], {"R": (1, 2)}),
    "nothing marked by either": ([answer(), answer(data="b")], {"R": (0, 0)}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("policy", ["latest", "union"])
def test_versions_counted_by_hand(name, policy):
    answers, expected = CASES[name]
    versions = merge_text(TEXT, answers[::-1], Policies(duplicates=policy)).versions
    total: dict[str, Counter] = {}
    for (label, *_), counts in count_pairs(versions, np.zeros(0, int), np.zeros(0, int)):
        total.setdefault(label, Counter()).update(counts)
    assert {label: (counts["both"], counts["spans"]) for label, counts in total.items()} == expected


def pairs_of(merging: Merging) -> dict[tuple[str, str], AnnotatorPair]:
    rows = msgspec.json.decode(merging.files()[ANNOTATORS], type=list[AnnotatorPair])
    return {(pair.one, pair.other): pair for pair in rows}


def test_each_two_annotators_are_compared(merging):
    """Tokens: text, the number, cat. The sessions that nobody named are their data set's."""
    people = {"ann": [(0, 4)], "bob": [(0, 4), (7, 10)], "2024-03-01_10-00-00": []}
    for who, spans in people.items():
        listed = [{"start": start, "end": end, "label": "A"} for start, end in spans]
        people[who] = [{"text": f"text {i} cat", "spans": listed, "_session_id": who} for i in range(10)]
    merging.add("a", ["A"], [row for rows in people.values() for row in rows])
    merging.run(docs_per_partition=4)
    found = pairs_of(merging)
    assert set(found) == {("ann", "bob"), ("a", "ann"), ("a", "bob")}
    assert {(pair.label, pair.texts) for pair in found.values()} == {("A", 10)}
    both, nobody = found["ann", "bob"], found["a", "ann"]
    assert (both.spans, both.f) == (30, pytest.approx(2 / 3))
    # Of 30 tokens, 10 are in both and 10 in neither: chance would have them agree on 1/3 * 2/3 + 2/3 * 1/3 of them.
    assert both.kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert (nobody.spans, nobody.f, nobody.kappa) == (10, 0.0, 0.0)


def test_tokens_that_touch_a_span_are_not_in_it(merging):
    """Ann marks `cat` of `cat's`, and Bob the rest: they agree on no token; chance would have them agree on half."""
    spans = {"ann": {"start": 0, "end": 3, "label": "A"}, "bob": {"start": 3, "end": 5, "label": "A"}}
    merging.add("a", ["A"], [{"text": "cat's", "_annotator_id": who, "spans": [span]} for who, span in spans.items()])
    merging.run()
    assert pairs_of(merging)["ann", "bob"].kappa == pytest.approx((0 - 1 / 2) / (1 - 1 / 2))


@settings(max_examples=20, deadline=None, database=None)
@given(st.integers(0, 2**32))
def test_kappa_is_that_of_the_table(seed):
    """Against the definition, by the four cells of the table."""
    rng = random.Random(seed)
    one, other = ([rng.random() < rng.random() for _ in range(40)] for _ in range(2))
    cells = Counter(zip(one, other, strict=True))
    seen = (cells[True, True] + cells[False, False]) / 40
    chance = sum(
        (cells[x, True] + cells[x, False]) / 40 * (cells[True, x] + cells[False, x]) / 40 for x in (True, False)
    )
    same = sum(x == y for x, y in zip(one, other, strict=True))
    assert kappa(40, sum(one), sum(other), same) == pytest.approx((seen - chance) / (1 - chance))


def test_where_nothing_can_be_compared_there_is_no_score():
    assert [kappa(10, 0, 0, 10), kappa(10, 10, 10, 10), kappa(0, 0, 0, 0), pairwise_f(0, 0)] == [None] * 4


def test_what_people_marked_differently_is_listed(merging):
    """By label, with who marked what, where; what they agree on isn't."""

    def row(number: int, who: str, *ends: int) -> dict:
        spans = [{"start": 0, "end": end, "label": "A"} for end in ends]
        return {"text": f"text {number} cat", "spans": spans, "_annotator_id": who, "meta": {"doc": f"{number}.txt"}}

    merging.add("a", ["A"], [row(0, "ann", 4), row(1, "ann", 4), row(0, "bob", 4, 6), row(1, "bob", 4)])
    merging.add("b", ["B"], [row(0, "ann"), row(0, "bob")])
    merging.run()
    (task,) = (json.loads(line) for line in merging.files()["disagreements.jsonl"].splitlines())
    assert [(span["start"], span["end"], span["annotators"]) for span in task["spans"]] == [
        (0, 4, ["ann", "bob"]),
        (0, 6, ["bob"]),
    ]
    assert task["meta"] == {
        "label": "A",
        "annotators": "ann, bob",
        "doc": "0.txt",
        "from": "a.jsonl:1, a.jsonl:3, b.jsonl:1, b.jsonl:2",
    }

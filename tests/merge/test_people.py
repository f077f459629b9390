"""One person is one person across data sets: a later complete answer for a label replaces an earlier one in any."""

from typing import Any

import pytest

from tests.conftest import Merging
from tests.merge.test_advice import said

TEXT = "Zoë Barton of Mercury Labs paid."
ZOE, LABS = (0, 10, "PERSON"), (14, 26, "COMPANY")


def answer(*spans: tuple, who: str | None = None, session: str | None = None, time: int | None = None, **more) -> dict:
    marked = [{"start": start, "end": end, "label": label} for start, end, label in spans]
    row = {"text": TEXT, "spans": marked, "_view_id": "ner_manual", "_annotator_id": who, "_session_id": session}
    return row | {"_timestamp": time} | more


def merge(merging: Merging, *datasets: tuple[str, list[str], list[dict]], **declared: Any):
    for name, labels, rows in datasets:
        merging.add(name, labels, rows, **declared.get(name, {}))
    return merging.run()


def test_a_correction_in_another_data_set_takes_effect(merging):
    """Prodigy's people recommend a data set for each recipe: ner.manual, then ner.correct."""
    manual = "person-manual", ["PERSON"], [answer(ZOE, (14, 21, "PERSON"), session="person-manual-ann", time=5)]
    correct = "person-correct", ["PERSON"], [answer(ZOE, session="person-correct-ann", time=9)]
    ledger = merge(merging, manual, correct)
    assert (ledger.rows, ledger.spans) == ({"merged": 1, "superseded": 1}, {"entity": 1, "in superseded task": 2})
    assert ledger.agreement == {}, "nobody agrees with themselves"
    assert ledger.replaced == {"person-manual by person-correct": 1}
    assert "1 answer replaced by the same person's later one in another data set: person-manual by" in said(ledger)


def test_of_the_labels_of_an_answer_only_those_asked_again_are_replaced(merging):
    both = "both", ["PERSON", "COMPANY"], [answer(ZOE, LABS, who="ann", time=1)]
    again = "again", ["COMPANY"], [answer(who="ann", time=2)]
    ledger = merge(merging, both, again)
    assert (ledger.rows, ledger.spans) == ({"merged": 2}, {"entity": 1, "superseded": 1})
    assert +ledger.labels["COMPANY"] == {"complete": 1}


@pytest.mark.parametrize(
    ("one", "other", "declared"),
    [
        ({}, {}, {}),  # unnamed answers are the data set's own
        ({"who": "ann"}, {"who": "bob"}, {}),
        ({"who": "1"}, {"who": "1"}, {}),  # each server counts from 1
        ({"session": "a-2024-03-01_10-00-00"}, {"session": "b-2024-03-02_10-00-00"}, {}),
        ({"who": "1"}, {"who": "1"}, {"a": {"annotator": {1: "ann"}}, "b": {"annotator": {1: "bob"}}}),
        ({}, {"who": "ann"}, {"a": {"annotator": "bob"}}),
    ],
)
def test_two_people_are_two(merging, one, other, declared):
    a, b = ("a", ["PERSON"], [answer(ZOE, **one)]), ("b", ["PERSON"], [answer((0, 3, "PERSON"), **other)])
    ledger = merge(merging, a, b, **declared)
    assert ledger.rows == {"merged": 2}
    assert ledger.agreement["PERSON"]["texts"] == 1
    assert ledger.replaced == {}


@pytest.mark.parametrize(
    ("one", "other", "declared"),
    [
        ({"who": "1"}, {"who": "7"}, {"a": {"annotator": {1: "ann"}}, "b": {"annotator": {7: "ann"}}}),
        ({}, {"who": "ann"}, {"a": {"annotator": "ann"}}),
        ({"who": "a-ann"}, {"session": "b-ann"}, {}),
    ],
)
def test_a_declaration_names_people(merging, one, other, declared):
    a, b = ("a", ["PERSON"], [answer(ZOE, **one)]), ("b", ["PERSON"], [answer((0, 3, "PERSON"), **other)])
    ledger = merge(merging, a, b, **declared)
    assert ledger.rows == {"merged": 1, "superseded": 1}
    assert ledger.replaced == {"a by b": 1}, "without times, the data set that is declared later counts"


def test_a_later_reject_takes_the_answer_back(merging):
    a, b = ("a", ["PERSON"], [answer(ZOE, who="ann", time=1)]), ("b", ["PERSON"], [answer(who="ann", time=2)])
    b[2][0]["answer"] = "reject"
    ledger = merge(merging, a, b)
    assert ledger.rows == {"rejected": 1, "superseded": 1}
    assert ledger.texts == {"no usable answer": 1}

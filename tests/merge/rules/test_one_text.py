"""The merge of one text, where the oracle doesn't look: absent labels, splits, agreement."""

import pytest

from labelwise.corpus.annotation import annotation_of
from tests.conftest import task

TEXT = "Add 5 mL of Jordan water."
WATER, JORDAN, AMOUNT = (12, 24, "Reagent"), (12, 18, "Place"), (4, 8, "Amount")


@pytest.mark.parametrize(
    ("kind", "answer", "uncovered"),
    [
        ("complete", "accept", {}),
        ("binary", "accept", {"Reagent": "partial"}),
        # an answer that says nothing doesn't say this either
        ("complete", "reject", None),
        ("binary", "ignore", None),
    ],
)
def test_a_text_is_complete_for_labels_that_are_absent_from_its_data_set(merging, kind, answer, uncovered):
    merging.add("r", ["Reagent"], [task(TEXT, WATER, answer=answer)], kind=kind, absent=["Place"])
    merging.add("p", ["Place"], [task("other")])
    merging.run()
    docs = merging.docs()
    assert (annotation_of(docs[TEXT][1]).uncovered if TEXT in docs else None) == uncovered


def test_what_an_export_of_an_earlier_merge_did_not_cover_stays_uncovered(merging):
    """A span of a label that nobody looked for can't be."""
    uncovered = {"Place": "partial", "Reagent": "none"}
    merging.add("a", ["Amount", "Place", "Reagent"], [task(TEXT, JORDAN, WATER, _labelwise_uncovered=uncovered)])
    assert merging.run().spans == {"entity": 1, "invalid": 1}
    ((_, doc),) = merging.docs().values()
    assert (annotation_of(doc).accepted, annotation_of(doc).uncovered) == ({JORDAN}, uncovered)


def test_a_declared_split_keeps_data_sets_of_other_splits_out_and_no_others(merging):
    merging.add("train", ["Amount"], [task(TEXT, AMOUNT)], split="train")
    merging.add("own", ["Reagent"], [task(TEXT, WATER)], split="test")
    merging.add("new", ["Place"], [task(TEXT, JORDAN)])
    ledger = merging.run()
    ((split, doc),) = merging.docs().values()
    assert (split, annotation_of(doc).accepted) == ("test", {WATER, JORDAN})
    assert ledger.rows == {"merged": 2, "other split": 1}
    assert ledger.other_split == {'["train","own"]': 1}


def row(number: int, who: str | None, *spans: tuple[int, int], **more) -> dict:
    return task(f"text {number} cat", *spans, meta={"doc": f"{number}.txt"}, _annotator_id=who, **more)


def test_an_earlier_merge_is_no_version_of_labels_that_it_does_not_cover(merging):
    covered = row(1, None, (0, 4), _labelwise_uncovered={"B": "none"})
    merging.add("earlier", ["A", "B"], [covered, row(2, None, _labelwise_uncovered={"A": "none"})])
    merging.add("new", ["A", "B"], [row(1, None, (0, 4)), row(2, None, (0, 4))])
    assert merging.run().agreement == {
        "A": {"texts": 1, "both": 1, "spans": 2},
        "B": {"texts": 1, "both": 0, "spans": 0},
    }


def test_what_people_marked_differently_and_what_is_lost_is_listed_with_its_place(merging):
    """By label, with who marked what, where; what they agree on isn't. Of lost spans, the lines that disagree."""
    merging.add(
        "a", ["A"], [row(0, "ann", (0, 4)), row(1, "ann", (0, 4)), row(0, "bob", (0, 4), (0, 6)), row(1, "bob", (0, 4))]
    )
    merging.add("b", ["B"], [row(0, "ann", (0, 6, "B")), row(0, "bob", (0, 6, "B"))])
    merging.add("c", ["C"], [{"text": "two"}, {"text": "text 0 cat"}])
    merging.run()
    (found,) = merging.lines("disagreements.jsonl")
    assert [(span["start"], span["end"], span["annotators"]) for span in found["spans"]] == [
        (0, 4, ["ann", "bob"]),
        (0, 6, ["bob"]),
    ]
    lines = "a.jsonl:1, a.jsonl:3, b.jsonl:1, b.jsonl:2"
    assert found["meta"] == {"label": "A", "annotators": "ann, bob", "doc": "0.txt", "from": f"{lines}, c.jsonl:2"}
    assert [one["meta"] for one in merging.lines("lost_spans.jsonl")] == [
        {"reason": "nested", "learnt": True, "doc": "0.txt", "from": lines},
        {"reason": "outvoted", "doc": "0.txt", "from": "a.jsonl:1, a.jsonl:3"},
    ]
    names = {text: annotation_of(doc).doc for text, (_, doc) in merging.docs().items()}
    assert names == {"text 0 cat": "0.txt", "text 1 cat": "1.txt", "two": ""}

"""The merge of one text, where the oracle doesn't look: absent labels, duplicates as an error, declared splits."""

import pytest

from labelwise.corpus.annotation import annotation_of
from labelwise.errors import InputError
from labelwise.merge.rules.policies import Policies
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


@pytest.mark.parametrize("kind", ["complete", "binary"])
def test_duplicates_can_be_an_error_that_names_file_and_lines(merging, kind):
    rows = [task("one"), task(TEXT, WATER), task(TEXT, WATER, answer="ignore")]
    merging.add("a", ["Reagent"], rows, kind=kind)
    policies = Policies(duplicates="error")
    assert merging.run(policies=policies).rows == {"merged": 2, "ignored": 1}
    merging.declared.clear()
    merging.add("a", ["Reagent"], [*rows, task(TEXT, WATER)], kind=kind)
    message = r"tasks/a\.jsonl:2, \S+/a\.jsonl:4: data set 'a' answers a text more than once; set duplicates to latest"
    with pytest.raises(InputError, match=message):
        merging.run(policies=policies)


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

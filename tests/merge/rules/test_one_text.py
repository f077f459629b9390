import pytest

from labelwise.corpus.annotation import annotation_of
from labelwise.corpus.manifest import read_manifest
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.to_doc import overlap_kind
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


def test_labels_uncovered_in_an_export_stay_uncovered(merging):
    uncovered = {"Place": "partial", "Reagent": "none"}
    merging.add("a", ["Amount", "Place", "Reagent"], [task(TEXT, JORDAN, WATER, _labelwise_uncovered=uncovered)])
    assert merging.run().spans == {"entity": 1, "invalid": 1}
    ((_, doc),) = merging.docs().values()
    assert (annotation_of(doc).accepted, annotation_of(doc).uncovered) == ({JORDAN}, uncovered)


def test_tokens_that_a_span_without_boundaries_touches_are_not_known_to_be_outside(merging):
    merging.add("a", ["A"], [task("big cat at 60degC", (0, 3), (11, 13))])
    merging.run()
    ((_, doc),) = merging.docs().values()
    assert [token.ent_iob_ for token in doc] == ["B", "O", "O", ""]


@pytest.mark.parametrize(
    ("overlap", "kept"), [("longest", ["mL of Jordan", "water"]), ("first", ["Add 5 mL", "Jordan", "water"])]
)
def test_which_of_overlapping_spans_are_entities(overlap, kept, merging):
    merging.add("a", ["A"], [task(TEXT, (0, 8), (12, 18), (19, 24), meta={"doc": "a.txt"})])
    merging.add("b", ["B"], [task(TEXT, (6, 18, "B"))])
    merging.run(policies=Policies(overlap=overlap))
    ((_, doc),) = merging.docs().values()
    assert ([ent.text for ent in doc.ents], annotation_of(doc).doc) == (kept, "a.txt")


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("same span", [(4, 8)]),
        ("nested", [(4, 6), (6, 8), (4, 9), (2, 8), (2, 9), (5, 7)]),
        ("crossing", [(2, 6), (6, 9)]),
    ],
)
def test_spans_overlap_in_three_ways_whichever_is_longer(kind, places):
    assert {overlap_kind((*place, "A"), (4, 8, "B")) for place in places} == {kind}


@pytest.mark.parametrize(
    ("alignment", "kept"), [("drop", ["big"]), ("expand", ["big", "at 60degC"]), ("contract", ["big", "at"])]
)
def test_a_span_without_token_boundaries_is_dropped_expanded_or_contracted(alignment, kept, merging):
    merging.add("a", ["A"], [task("big cat at 60degC", (0, 3), (8, 13))])
    merging.run(policies=Policies(alignment=alignment))
    ((_, doc),) = merging.docs().values()
    assert [ent.text for ent in doc.ents] == kept
    assert [row["realigned"] for row in merging.table("spans")] == [False, len(kept) > 1]


def test_a_span_that_an_annotator_ignored_is_neither_gold_nor_rejected(merging):
    merging.add("a", ["A"], [task(TEXT, (0, 3, "A", "ignore"), (12, 18))])
    assert merging.run().spans == {"entity": 1, "ignored": 1}
    ((_, doc),) = merging.docs().values()
    assert (len(doc.spans["gold"]), len(doc.spans["incorrect_spans"])) == (1, 0)


@pytest.mark.guarantee("moved-splits")
def test_a_declared_split_keeps_data_sets_of_other_splits_out_and_no_others(merging):
    merging.add("train", ["Amount"], [task(TEXT, AMOUNT)], split="train")
    merging.add("own", ["Reagent"], [task(TEXT, WATER)], split="test")
    merging.add("new", ["Place"], [task(TEXT, JORDAN)])
    ledger = merging.run()
    ((split, doc),) = merging.docs().values()
    assert (split, annotation_of(doc).accepted) == ("test", {WATER, JORDAN})
    assert ledger.rows == {"merged": 2, "split conflict": 1}
    [told] = [check for check in ledger.checks if check.kind == "texts of other splits"]
    assert (told.dataset, told.n, told.values) == ("train", 1, {"other": "own"})


@pytest.mark.parametrize("settings", [{}, {"split_by": "place", "by": ["place"]}])
def test_an_answer_of_another_declared_split_changes_no_byte_of_its_text(settings, merging):
    merging.add("test", ["A"], [task(TEXT, (4, 8), meta={"doc": "b", "place": "y"})], split="test")
    merging.run("alone", **settings)
    merging.add("new", ["A"], [task(TEXT, (4, 6), meta={"doc": "a", "place": "x"})], split="train")
    assert merging.run("both", **settings).rows == {"merged": 1, "split conflict": 1}
    alone, both = (read_manifest(merging.root / out) for out in ("alone", "both"))
    assert alone.partitions == both.partitions != {}


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

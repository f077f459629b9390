"""The concordance: which forms and places are in it, by hand, on a corpus of a few texts."""

import hashlib

import msgspec
import pytest

from labelwise.common.keys import text_key
from labelwise.report.concordance import Concordance, VariousForm, find_various
from labelwise.report.occurrences import Occurrence
from tests.report.corpus_inputs import predict_nothing, task


@pytest.fixture
def found(merging):
    train = [
        task("😀 I saw a red cat today.", "cat", doc="one.txt"),
        task("The big cat sleeps.", "cat"),
        task("A wild cat, a dog and one more cat.", "dog"),
        task("This old cat is a thing."),
    ]
    train += [task(f"My dog number {number} barks.", "dog") for number in range(11)]
    merging.add("animal", ["ANIMAL"], train, split="train")
    merging.add("thing", ["THING"], [task("This old cat is a thing.", "cat", label="THING")], split="train")
    merging.add("dev", ["ANIMAL"], [task("Her grey cat eats.", "cat")], split="dev")
    tests = [task("Test has a cat.", "cat"), task("Test has a dog.", "dog"), task("No emu in train.", "emu")]
    merging.add("test", ["ANIMAL"], tests, split="test")
    merging.run()
    corpus = merging.root / "corpus"
    predict_nothing(corpus, merging.root / "predictions.jsonl")
    return find_various(corpus, merging.root / "predictions.jsonl", ["ANIMAL", "THING"]).fitting(10**6)


def test_a_form_is_there_if_train_marks_it_variously_and_test_has_mistakes_about_it(found):
    """The dog is always marked, and train doesn't know the emu."""
    (form,) = found.forms
    assert (form.form, form.label, form.mistakes, form.marked, form.unmarked) == ("cat", "ANIMAL", 1, 3, 3)
    assert found.others == 0


def test_places_are_from_train_and_dev_sorted_by_what_stands_beside_them(found):
    shown = [[("".join(one.words), one.dataset, one.file, one.other) for one in way] for way in found.forms[0].ways]
    assert shown == [
        [
            ("The big cat sleeps.", "animal", "animal.jsonl:2", ""),
            ("Her grey cat eats.", "dev", "dev.jsonl:1", ""),
            ("😀 I saw a red cat today.", "animal", "animal.jsonl:1", ""),
        ],
        [  # more cat, old cat, wild cat
            ("A wild cat, a dog and one more cat.", "animal", "animal.jsonl:3", ""),
            ("This old cat is a thing.", "animal", "animal.jsonl:4", "THING"),
            ("A wild cat, a dog and one more cat.", "animal", "animal.jsonl:3", ""),
        ],
    ]
    assert [one.neighbours for one in found.forms[0].ways[1]] == [("more", "."), ("old", "is"), ("wild", ",")]
    assert found.forms[0].ways[0][2].doc == "one.txt"


def test_offsets_count_characters_as_python_does(found):
    marked = found.forms[0].ways[0][2]
    text = "😀 I saw a red cat today."
    assert text[slice(*marked.span)] == "cat"
    assert "".join(marked.words[marked.first : marked.end]).strip() == "cat"
    assert marked.key == text_key(text.encode()).hex()


def test_an_answer_is_told_by_the_spans_that_its_data_set_accepts(found):
    marked, unmarked = found.forms[0].ways
    assert marked[2].answer == hashlib.blake2b(b"[[14,17]]", digest_size=6).hexdigest()
    assert unmarked[1].answer == hashlib.blake2b(b"[]", digest_size=6).hexdigest()
    assert unmarked[0].answer == hashlib.blake2b(b"[[14,17]]", digest_size=6).hexdigest(), "the dog of that text"


def make_form(name: str, marked: int, unmarked: int) -> VariousForm:
    ways = ([Occurrence("k", "", "d", "f", "a", n, [name], 0, 1) for n in range(way)] for way in (marked, unmarked))
    return VariousForm(name, "A", 3, marked, unmarked, tuple(ways))


@pytest.mark.parametrize(
    ("counts", "shown"), [((50, 50), (25, 25)), ((50, 3), (47, 3)), ((3, 50), (3, 47)), ((4, 5), (4, 5))]
)
def test_of_many_occurrences_both_ways_are_shown(counts, shown):
    assert tuple(map(len, make_form("cat", *counts).with_at_most(50).ways)) == shown


def test_what_is_too_large_loses_occurrences_then_forms():
    """The last forms, which have the fewest mistakes."""
    whole = Concordance([make_form(f"cat {n}", 50, 50) for n in range(10)], others=2)
    size = len(msgspec.json.encode(whole.fitting(10**9).forms))
    one = len(msgspec.json.encode(whole.forms[0].with_at_most(6)))
    for budget, forms, occurrences in ((size, 10, 50), (size - 1, 10, 30), (4 * one + 9, 4, 6), (one - 9, 0, 0)):
        fitting = whole.fitting(budget)
        assert len(msgspec.json.encode(fitting.forms)) <= max(budget, 2)  # []
        assert [form.form for form in fitting.forms] == [f"cat {n}" for n in range(forms)]
        assert fitting.others == 12 - forms
        assert all(sum(map(len, form.ways)) == occurrences for form in fitting.forms)


def test_the_labels_of_data_sets_are_known(found):
    assert found.declared.labels["thing"] == ("THING",)

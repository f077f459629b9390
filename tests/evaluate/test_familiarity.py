"""What was found, by how train marks it: by hand, on a corpus of a few texts."""

import json
from collections.abc import Callable

import pytest

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate.familiarity import find_familiarity
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.evaluate.scores import Familiarity
from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging


def rows(*texts: str, label: str = "A", word: str = "") -> list[dict]:
    """Tasks that mark a word wherever it is."""
    made = []
    for text in texts:
        places = [n for n in range(len(text)) if word and text.startswith(word, n)]
        made.append({"text": text, "spans": [{"start": n, "end": n + len(word), "label": label} for n in places]})
    return made


def find(merging: Merging, predict: Callable[[str, list], list], **policies) -> Familiarity:
    """Merge, and tell what is found of test.

    predict (Callable): gives the predicted spans of a text, which has such gold.
    """
    merging.run(dev_ratio=0, test_ratio=0, policies=Policies(**policies))
    corpus = merging.root / "corpus"
    docs = []
    for file in find_partitions(corpus / "test"):
        for stored in read_stored_docs(file):
            text, gold = stored.text, [tuple(span[:3]) for span in stored.annotation.gold]
            key = text_key(text.encode()).hex()
            docs.append(PredictedDoc(key, text, predict(text, gold), gold, gold, uncovered=stored.annotation.uncovered))
    path = merging.root / "predictions.jsonl"
    with path.open("wb") as file:
        write_predictions(docs, file)
    labels = json.loads((corpus / "manifest.json").read_text())["labels"]
    return find_familiarity(corpus, corpus / "test", path, labels)


def familiarity_of(merging: Merging, found: set[str] = frozenset(), **policies) -> tuple[dict, dict]:
    """Let a pipeline find nothing but these texts' gold; give what is missed of all, and the forms."""
    familiarity = find(merging, lambda text, gold: gold if text in found else [], **policies)
    counts = {
        label: {marking: (one.missed, one.gold) for marking, one in counts.items()}
        for label, counts in familiarity.labels.items()
    }
    return counts, {
        marking: [(form.form, form.label, form.count, form.train) for form in forms]
        for marking, forms in familiarity.forms.items()
    }


def test_each_marking(merging):
    train = [f"{n} red cat" for n in range(12)]
    merging.add(
        "a", ["A"], [*rows(*train, word="cat"), *rows("1 dog", word="dog"), *rows("2 dog", "owl")], split="train"
    )
    merging.add("b", ["B"], rows("3 cow", label="B", word="cow"), split="train")
    merging.add("c", ["A"], rows("3 cow"), split="train")
    tests = [*rows("a cat", "the cat", word="cat"), *rows("a dog", word="dog"), *rows("one owl", word="owl")]
    tests += [*rows("old cow", word="cow"), *rows("new emu", word="emu"), *rows("found cat", word="cat")]
    merging.add("t", ["A"], tests, split="test")
    labels, forms = familiarity_of(merging, {"found cat"})
    assert labels == {"A": {"alike": (2, 3), "variously": (3, 3), "never": (1, 1)}}
    assert forms["alike"] == [("cat", "A", 2, {"A": 12})]
    assert forms["never"] == [("emu", "A", 1, {})]
    # Free in a text that is complete for A; the cow is B, and for A it is free.
    assert forms["variously"] == [
        ("cow", "A", 1, {"B": 1}),
        ("dog", "A", 1, {"A": 1, "": 1}),
        ("owl", "A", 1, {"": 1}),
    ]


def test_labels_that_share_spans_do_not_contradict_each_other(merging):
    """Of a form that is always both, and of one that has another label where nobody looked for this one."""
    train = [f"{n} cat" for n in range(5)]
    merging.add("a", ["A"], rows(*train, word="cat"), split="train")
    merging.add(
        "b", ["B"], [*rows(*train, label="B", word="cat"), *rows("one owl", label="B", word="owl")], split="train"
    )
    merging.add("t", ["A"], [*rows("a cat", word="cat"), *rows("an owl", word="owl")], split="test")
    labels, forms = familiarity_of(merging)
    assert labels == {"A": {"alike": (1, 1), "variously": (0, 0), "never": (1, 1)}}
    assert forms["alike"] == [("cat", "A", 1, {"A": 5, "B": 5})]
    assert forms["never"] == [("owl", "A", 1, {"B": 1})]


def test_now_and_then_is_alike(merging):
    """One stray in 20 doesn't make a form marked variously; three do."""
    for word, strays in (("cat", 1), ("dog", 3)):
        texts = [f"{n} {word}" for n in range(20)]
        tasks = [*rows(*texts[strays:], word=word), *rows(*texts[:strays])]
        merging.add(word, ["A"], tasks, split="train")
    merging.add("t", ["A"], [*rows("a cat", word="cat"), *rows("a dog", word="dog")], split="test")
    labels, _ = familiarity_of(merging)
    assert labels == {"A": {"alike": (1, 1), "variously": (1, 1), "never": (0, 0)}}


def test_what_cannot_be_judged_is_not_missed(merging):
    merging.add("a", ["A"], rows("1 cat", word="cat"), split="train")
    judged = {"_view_id": "ner", "answer": "accept"}
    merging.add("t", ["A"], [{**rows("a cat", word="cat")[0], **judged}, *rows("a dog")], split="test")
    labels, _ = familiarity_of(merging)
    assert labels == {"A": {"alike": (1, 1), "variously": (0, 0), "never": (0, 0)}}  # what was accepted is known


def test_what_was_moved_to_token_boundaries_is_left_out(merging):
    """No pipeline can find what isn't made of whole tokens: it isn't for train to say why."""
    merging.add("a", ["A"], rows("1 cats", word="cats"), split="train")
    merging.add("t", ["A"], rows("a cats", word="cat"), split="test")
    assert familiarity_of(merging, alignment="expand") == ({}, {"alike": [], "variously": [], "never": []})


def test_without_train_nothing_is_known(merging):
    merging.add("t", ["A"], rows("a cat", word="cat"), split="test")
    assert familiarity_of(merging) == ({}, {})


@pytest.mark.parametrize(
    ("free", "marked", "contradicted"), [(20, 0, {"A": 1}), (19, 0, {}), (100, 1, {"A": 1}), (99, 1, {})]
)
def test_what_train_leaves_unmarked_contradicts_a_span_that_is_missed(merging, free, marked, contradicted):
    train = [*rows(*(f"{n} cat" for n in range(free))), *rows(*(f"{n} the cat" for n in range(marked)), word="cat")]
    merging.add("a", ["A"], train, split="train")
    merging.add("t", ["A"], rows("no cat", "old cat", word="cat"), split="test")
    assert find(merging, lambda text, gold: gold if text == "old cat" else []).contradicted == contradicted


def test_what_overlaps_a_prediction_of_its_label_is_not_missed(merging):
    merging.add("a", ["A"], rows("1 red cat", word="red cat"), split="train")
    merging.add("t", ["A"], [*rows("a red cat", word="red cat"), *rows("my red cat", word="red cat")], split="test")
    found = find(merging, lambda text, gold: [(6, 9, "A")] if text == "a red cat" else [(3, 10, "A")])
    assert [(one.gold, one.found, one.missed) for one in found.labels["A"].values()] == [
        (2, 1, 0),
        (0, 0, 0),
        (0, 0, 0),
    ]

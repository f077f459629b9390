"""Why gold spans weren't found: by hand, on a corpus of a few texts."""

import json

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate.causes import find_causes
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.merge.rules.policies import Policies
from tests.conftest import Merging


def rows(*texts: str, label: str = "A", word: str = "") -> list[dict]:
    """Tasks that mark a word wherever it is."""
    made = []
    for text in texts:
        places = [n for n in range(len(text)) if word and text.startswith(word, n)]
        made.append({"text": text, "spans": [{"start": n, "end": n + len(word), "label": label} for n in places]})
    return made


def causes_of(merging: Merging, found: set[str] = frozenset(), **policies) -> tuple[dict, dict]:
    """Merge, let a pipeline find nothing but these texts' gold, and give the causes."""
    merging.run(dev_ratio=0, test_ratio=0, policies=Policies(**policies))
    corpus = merging.root / "corpus"
    docs = []
    for file in find_partitions(corpus / "test"):
        for stored in read_stored_docs(file):
            gold = [tuple(span[:3]) for span in stored.annotation.gold]
            key = text_key(stored.text.encode()).hex()
            predicted = gold if stored.text in found else []
            docs.append(PredictedDoc(key, stored.text, predicted, gold, gold, uncovered=stored.annotation.uncovered))
    path = merging.root / "predictions.jsonl"
    with path.open("wb") as file:
        write_predictions(docs, file)
    causes = find_causes(corpus, corpus / "test", path, json.loads((corpus / "manifest.json").read_text())["labels"])
    return causes.labels, {
        cause: [(form.form, form.label, form.count, form.train) for form in forms]
        for cause, forms in causes.forms.items()
    }


def test_each_cause(merging):
    train = [f"{n} red cat" for n in range(12)]
    merging.add(
        "a", ["A"], [*rows(*train, word="cat"), *rows("1 dog", word="dog"), *rows("2 dog", "owl")], split="train"
    )
    merging.add("b", ["B"], rows("3 cow", label="B", word="cow"), split="train")
    merging.add("c", ["A"], rows("3 cow"), split="train")
    tests = [*rows("a cat", "the cat", word="cat"), *rows("a dog", word="dog"), *rows("one owl", word="owl")]
    tests += [*rows("old cow", word="cow"), *rows("new emu", word="emu"), *rows("found cat", word="cat")]
    merging.add("t", ["A"], tests, split="test")
    labels, forms = causes_of(merging, {"found cat"})
    assert labels == {"A": {"consistent": 2, "inconsistent": 3, "unseen": 1}}
    assert forms["consistent"] == [("cat", "A", 2, {"A": 12})]
    assert forms["unseen"] == [("emu", "A", 1, {})]
    # Free in a text that is complete for A; the cow is B, and for A it is free.
    assert forms["inconsistent"] == [
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
    labels, forms = causes_of(merging)
    assert labels == {"A": {"consistent": 1, "inconsistent": 0, "unseen": 1}}
    assert forms["consistent"] == [("cat", "A", 1, {"A": 5, "B": 5})]
    assert forms["unseen"] == [("owl", "A", 1, {"B": 1})]


def test_now_and_then_is_consistent(merging):
    """One stray in 20 doesn't make a form inconsistent; three do."""
    for word, strays in (("cat", 1), ("dog", 3)):
        texts = [f"{n} {word}" for n in range(20)]
        tasks = [*rows(*texts[strays:], word=word), *rows(*texts[:strays])]
        merging.add(word, ["A"], tasks, split="train")
    merging.add("t", ["A"], [*rows("a cat", word="cat"), *rows("a dog", word="dog")], split="test")
    labels, _ = causes_of(merging)
    assert labels == {"A": {"consistent": 1, "inconsistent": 1, "unseen": 0}}


def test_what_cannot_be_judged_is_not_missed(merging):
    merging.add("a", ["A"], rows("1 cat", word="cat"), split="train")
    judged = {"_view_id": "ner", "answer": "accept"}
    merging.add("t", ["A"], [{**rows("a cat", word="cat")[0], **judged}, *rows("a dog")], split="test")
    labels, _ = causes_of(merging)
    assert labels == {"A": {"consistent": 1, "inconsistent": 0, "unseen": 0}}  # what was accepted is known


def test_what_was_moved_to_token_boundaries_has_no_cause(merging):
    """No pipeline can find what isn't made of whole tokens: it isn't for train to say why."""
    merging.add("a", ["A"], rows("1 cats", word="cats"), split="train")
    merging.add("t", ["A"], rows("a cats", word="cat"), split="test")
    assert causes_of(merging, alignment="expand") == ({}, {"unseen": [], "inconsistent": [], "consistent": []})


def test_without_train_nothing_is_known(merging):
    merging.add("t", ["A"], rows("a cat", word="cat"), split="test")
    assert causes_of(merging) == ({}, {})

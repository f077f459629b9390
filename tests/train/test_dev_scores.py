import random

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_config

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.corpus.pipeline import predict_each
from labelwise.train.dev_scores import count_entities, scores_of, weighted_score
from labelwise.train.training_config import default_config
from tests.conftest import stored

# Right, predicted and gold spans of A and B.
COMMON = [[90, 90, 100], [0, 0, 4]]  # many spans of A are found, and none of B
BOTH = [[80, 80, 100], [3, 3, 3]]
TEXTS = [" ".join(random.Random(number).choices("abcdefgh", k=9)) for number in range(40)]


@spacy.Language.component("tests_guess")
def guess(doc: Doc) -> Doc:
    rng, place = random.Random(doc.text), 0
    ents = []
    while place < len(doc):
        end = min(len(doc), place + rng.randint(1, 2))
        ents += [Span(doc, place, end, rng.choice("AABC"))] if rng.random() < 0.5 else []
        place = end
    doc.ents = ents
    return doc


def gold(nlp, text: str) -> Doc:
    predicted = nlp(text)
    doc = nlp.make_doc(text)
    ents = [Span(doc, ent.start, ent.end, ent.label_) for ent in predicted.ents if ent.label_ != "C" and ent.start % 4]
    free = [token.i for token in predicted if not token.ent_type_ and token.i > 1]
    ents += [Span(doc, place, place + 1, "B") for place in free[:1]]
    hidden = [doc[0:2]] if not any(ent.start < 2 for ent in ents) else []
    doc.set_ents(ents, missing=hidden, default="outside")
    annotate(doc, Annotation([(ent.start_char, ent.end_char, ent.label_, []) for ent in doc.ents], [], {}))
    return doc


@pytest.fixture(scope="module")
def nlp() -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("tests_guess")
    nlp.add_pipe("ner").add_label("A")  # whose scorer is spaCy's
    nlp.initialize()
    nlp.disable_pipe("ner")
    return nlp


@pytest.mark.guarantee("spacys-scores")
@pytest.mark.parametrize(("words", "batch_size"), [(1, 1000), (10**6, 2), (20, 1000)])
def test_scores_are_spacys_to_the_last_digit(nlp, monkeypatch, words, batch_size):
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", words)
    monkeypatch.setattr(nlp, "batch_size", batch_size)
    docs = [gold(nlp, text) for text in TEXTS]
    assert any(token.ent_iob == 0 for doc in docs for token in doc)
    expected = spacy.scorer.get_ner_prf([Example(nlp(doc.text), doc) for doc in docs])
    shares = [count_entities(predict_each(nlp, map(stored, docs[rank::3]), len), "ABCD") for rank in range(3)]
    scores = scores_of(sum(shares), "ABCD")
    by_label = expected["ents_per_type"]
    assert scores.pop("ents_macro_f") == (by_label["A"]["f"] + by_label["B"]["f"]) / 2, "C has no gold, as on test"
    assert scores == expected
    assert 0 < scores["ents_p"] < 1 > scores["ents_r"] > 0
    assert scores["ents_per_type"]["C"] == {"p": 0.0, "r": 0.0, "f": 0.0}


def test_nothing_to_score_is_none():
    assert set(scores_of(np.zeros((2, 3), int), "AB").values()) == {None}


PREDICTED: list[str] = []


@spacy.Language.component("tests_watch")
def watch(doc: Doc) -> Doc:
    PREDICTED.append(doc.text)
    return doc


@pytest.mark.guarantee("streaming")
@pytest.mark.parametrize(("words", "batch_size"), [(10, 1000), (10**6, 10)])
def test_one_batch_is_held_at_a_time(monkeypatch, words, batch_size):
    monkeypatch.setattr("labelwise.corpus.pipeline.BATCH_WORDS", words)
    PREDICTED.clear()
    nlp = spacy.blank("en")
    nlp.batch_size = batch_size
    nlp.add_pipe("tests_watch")

    def texts():
        for number in range(100):
            assert number - len(PREDICTED) < 10
            doc = nlp.make_doc("a")
            doc.set_ents([], default="outside")
            annotate(doc, Annotation([], [], {}))
            yield stored(doc)

    count_entities(predict_each(nlp, texts(), len), "A")
    assert len(PREDICTED) == 100


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        ({}, 0.0),
        ({"ents_p": 0.5, "ents_r": 2.0}, 0.75),
        ({"ents_f": 1.0, "ents_r": 1.0}, 0.25),  # nothing to compute it of counts as nothing
        ({"ents_r": 1.0, "ents_p": None, "ents_per_type": None, "speed": None, "tag_acc": 0.0}, 0.25),
    ],
)
def test_scores_are_weighted(weights, score):
    assert weighted_score({"ents_p": 0.5, "ents_r": 0.25, "ents_f": None}, weights) == score


@pytest.mark.parametrize("name", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("steps", "best"),
    [
        ((COMMON, BOTH), 1),  # F1 alone would take the first
        (([[5, 5, 100], [3, 3, 3]], COMMON), 1),  # macro F1 alone would take the first
    ],
)
def test_the_mean_of_f_and_macro_f_decides_by_the_configs(name, steps, best):
    weights = load_config(default_config(name))["training"]["score_weights"]
    scores = [weighted_score(scores_of(np.array(counts), "AB"), weights) for counts in steps]
    assert scores.index(max(scores)) == best


@pytest.mark.guarantee("covered-labels")
@pytest.mark.parametrize(
    ("uncovered", "expected"),
    [
        ({}, [1, 2, 1]),
        ({"A": "none"}, [0, 1, 1]),
        ({"B": "none"}, [1, 1, 0]),
        ({"A": "partial"}, [1, 1, 1]),  # its accepted span counts, its rejected one isn't predicted
        ({"A": "none", "B": "none"}, [0, 0, 0]),
    ],
)
def test_what_nobody_annotated_counts_neither_as_gold_nor_as_predicted(uncovered, expected):
    """`a` is A and predicted so, `b` is predicted A, `c` is predicted B, `d` is B and missed."""
    nlp = spacy.blank("en")
    patterns = [{"label": label, "pattern": word} for word, label in (("a", "A"), ("b", "A"), ("c", "B"))]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    reference = Doc(nlp.vocab, words=list("abcd"))
    reference.set_ents([Span(reference, 0, 1, "A"), Span(reference, 3, 4, "B")], default="outside")
    annotate(reference, Annotation([(0, 1, "A", []), (6, 7, "B", [])], [(4, 5, "A")], uncovered))
    right, predicted, gold = count_entities(predict_each(nlp, iter([stored(reference)]), len), "AB").sum(0)
    assert [right, predicted - right, gold - right] == expected

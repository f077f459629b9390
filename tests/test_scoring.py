"""Scores against hand counts and against spaCy's own scorer."""

import random

import pytest
import spacy
from spacy.scorer import Scorer
from spacy.training import Example

from labelwise.annotation import set_user_data
from labelwise.scoring import Counts, count_docs, prf

NLP = spacy.blank("en")


def make_pair(text, predicted, gold, flat=None, uncovered=()):
    """A predicted Doc and a merged one; spans are (start, end, label)."""
    docs = NLP.make_doc(text), NLP.make_doc(text)
    for doc, spans in zip(docs, (predicted, gold if flat is None else flat), strict=True):
        doc.set_ents([doc.char_span(*span) for span in spans])
    set_user_data(docs[1], {span: [] for span in gold}, dict.fromkeys(uncovered, "none"))
    return docs


def test_hand_counted():
    text = "big cat sat on 60degC mat"
    pair = make_pair(
        text,
        predicted=[(0, 7, "A"), (8, 11, "A"), (22, 25, "B")],
        gold=[(0, 7, "A"), (4, 7, "B"), (8, 11, "B"), (15, 17, "B"), (22, 25, "B")],
        flat=[(0, 7, "A"), (8, 11, "B"), (22, 25, "B")],
    )
    against_all, against_flat = (counts.scores(["A", "B"]) for counts in count_docs([pair]))
    # All gold: 2 of 3 predictions are right, 2 of 5 spans are found; the two that were lost on the way are missed.
    assert (against_all["p"], against_all["r"], against_all["f"], against_all["support"]) == (0.6667, 0.4, 0.5, 5)
    assert against_all["labels"]["A"] == {"p": 0.5, "r": 1.0, "f": 0.6667, "support": 1}
    assert against_all["labels"]["B"] == {"p": 1.0, "r": 0.25, "f": 0.4, "support": 4}
    assert (against_flat["r"], against_flat["support"]) == (0.6667, 3)


def test_a_label_is_scored_only_where_it_is_covered():
    pair = make_pair("big cat sat", [(0, 3, "A"), (4, 7, "B")], [(8, 11, "A"), (4, 7, "B")], uncovered=["A"])
    against_all, _ = count_docs([pair])
    assert against_all.scores(["A", "B"])["labels"] == {
        "A": {"p": 0.0, "r": 0.0, "f": 0.0, "support": 0},
        "B": {"p": 1.0, "r": 1.0, "f": 1.0, "support": 1},
    }


def test_on_covered_flat_data_the_numbers_are_spacys():
    rng = random.Random(0)
    pairs = []
    for _ in range(50):
        text = " ".join(rng.choices(["aa", "bb", "cc"], k=30))
        spans = [[(3 * i, 3 * i + 2, rng.choice("XYZ")) for i in range(30) if rng.random() < 0.3] for _ in range(2)]
        agreed = [span for span in spans[1] if rng.random() < 0.5]
        taken = {span[0] for span in agreed}
        pairs.append(make_pair(text, sorted(agreed + [s for s in spans[0] if s[0] not in taken]), spans[1]))
    expected = Scorer.score_spans([Example(*pair) for pair in pairs], "ents")
    scores = count_docs(pairs)[0].scores(["X", "Y", "Z"])
    assert scores["f"] > 0.2
    assert [scores[key] for key in "prf"] == [round(expected[f"ents_{key}"], 4) for key in "prf"]
    for label, values in expected["ents_per_type"].items():
        assert [scores["labels"][label][key] for key in "prf"] == [round(values[key], 4) for key in "prf"]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0), (0.0, 0.0, 0.0)),
        ((0, 3, 0), (0.0, 0.0, 0.0)),
        ((0, 0, 3), (0.0, 0.0, 0.0)),
        ((1, 2, 4), (0.5, 0.25, 0.3333)),
    ],
)
def test_nothing_to_divide_by(counts, expected):
    assert tuple(prf(*counts)[key] for key in "prf") == expected


def test_a_span_predicted_twice_counts_once():
    counts = Counts()
    counts.add([(0, 3, "A"), (0, 3, "A")], [(0, 3, "A")])
    assert (counts.right["A"], counts.predicted["A"], counts.gold["A"]) == (1, 1, 1)

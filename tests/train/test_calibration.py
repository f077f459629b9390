"""Probabilities that can be trusted, fitted on dev."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from labelwise.corpus.annotation import Annotation, annotate
from labelwise.train.calibrate import Judged, fit, fit_settings
from spacy_per_label import PerLabelRecognizer
from spacy_per_label.decode import FoundSpans
from tests.conftest import stored


class Fixed(PerLabelRecognizer):
    """A recognizer of one label that finds each token, with log-odds that its text says."""

    def predict(self, docs: list[Doc]) -> list[FoundSpans]:
        found = []
        for doc in docs:
            places, odds = np.arange(len(doc)), np.array([float(token.text) for token in doc])
            likely = odds > 0
            spans = (np.zeros(len(doc), int), places, places + 1, 1 / (1 + np.exp(-odds)))
            found.append(FoundSpans(*(column[likely] for column in spans)))
        return found


@pytest.fixture
def nlp() -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.tokenizer = spacy.tokenizer.Tokenizer(nlp.vocab)
    nlp.add_pipe("per_label", name="ner")
    pipe = Fixed(nlp.vocab, nlp.get_pipe("ner").model)
    pipe.add_label("A")
    nlp._components = [("ner", pipe)]
    return nlp


def texts(nlp, odds, right):
    """A text for each hundred tokens; those that are right are gold."""
    for first in range(0, len(odds), 100):
        doc = Doc(nlp.vocab, words=[f"{value:.4f}" for value in odds[first : first + 100]])
        doc.set_ents([], default="outside")
        spans = [Span(doc, n, n + 1, "A") for n, yes in enumerate(right[first : first + 100]) if yes]
        annotate(doc, Annotation([(span.start_char, span.end_char, "A", []) for span in spans], [], {}))
        yield stored(doc)


def test_what_generated_the_data_is_found(nlp):
    """Spans are right with the odds 0.5 x + 0.3, where the pipeline says x."""
    rng = np.random.default_rng(0)
    odds = rng.uniform(0.1, 5, 4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-(0.5 * odds + 0.3)))
    found = fit(nlp, texts(nlp, odds, right))
    assert found.settings["slopes"]["A"] == pytest.approx(0.5, abs=0.08)
    assert found.settings["intercepts"]["A"] == pytest.approx(0.3, abs=0.2)
    assert found.after < 0.02 < found.before


def test_what_is_fitted_is_the_most_probable_where_hardly_a_span_is_wrong():
    """The slope of the posterior is 0: of all labels together, which a label without spans has, and of a label."""
    rng = np.random.default_rng(0)
    odds = rng.normal(5, 1, 3000)
    right = rng.random(3000) < 1 / (1 + np.exp(-(2 * odds + 0.5)))
    found = fit_settings(Judged(np.full(3000, "A"), odds, right, np.arange(3000)), ("A", "B"), 3000)
    own, common = ([found["slopes"][name], found["intercepts"][name]] for name in "AB")
    design = np.stack([odds, np.ones(3000)])
    for weights, prior, strength in ((common, [1, 0], 1), (own, common, 10)):
        p = 1 / (1 + np.exp(-np.array(weights) @ design))
        assert design @ (p - right) + strength * np.subtract(weights, prior) == pytest.approx([0, 0], abs=1e-3)


def test_of_few_texts_one_temperature_is_fitted(nlp):
    rng = np.random.default_rng(0)
    odds = rng.normal(1, 2, 2900)
    right = rng.random(2900) < 1 / (1 + np.exp(-(0.5 * odds + 0.3)))
    found = fit(nlp, texts(nlp, odds, right))  # 29
    assert found.settings["intercepts"] == {"A": 0}
    assert 0.5 < found.settings["slopes"]["A"] < 0.9  # it takes over what the intercept would do


def test_the_error_is_of_texts_that_were_not_fitted_on(nlp):
    """Texts in turn are all wrong and all right: what one half fits is as wrong as can be for the other."""
    odds = np.random.default_rng(0).normal(2, 1, 4000)
    found = fit(nlp, texts(nlp, odds, np.arange(4000) // 100 % 2 == 1))
    assert found.after > 0.9


def test_where_nothing_was_found_nothing_is_fitted(nlp):
    assert fit(nlp, texts(nlp, np.full(100, -5.0), np.zeros(100, bool))) is None

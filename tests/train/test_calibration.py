"""Probabilities that can be trusted, fitted on dev."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from labelwise.corpus.annotation import annotation_of
from labelwise.corpus.reliability import Reliability
from labelwise.demo.write import make_demo
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.convert_brat import convert_brat
from labelwise.train.calibrate import fit
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from spacy_per_label import FoundSpans, PerLabelRecognizer
from spacy_per_label.component import FITTED
from spacy_per_label.decode import calibrated
from tests.train.test_resume import CPU


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A pipeline that is far from perfect, on 500 texts: its folder, and what training said."""
    folder = tmp_path_factory.mktemp("trained")
    make_demo(folder / "brat", docs=500, labels=4, words=60)
    convert_brat(folder / "brat", folder / "tasks")
    merge_data([folder / "tasks" / "datasets.yml"], folder / "corpus", Settings(dev_ratio=0.7, test_ratio=0.1))
    overrides = {"training.max_steps": 35, "training.eval_frequency": 35}
    recipe = Recipe(CPU, folder / "corpus", overrides=overrides)
    return folder, train_pipeline(recipe, folder / "model", folder / "c.tsv")


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


def fixed_pipeline() -> spacy.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label", name="ner")
    pipe = Fixed(nlp.vocab, nlp.get_pipe("ner").model)
    pipe.add_label("A")
    nlp._components = [("ner", pipe)]
    return nlp


def examples(nlp, odds, right):
    """A text for each hundred tokens; those that are right are gold."""
    for first in range(0, len(odds), 100):
        words = [f"{value:.4f}" for value in odds[first : first + 100]]
        gold = Doc(nlp.vocab, words=words)
        gold.ents = [Span(gold, n, n + 1, "A") for n, yes in enumerate(right[first : first + 100]) if yes]
        yield Example(Doc(nlp.vocab, words=words), gold)


def test_what_generated_the_data_is_found():
    """Spans are right with the odds 0.5 x + 0.3, where the pipeline says x."""
    rng = np.random.default_rng(0)
    odds = rng.uniform(0.1, 5, 4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-(0.5 * odds + 0.3)))
    nlp = fixed_pipeline()
    found = fit(nlp, examples(nlp, odds, right))
    assert found.settings["slopes"]["A"] == pytest.approx(0.5, abs=0.08)
    assert found.settings["intercepts"]["A"] == pytest.approx(0.3, abs=0.2)
    assert found.after < 0.02 < found.before


def test_where_nothing_was_found_nothing_is_fitted():
    nlp = fixed_pipeline()
    assert fit(nlp, examples(nlp, np.full(100, -5.0), np.zeros(100, bool))) is None


def test_a_slope_of_one_changes_nothing():
    p = np.array([0.01, 0.5, 0.99])
    assert calibrated(p, np.ones(3), np.zeros(3)) == pytest.approx(p)


@pytest.mark.long
def test_probabilities_are_calibrated_on_dev(trained):
    folder, trained = trained
    assert trained.fitted.after <= 0.05
    nlp = spacy.load(folder / "model")
    found, right = [], []
    for eg in PartitionedCorpus(folder / "corpus" / "dev")(nlp):
        doc = nlp(eg.reference.text)
        gold = annotation_of(eg.reference).accepted
        found.extend(doc.spans["labels"].attrs["scores"])
        right.extend((span.start_char, span.end_char, span.label_) in gold for span in doc.spans["labels"])
    assert Reliability(zip(found, right, strict=True)).error() == pytest.approx(trained.fitted.after, abs=1e-3)


@pytest.mark.long
def test_more_training_forgets_what_was_fitted(trained, tmp_path):
    folder, _ = trained
    start = str(folder / "model")
    overrides = {"training.max_steps": 1, "training.eval_frequency": 1}
    train_pipeline(
        Recipe(CPU, folder / "corpus", overrides=overrides, init_from=start), tmp_path / "more", tmp_path / "c.tsv"
    )
    before, after = (spacy.load(path).get_pipe("ner").cfg for path in (start, tmp_path / "more"))
    assert all(after[name] != before[name] for name in FITTED)

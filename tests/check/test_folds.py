from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.util import resolve_dot_names

from labelwise.check.folds import Folds, add_predictions, fold_recipes, read_checked
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.record import LEARNED
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.train.config import fit_config
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT

NLP = spacy.blank("xx")


@pytest.mark.parametrize("folds", [2, 3])
def test_each_text_is_in_the_fold_that_training_leaves_out(folds, demo_corpus):
    splits, seen = Counter(), Counter()
    recipes = fold_recipes(Folds(TrainingConfig(ROOT / "configs/cpu.cfg", demo_corpus), folds))
    assert len(recipes) == folds
    for fold, recipe in enumerate(recipes):
        [reader] = resolve_dot_names(fit_config(recipe).settings.interpolate(), ["corpora.train"])
        trained = {eg.reference.text for eg in reader(NLP)}
        for doc in read_checked(demo_corpus, *LEARNED[: 2 if fold == 0 else 1], fold=fold, folds=folds):
            assert doc.stored.text not in trained
            seen[doc.stored.text] += 1
            splits[doc.split] += 1
        assert reader.counts["texts"] + reader.counts["left out"] == read_manifest(demo_corpus).splits["train"].texts
    expected = read_manifest(demo_corpus).splits
    assert splits == {split: expected[split].texts for split in ("train", "dev")}
    assert set(seen.values()) == {1}


def per_label(corpus: Path, *labels: str) -> spacy.Language:
    nlp = make_nlp(*read_tokenizer(corpus / "tokenizer.json"))
    component = nlp.add_pipe("per_label", name="ner")
    for label in labels:
        component.add_label(label)
    nlp.initialize()
    return nlp


def test_labels_lost_from_or_new_in_the_corpus_have_no_prediction(demo_corpus):
    labels = read_manifest(demo_corpus).labels
    nlp = per_label(demo_corpus, "LOST", *labels[1:])
    docs = list(add_predictions(nlp, read_checked(demo_corpus, "dev"), labels))
    for doc in docs:
        assert doc.prediction.probability((0, 1, 0)) is None
        assert doc.prediction.probability((0, 1, 1)) is not None
        assert {number for *_, number in doc.prediction.found} <= set(range(1, len(labels)))
    assert any(doc.prediction.found for doc in docs)


def test_a_pipeline_with_another_tokenizer_has_no_prediction_for_texts_that_it_splits_otherwise(demo_corpus):
    labels = read_manifest(demo_corpus).labels
    nlp = per_label(demo_corpus, *labels)
    nlp.tokenizer.infix_finditer = None
    docs = list(add_predictions(nlp, read_checked(demo_corpus, *LEARNED), labels))
    same = [
        [token.text for token in nlp.make_doc(stored.text)] == [stored.strings[word] for word in stored.words.tolist()]
        for stored in (doc.stored for doc in docs)
    ]
    assert [doc.prediction is not None for doc in docs] == same
    assert not all(same)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_predictions_are_those_for_each_text_alone(batch_size, demo_corpus):
    labels = read_manifest(demo_corpus).labels
    nlp = per_label(demo_corpus, *reversed(labels))
    nlp.batch_size = batch_size
    docs = list(read_checked(demo_corpus, "dev"))
    whole = list(add_predictions(nlp, iter(docs), labels))
    nlp.batch_size = 1
    assert [doc.stored for doc in whole] == [doc.stored for doc in docs]
    for doc, alone in zip(whole, add_predictions(nlp, iter(docs), labels), strict=True):
        for number in range(len(labels)):
            for span in ((0, 1, number), (1, 4, number), (len(doc.stored) - 2, len(doc.stored), number)):
                assert doc.prediction.probability(span) == pytest.approx(alone.prediction.probability(span), rel=1e-4)

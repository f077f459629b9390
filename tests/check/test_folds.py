"""A pipeline gives its opinion on texts that it wasn't trained on, and each text has one opinion."""

from collections import Counter
from dataclasses import replace

import pytest
import spacy

from labelwise.check import folds as module
from labelwise.check.folds import add_opinions, read_checked, train_fold
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.tokenizer import extend_tokenizer, read_tokenizer
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from tests.conftest import ROOT

NLP = spacy.blank("en")


@pytest.mark.parametrize("folds", [2, 3])
def test_each_text_is_in_the_fold_that_training_leaves_out(folds, demo_corpus):
    splits, seen = Counter(), Counter()
    for fold in range(folds):
        trained = {
            eg.reference.text for eg in PartitionedCorpus(demo_corpus / "train", leave_out=f"{fold}/{folds}")(NLP)
        }
        for doc in read_checked(demo_corpus, fold, folds):
            assert doc.stored.text not in trained
            seen[doc.stored.text] += 1
            splits[doc.split] += 1
    expected = read_manifest(demo_corpus)["splits"]
    assert splits == {split: row["texts"] for split, row in expected.items()}
    assert set(seen.values()) == {1}


def test_training_is_told_what_to_leave_out(demo_corpus, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(module, "train", lambda *given: told.append(given[:2]))
    recipe = Recipe(ROOT / "configs" / "cpu.cfg", demo_corpus, workers=2, overrides={"system.seed": 5})
    model = train_fold(recipe, tmp_path, 1, 3)
    changed = {"system.seed": 5, "labelwise.freeze": False, "labelwise.optimize": "", "corpora.train.leave_out": "1/3"}
    assert told == [(replace(recipe, overrides=changed), tmp_path / "fold-1")]
    assert model == tmp_path / "fold-1"


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_opinions_are_those_on_each_text_alone(batch_size, demo_corpus):
    """However texts are put together, whatever order the pipeline has its labels in."""
    labels = read_manifest(demo_corpus)["labels"]
    nlp = spacy.blank("en")
    extend_tokenizer(nlp, read_tokenizer(demo_corpus / "tokenizer.json")[1])
    component = nlp.add_pipe("labelwise_per_label", name="ner")
    for label in reversed(labels):
        component.add_label(label)
    nlp.initialize()
    nlp.batch_size = batch_size
    docs = [doc for doc in read_checked(demo_corpus) if doc.split == "dev"]
    whole = list(add_opinions(nlp, iter(docs), labels))
    nlp.batch_size = 1
    assert [doc.stored for doc in whole] == [doc.stored for doc in docs]
    for doc, alone in zip(whole, add_opinions(nlp, iter(docs), labels), strict=True):
        for number in range(len(labels)):
            for span in ((0, 1, number), (1, 4, number), (len(doc.stored) - 2, len(doc.stored), number)):
                assert doc.opinion.probability(span) == pytest.approx(alone.opinion.probability(span), rel=1e-4)
        made = nlp.make_doc(doc.stored.text)
        tags = component.log_probabilities([made])
        first = labels.index(component.labels[0])
        assert doc.opinion.probability((2, 3, first)) == pytest.approx(float(2.718281828 ** tags[2, 0, 4]), rel=1e-3)

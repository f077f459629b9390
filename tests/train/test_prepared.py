"""Batches of arrays, made here or in another process."""

import pickle
from pathlib import Path

import pytest
import spacy

from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp
from labelwise.recognizer.wordpieces import Wordpieces
from labelwise.train import loop
from labelwise.train.batches import CostBatcher
from labelwise.train.prepared import PreparedText, Preparing, Reading, pipeline_of, prepare_batches, preparing
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

PARTS = ("ner/model", "transformer/model")


def trained(corpus: Path, bert: Path, out: Path, **changed: object) -> tuple[list[bytes], str]:
    """The parameters of a short training, and its curve."""
    overrides = {"components.transformer.model.name": str(bert), "training.max_steps": 6, "training.eval_frequency": 3}
    overrides |= {"components.transformer.model.precision": "fp32", "training.batcher.size": 1500} | changed
    train_pipeline(Recipe(ROOT / "configs" / "gpu.cfg", corpus, overrides=overrides), out / "model", out / "curve.tsv")
    scores = [line.split("\t")[2:6] for line in (out / "curve.tsv").read_text().splitlines()]
    return [(out / "model" / part).read_bytes() for part in PARTS], str(scores)


@pytest.mark.slow
def test_bytes_do_not_depend_on_who_prepares_the_batches(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    here = trained(demo_corpus, tiny_bert, tmp_path / "here")
    seen = []
    own = loop.open_batches

    def for_a_gpu(nlp, reading, joint, clock, gpu_id):
        seen.append(reading)
        return own(nlp, reading, joint, clock, 0)

    monkeypatch.setattr(loop, "open_batches", for_a_gpu)
    assert trained(demo_corpus, tiny_bert, tmp_path / "there") == here
    assert len(seen) == 1


@pytest.mark.slow
def test_a_training_of_prepared_texts_is_one_of_examples(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    """To the bit, as they are the same numbers."""
    from_arrays = trained(demo_corpus, tiny_bert, tmp_path / "arrays")
    monkeypatch.setattr("labelwise.train.prepared.label_order", lambda nlp: None)
    made = []
    own = loop.update_components
    monkeypatch.setattr(
        loop, "update_components", lambda nlp, batch, **options: (made.extend(batch), own(nlp, batch, **options))
    )
    assert trained(demo_corpus, tiny_bert, tmp_path / "examples") == from_arrays
    assert made
    assert not any(isinstance(one, PreparedText) for one in made)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_another_process_is_given_makes_the_same_tokens(demo_corpus, lang):
    nlp = make_nlp(lang, TokenizerRules(infixes=("(?<=o)(?=o)",), no_exceptions=("don't",)))
    reading = Reading(PartitionedCorpus(demo_corpus / "train"), CostBatcher(100), 0, 0, 1, 0, 1)
    given = pickle.loads(pickle.dumps(preparing(nlp, reading, Wordpieces(None, None), ())))
    text = "Don't look, don't. 你好"
    assert [t.text for t in pipeline_of(given).make_doc(text)] == [t.text for t in nlp.make_doc(text)]


def test_a_corpus_that_was_merged_anew_meanwhile_is_not_read(demo_corpus):
    nlp = spacy.blank("en")
    reading = Reading(PartitionedCorpus(demo_corpus / "train"), CostBatcher(100), 0, 0, 1, 0, 1)
    given = Preparing(reading, "en", TokenizerRules(), nlp.tokenizer.to_bytes(), Wordpieces(None, None), (), "another")
    with pytest.raises(InputError, match="was merged anew meanwhile; start again"):
        next(prepare_batches(given))

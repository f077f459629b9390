"""configs/trf.cfg: spaCy's own transformer and recognizer, trained by the same loop."""

import pytest
import spacy

from labelwise.train.config import fit_config
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT
from tests.train.training import losses, train_in

TRF = ROOT / "configs" / "trf.cfg"


def test_spacys_transformer_learns_by_the_same_command(demo_corpus, tiny_bert, tmp_path):
    pytest.importorskip("spacy_transformers")
    overrides = {
        "components.transformer.model.name": str(tiny_bert),
        "training.max_steps": 6,
        "training.eval_frequency": 3,
        "training.batcher.size": 900,
        "training.optimizer.learn_rate.initial_rate": 0.005,
        "labelwise.few_words": 0,
    }
    train_in(tmp_path, demo_corpus, overrides, TRF)
    first, last = losses(tmp_path)
    assert last < first
    nlp = spacy.load(tmp_path / "model")
    assert nlp.pipe_names == ["transformer", "ner"]
    assert nlp.config["components"]["transformer"]["model"]["mixed_precision"] is False  # on the CPU


def test_it_is_in_mixed_precision_on_a_gpu(demo_corpus):
    pytest.importorskip("spacy_transformers")
    model = fit_config(TrainingConfig(TRF, demo_corpus, gpu_id=0)).settings["components"]["transformer"]["model"]
    assert model["mixed_precision"] is model["grad_scaler_config"]["enabled"] is True

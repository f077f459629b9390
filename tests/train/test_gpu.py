"""Needs a GPU: `python -m pytest -m gpu`, in the environment of `make gpu` with pytest."""

import json
import re

import pytest

from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from tests.conftest import run_python
from tests.spacy_per_label.bert import make_bert
from tests.train.training import GPU, losses, train_in, with_bert

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_each_precision_trains_and_what_it_saves_loads_on_gpu_and_cpu(demo_corpus, tiny_bert, tmp_path, precision):
    resources, overrides = tmp_path / "resources.tsv", with_bert(tiny_bert, max_steps=20, eval_frequency=10)
    block = "components.ner.model.tok2vec"
    overrides |= {f"{block}.mixed_precision": precision != "fp32"}
    overrides |= {f"{block}.grad_scaler_config.enabled": precision == "fp16"}
    train_in(tmp_path, demo_corpus, overrides, GPU, resources=resources, gpu_id=0)
    assert losses(tmp_path)[-1] < losses(tmp_path)[0]
    header, *rows = [line.split("\t") for line in resources.read_text().splitlines()]
    assert header[-1] == "gpu_memory_mb"
    assert all(int(row[-1]) > 0 for row in rows)
    for gpu_id in (0, -1):
        scores, *_ = evaluate_pipeline(tmp_path / "model", demo_corpus / "test", gpu_id=gpu_id)
        assert scores.all_gold.support > 0


def test_training_goes_on_from_a_checkpoint(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("labelwise.train.train_pipeline.write_seen", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_in(tmp_path, demo_corpus, with_bert(tiny_bert), GPU, gpu_id=0)
    assert train_in(tmp_path, demo_corpus, with_bert(tiny_bert), GPU, gpu_id=0, resume=True).resumed == 4
    assert len(losses(tmp_path)) == 2


LESS = """
import json, sys, torch
from labelwise.train.training_config import TrainingConfig
from labelwise.train.train_pipeline import train_pipeline
config, corpus, overrides = sys.argv[1:]
recipe = TrainingConfig(config, corpus, gpu_id=0, overrides=json.loads(overrides))
from benchmarks.gpu_kit.common import free_memory
assert not train_pipeline(recipe, "model", "curve.tsv").state.sub_batch
taken, left = torch.cuda.max_memory_reserved(), free_memory()
limit = left + 0.6 * (taken - left)
torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
print("halved to", train_pipeline(recipe, "model", "curve.tsv").state.sub_batch)
"""


def test_memory_that_runs_out_is_halved(demo_corpus, tmp_path):
    """The limit is less than a batch of all texts takes, besides what a process keeps: its transformer is wide."""
    wide = make_bert(tmp_path / "wide", hidden_size=768, intermediate_size=3072)
    given = [str(GPU), str(demo_corpus), json.dumps(with_bert(wide, max_steps=2, **{"batcher.size": 10**7}))]
    halved = re.search(r"halved to (\d+)", run_python("-c", LESS, *given, cwd=tmp_path, WITH_TORCH="1"))
    assert halved
    assert int(halved[1]) > 0

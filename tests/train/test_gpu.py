"""What needs a GPU: `python -m pytest -m gpu`, in the environment of `make gpu` with pytest."""

import json
import re
import subprocess
import sys

import pytest

from labelwise.device import gpu_load
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.batch_size import find_batch_size
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
GPU = ROOT / "configs" / "gpu.cfg"


@pytest.fixture
def overrides(tiny_bert):
    return {
        "components.per_label.model.tok2vec.name": str(tiny_bert),
        "training.max_steps": 20,
        "training.eval_frequency": 10,
    }


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_each_precision_trains_and_what_it_saves_loads_on_gpu_and_cpu(demo_corpus, overrides, tmp_path, precision):
    resources = tmp_path / "resources.tsv"
    model = tmp_path / "model"
    train_pipeline(
        Recipe(GPU, demo_corpus, gpu_id=0, precision=precision, overrides=overrides),
        model,
        tmp_path / "curve.tsv",
        resources=resources,
    )
    rows = [line.split("\t") for line in (tmp_path / "curve.tsv").read_text().splitlines()]
    assert float(rows[-1][4]) < float(rows[2][4])  # the loss of ner
    assert resources.read_text().splitlines()[0].endswith("gpu_percent")
    for gpu_id in (0, -1):
        scores, *_ = evaluate_pipeline(model, demo_corpus / "test", gpu_id=gpu_id)
        assert scores.all_gold.support > 0


def test_training_goes_on_from_a_checkpoint(demo_corpus, overrides, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    def go(resume: bool):
        out, curve = tmp_path / "model", tmp_path / "curve.tsv"
        return train_pipeline(Recipe(GPU, demo_corpus, gpu_id=0, overrides=overrides, resume=resume), out, curve)

    with monkeypatch.context() as patch:
        patch.setattr("labelwise.train.run.tidy_pipeline", stop)
        with pytest.raises(KeyboardInterrupt):
            go(resume=False)
    assert go(resume=True).resumed == 20
    assert len((tmp_path / "curve.tsv").read_text().splitlines()) == 4


def test_the_load_is_measured():
    assert 0 <= gpu_load(0)() <= 100


def test_a_batch_size_is_found_and_used(demo_corpus, overrides, tmp_path):
    """In less memory than a batch takes of all texts, which is found out before."""
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from labelwise.train.recipe import Recipe\n"
        "from labelwise.train.run import train_pipeline\n"
        "import json; config, corpus, out, curve = map(Path, sys.argv[1:5])\n"
        "recipe = Recipe(config, corpus, gpu_id=0, overrides=json.loads(sys.argv[5]))\n"
        "assert train_pipeline(recipe, out, curve).halved == 0\n"
        "taken = torch.cuda.max_memory_reserved()\n"
        "torch.cuda.empty_cache()\n"
        "torch.cuda.set_per_process_memory_fraction(0.6 * taken / torch.cuda.get_device_properties(0).total_memory)\n"
        "print('halved', train_pipeline(recipe, out, curve).halved)\n"
    )
    huge = {**overrides, "training.batcher.size": 10_000_000, "training.max_steps": 2}
    arguments = [GPU, demo_corpus, tmp_path / "model", tmp_path / "curve.tsv", json.dumps(huge)]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    halved = re.search(r"halved (\d+)", done.stdout)
    assert halved, done.stderr
    assert int(halved[1]) > 0
    small = {key: value for key, value in overrides.items() if key.startswith("components")}
    found = find_batch_size(Recipe(GPU, demo_corpus, gpu_id=0, overrides=small), lambda cost, fitted: None)
    assert found["words"] > 0
    assert found["device"] == torch.cuda.get_device_name(0)

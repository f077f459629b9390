import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from pyarrow import parquet
from spacy.util import load_config

from labelwise.compare.comparison import count_against
from labelwise.compare.seeds import read_counts
from labelwise.corpus.manifest import read_manifest
from labelwise.evaluate.tables import Tables
from scripts.evaluate import evaluate_cli
from scripts.seeds import seeds_cli
from scripts.train import train_cli
from tests.conftest import ROOT, TINY, call
from tests.train.training import CPU


@pytest.fixture
def trained(tmp_path, monkeypatch, demo_corpus):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    overrides = {**TINY, "training.max_steps": 60, "training.eval_frequency": 15, "training.batcher.size": 2000}
    overrides["labelwise.few_words"] = 0
    load_config(CPU, overrides=overrides, interpolate=False).to_disk("configs/tiny.cfg")
    shutil.copytree(demo_corpus, "corpus")
    call(train_cli, "tiny", "--seed", 5, "--max-steps", 40)
    return tmp_path


@pytest.mark.long
def test_each_seed_is_scored_as_an_evaluation_does_and_a_killed_command_goes_on(trained):
    """The seeds follow the pipeline's; weights are deleted."""
    folder = trained / "training/tiny/.seeds.parquet.labelwise.seeds"
    command = [sys.executable, "-m", "scripts.seeds", "tiny"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # with PyTorch, as here
    killed = subprocess.Popen(command, env=environment, start_new_session=True)
    while not (folder / "6.ended").is_file():
        assert killed.poll() is None
        time.sleep(0.1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    ended = (folder / "6.ended").stat().st_mtime
    kept = trained / "kept"
    shutil.copytree(folder / "6", kept / "6/model-best")
    printed = call(seeds_cli, "tiny")
    assert "max_steps 60 -> 40" in printed
    assert printed.count("STEP") == 1, "the seed that had ended isn't trained again"
    assert ended
    assert sorted(path.name for path in (trained / "training/tiny").iterdir()) == [
        "model-best",
        "resources.tsv",
        "seeds.parquet",
    ]
    scores = json.loads((trained / "metrics/tiny_seeds.json").read_bytes())
    labels = read_manifest(trained / "corpus").labels
    table = parquet.read_table(trained / "training/tiny/seeds.parquet")
    for place, model in enumerate((trained / "training/tiny/model-best", kept / "6/model-best")):
        for split in ("dev", "test"):
            call(evaluate_cli, "tiny", "--model", model, "--split", f"corpus/{split}")
            found = json.loads((trained / "metrics/tiny.json").read_bytes())["all_gold"]
            docs = [doc for docs in Tables.of(trained / "training/tiny")._replace(split=split).docs() for doc in docs]
            counts = read_counts(table, "key", [doc.key for doc in docs], labels)[:, place]
            assert counts.tolist() == [count_against(doc, doc, labels).tolist() for doc in docs]
            assert scores["micro"][split][str(5 + place)] == pytest.approx(found["f"])
            assert scores["macro"][split][str(5 + place)] == pytest.approx(found["macro"]["f"])
    by_seed = scores["micro"]["test"]
    assert [*by_seed] == ["5", "6", "7", "mean"]
    assert by_seed["mean"] == pytest.approx(sum(by_seed[seed] for seed in "567") / 3)
    keys = table["key"].unique().to_pylist()
    by_text = read_counts(table, "key", keys, labels)
    assert len({by_text[:, place].tobytes() for place in range(3)}) == 3, "F1 may be equal by chance"


def test_a_pipeline_of_another_corpus_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = call(seeds_cli, "tiny", status=1)
    assert "it doesn't name the corpus" in printed

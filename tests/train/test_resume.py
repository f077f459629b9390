"""Training that is killed resumes to the same bytes; what a checkpoint holds, and which of them are used."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import Adam, fix_random_seed

from labelwise.corpus.tokenizer import read_rules
from labelwise.errors import InputError
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.train import checkpoint, run
from labelwise.train.checkpoint import Checkpoints, State, restore
from labelwise.train.config import read_settings
from labelwise.train.parameters import find_slots
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
SMALL = {
    "training.max_steps": 10,
    "training.eval_frequency": 2,
    "training.batcher.size": 150,
    "components.tok2vec.model.encode.width": 16,
}
OVER = "Starting over, because the config, the corpus, the device, code or packages have changed"


def with_bert(bert: Path) -> dict:
    """Overrides of configs/gpu.cfg: few steps, three parts each."""
    return {
        "training.max_steps": 5,
        "training.eval_frequency": 2,
        "training.batcher.size": 900,
        "training.accumulate_gradient": 3,
        "training.optimizer.learn_rate.warmup_steps": 2,
        "components.per_label.model.tok2vec.name": str(bert),
    }


def files(folder: Path) -> dict[str, bytes]:
    """What a training has left in a folder, by path."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def train_in(folder: Path, monkeypatch, config: Path, corpus: Path, overrides: dict, tell=lambda told: None, **options):
    """Train to folder/model and folder/curve.tsv; the paths are relative, as the saved config has them."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    recipe = Recipe(config, corpus, overrides=overrides, **options)
    return train_pipeline(recipe, Path("model"), Path("curve.tsv"), tell=tell)


def kill_in(folder: Path, config: Path, corpus: Path, overrides: dict, at: int) -> list[str]:
    """Train in another process, which SIGKILL ends before its update number `at`; list the checkpoints then."""
    folder.mkdir(exist_ok=True)
    given = json.dumps({"config": str(config), "corpus": str(corpus), "overrides": overrides})
    command = [sys.executable, "-m", "tests.train.resume_child", given, str(at)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (folder / "model").exists()
    return sorted(path.name for path in (folder / "model.checkpoints").iterdir())


@pytest.mark.long
def test_killed_twice_training_ends_with_the_same_bytes(demo_corpus, tmp_path, monkeypatch):
    """One part a batch: update 6 is of step 5; the second process begins with step 5, and its update 4 is of step 8."""
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, SMALL)
    other = tmp_path / "other"
    assert kill_in(other, CPU, demo_corpus, SMALL, at=6) == ["step-00000004"]
    assert kill_in(other, CPU, demo_corpus, SMALL, at=4) == ["step-00000006"]
    trained = train_in(other, monkeypatch, CPU, demo_corpus, SMALL, resume=True)
    assert trained.resumed == 6
    assert files(other) == files(tmp_path / "one")


@pytest.mark.long
def test_killed_training_of_a_transformer_ends_with_the_same_bytes(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    """Three parts a batch: update 15 is the last part of step 4, of which gradients of two parts are lost."""
    overrides = with_bert(tiny_bert)
    train_in(tmp_path / "one", monkeypatch, GPU, demo_corpus, overrides)
    other = tmp_path / "other"
    assert kill_in(other, GPU, demo_corpus, overrides, at=15) == ["step-00000002"]
    trained = train_in(other, monkeypatch, GPU, demo_corpus, overrides, resume=True)
    assert trained.resumed == 2
    assert files(other) == files(tmp_path / "one")


def broken(*given, **options):
    raise OSError("the disk")


def stopped(folder: Path, monkeypatch, corpus: Path, overrides: dict) -> None:
    """Train to the end, but for the last of it: a checkpoint is left."""
    with monkeypatch.context() as patched:
        patched.setattr(run, "tidy_pipeline", broken)
        with pytest.raises(OSError, match="the disk"):
            train_in(folder, monkeypatch, CPU, corpus, overrides)


@pytest.mark.parametrize("last", [4, 5])
@pytest.mark.long
def test_training_that_failed_after_its_last_step_only_finishes(demo_corpus, tmp_path, monkeypatch, last):
    overrides = {**SMALL, "training.max_steps": last}
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, overrides)
    stopped(tmp_path / "other", monkeypatch, demo_corpus, overrides)
    with monkeypatch.context() as patched:
        patched.setattr(Language, "update", broken)
        trained = train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, overrides, resume=True)
    assert trained.resumed == last
    assert files(tmp_path / "other") == files(tmp_path / "one")


def test_tidying_the_pipeline_leaves_the_checkpoints_alone(demo_corpus, tmp_path, monkeypatch):
    """They share files with the pipeline, and one of them is all that there is if tidying is killed."""
    seen = {}
    tidy = run.tidy_pipeline

    def watch(*given):
        seen["before"] = files(tmp_path / "model.checkpoints")
        tidy(*given)
        seen["after"] = files(tmp_path / "model.checkpoints")

    monkeypatch.setattr(run, "tidy_pipeline", watch)
    train_in(tmp_path, monkeypatch, CPU, demo_corpus, {**SMALL, "training.max_steps": 2})
    assert seen["after"] == seen["before"] != {}


@pytest.mark.parametrize("other", ["config", "corpus", "code", "no resume", "sub_batch"])
@pytest.mark.long
def test_checkpoints_of_another_training_are_not_used(other, demo_corpus, tmp_path, monkeypatch):
    """What the device is given at a time makes no other training."""
    overrides = {**SMALL, "training.max_steps": 2}
    stopped(tmp_path, monkeypatch, demo_corpus, overrides)
    if other == "config":
        overrides["training.dropout"] = 0.2
    if other == "sub_batch":
        overrides["labelwise.sub_batch"] = 50
    if other == "code":
        monkeypatch.setattr(checkpoint, "digest_code", lambda folders, versions: "edited")
    if other == "corpus":
        monkeypatch.setattr(checkpoint, "digest_splits", lambda corpus, splits: "merged anew")
    told: list[str] = []
    options = {"resume": other != "no resume", "tell": told.append}
    trained = train_in(tmp_path, monkeypatch, CPU, demo_corpus, overrides, **options)
    assert trained.resumed == (2 if other == "sub_batch" else None)
    assert [one.startswith(OVER) for one in told] == {"no resume": [], "sub_batch": [False]}.get(other, [True])
    assert len((tmp_path / "curve.tsv").read_text().splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.tsv", "model"]


def output(folder: Path) -> Path:
    """What a checkpoint copies of a training's folder."""
    (folder / "model-best").mkdir(parents=True)
    (folder / "model-best" / "meta.json").write_text("{}")
    (folder / "curve.tsv").write_text("step\n0\n")
    return folder


@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
def test_a_checkpoint_has_all_that_the_next_step_depends_on(kind, demo_corpus, tiny_bert, tmp_path):
    def make(seed: int):
        config, overrides = (GPU, with_bert(tiny_bert)) if kind == "transformer" else (CPU, SMALL)
        recipe = Recipe(config, demo_corpus, overrides={**overrides, "training.seed": seed})
        nlp = init_nlp(read_settings(recipe))
        corpus = registry.resolve(nlp.config.interpolate()["corpora"])["train"]
        return nlp, Adam(0.001, use_averages=True), list(corpus(nlp))

    nlp, optimizer, examples = make(seed=1)
    for number in range(3):
        nlp.update(examples[number : number + 2], sgd=optimizer, drop=0.1)
    saved = Checkpoints(tmp_path / "checkpoints", "a")
    saved.save(State(step=3, epoch=1, batches=2, scores=[0.5]), nlp, optimizer, output(tmp_path / "out"))
    other, fresh, _ = make(seed=2)
    fix_random_seed(9)
    [[folder, state]] = [saved.last()]
    restore(folder, state, other, fresh)
    assert (state.step, state.epoch, state.batches, state.scores) == (3, 1, 2, [0.5])
    pairs = list(zip(find_slots(nlp), find_slots(other), strict=True))
    assert all(np.array_equal(one.get(), two.get()) for one, two in pairs)
    assert {optimizer.nr_update.get(one.key, 0) for one, _ in pairs} >= {3}
    for one, two in pairs:
        assert optimizer.nr_update.get(one.key, 0) == fresh.nr_update.get(two.key, 0)
        for name in ("mom1", "mom2", "averages"):
            have, want = getattr(fresh, name).get(two.key), getattr(optimizer, name).get(one.key)
            assert (have is None) == (want is None)
            assert want is None or np.array_equal(have, want)
    nlp.update(examples[:2], sgd=optimizer)


@pytest.fixture
def no_arrays(monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoint, "find_slots", lambda nlp: [])


def test_the_last_checkpoint_is_kept_and_another_trainings_until_it_is_saved(tmp_path, no_arrays):
    """A training that begins anew forgets where it was before."""
    folder = output(tmp_path / "out")
    earlier, later = (Checkpoints(tmp_path / "checkpoints", digest) for digest in "ab")
    for step in (200, 400):
        earlier.save(State(step=step), None, None, folder)
    assert [path.name for path in later.all()] == ["step-00000400"]
    assert later.last() is None
    assert earlier.last()[1].step == 400
    later.save(State(step=50), None, None, folder)
    assert [path.name for path in later.all()] == ["step-00000050"]
    assert (later.last()[1].step, earlier.last()) == (50, None)
    later.delete()
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("content", ["{}", '{"fingerprint": "f", "step": 3}', "no JSON"])
def test_checkpoints_of_another_version_are_not_used(content, tmp_path):
    (tmp_path / "checkpoints" / "step-00000003").mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-00000003" / "state.json").write_text(content)
    assert Checkpoints(tmp_path / "checkpoints", "a").last() is None


def test_only_checkpoints_are_deleted(tmp_path, no_arrays):
    mine = {tmp_path / "checkpoints" / name for name in ("notes.txt", "step-00000009", "step-1")}
    for path in mine:
        path.mkdir(parents=True)
    (tmp_path / "checkpoints" / ".step-00000007.labelwise.tmp").mkdir()
    saved = Checkpoints(tmp_path / "checkpoints", "a")
    folder = output(tmp_path / "out")
    for step in range(4):
        saved.save(State(step=step), None, None, folder)
    saved.delete()
    assert set((tmp_path / "checkpoints").iterdir()) == mine


@pytest.mark.parametrize("how", [KeyboardInterrupt, "SIGKILL"])
def test_a_checkpoint_that_was_being_written_is_not_taken(how, tmp_path, no_arrays, monkeypatch):
    """The one before is; and what a killed process leaves doesn't hinder the same one being written again."""
    saved = Checkpoints(tmp_path / "checkpoints", "a")
    folder = output(tmp_path / "out")
    saved.save(State(step=2), None, None, folder)

    def stop(*given, **options):
        if how == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        raise how

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", stop)
        if how == "SIGKILL":
            if child := os.fork():
                assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
            else:
                saved.save(State(step=4), None, None, folder)
        else:
            with pytest.raises(how):
                saved.save(State(step=4), None, None, folder)
    assert saved.last()[1].step == 2
    saved.save(State(step=4), None, None, folder)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000004"]


def test_a_checkpoint_keeps_its_curve_and_pipeline_when_training_goes_on(tmp_path, no_arrays):
    folder = output(tmp_path / "out")
    Checkpoints(tmp_path / "checkpoints", "a").save(State(step=0), None, None, folder)
    with (folder / "curve.tsv").open("a") as curve:
        curve.write("1\n")
    shutil.rmtree(folder / "model-best")
    kept = files(tmp_path / "checkpoints" / "step-00000000")
    assert (kept["curve.tsv"], kept["model-best/meta.json"]) == (b"step\n0\n", b"{}")


@pytest.mark.parametrize(
    ("workers", "what"),
    [(1, "other"), *(pytest.param(*case, marks=pytest.mark.long) for case in ((1, "gone"), (2, "other")))],
)
def test_a_training_ends_when_its_corpus_is_merged_anew_and_is_not_resumed(
    demo_corpus, tmp_path, monkeypatch, workers, what
):
    """Whoever merges doesn't know of it; the next epoch would be of other texts, or of files that aren't there."""
    corpus = shutil.copytree(demo_corpus, tmp_path / "corpus")
    saved = (tmp_path / "out/model.checkpoints").glob
    read, process = PartitionedCorpus._read, os.getpid()

    def merge_meanwhile(self, rng, counts):
        if rng is not None and list(saved("step-*")) and os.getpid() == process:
            partitions = 8 if what == "other" else 100
            settings = Settings(tokenizer=read_rules(ROOT / "project.yml"), docs_per_partition=partitions)
            merge_data([demo_corpus.parent / "tasks/datasets.yml"], corpus, settings)
        return read(self, rng, counts)

    def train_again(told: list[str]):
        steps = {**SMALL, "training.max_steps": 60}
        options = {"workers": workers, "resume": True, "tell": told.append}
        return train_in(tmp_path / "out", monkeypatch, CPU, corpus, steps, **options)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionedCorpus, "_read", merge_meanwhile)
        with pytest.raises(
            InputError,
            match=r"corpus/.*\.spacy: .*; start again",
        ):
            train_again([])
    assert list(saved("step-*"))
    assert not (tmp_path / "out/model").exists()
    told: list[str] = []
    assert train_again(told)
    assert [one.startswith(OVER) for one in told] == [True]

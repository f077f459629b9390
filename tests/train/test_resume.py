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
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import Adam, fix_random_seed

from labelwise.common.code import digest_files
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import MANIFEST
from labelwise.corpus.tokenizer import read_rules
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.train import checkpoints, run
from labelwise.train.checkpoints import Checkpoints, State, restore
from labelwise.train.loaders import Streamed
from labelwise.train.out_of_memory import Updates
from labelwise.train.parameters import find_scalers, find_slots
from labelwise.train.pipeline import read_config
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


def overrides_for(precision: str, bert: Path) -> dict:
    """Overrides of configs/gpu.cfg: few steps, three parts each, and a gradient scaler that skips, and grows again."""
    return {
        "training.max_steps": 5,
        "training.eval_frequency": 2,
        "training.batcher.size": 1500,
        "training.optimizer.learn_rate.warmup_steps": 2,
        "components.transformer.model.name": str(bert),
        "components.transformer.model.precision": precision,
        "components.transformer.model.grad_scaler_config.init_scale": 2.0**22,
        "components.transformer.model.grad_scaler_config.growth_interval": 2,
    }


def files(folder: Path) -> dict[str, bytes]:
    """What a training has left in a folder, by path."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def train_in(folder: Path, monkeypatch, config: Path, corpus: Path, overrides: dict, tell=lambda told: None, **options):
    """Train to folder/model and folder/curve.tsv; the paths are relative, as the saved config has them."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    return train_pipeline(
        Recipe(config, corpus, overrides=overrides, **options), Path("model"), Path("curve.tsv"), tell=tell
    )


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


@pytest.mark.slow
@pytest.mark.long
def test_killed_twice_training_ends_with_the_same_bytes(demo_corpus, tmp_path, monkeypatch):
    """One part a batch: update 6 is of step 5; the second process begins with step 5, and its update 4 is of step 8."""
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, SMALL)
    other = tmp_path / "other"
    assert kill_in(other, CPU, demo_corpus, SMALL, at=6) == ["step-00000002", "step-00000004"]
    assert kill_in(other, CPU, demo_corpus, SMALL, at=4) == ["step-00000004", "step-00000006"]
    trained = train_in(other, monkeypatch, CPU, demo_corpus, SMALL, resume=True)
    assert trained.resumed == 6
    assert files(other) == files(tmp_path / "one")


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.long
def test_killed_training_of_a_transformer_ends_with_the_same_bytes(
    precision, demo_corpus, tiny_bert, tmp_path, monkeypatch
):
    """Three parts a batch: update 15 is the last part of step 4, of which gradients of two parts are lost."""
    overrides = {**overrides_for(precision, tiny_bert), "training.accumulate_gradient": 3}
    train_in(tmp_path / "one", monkeypatch, GPU, demo_corpus, overrides)
    other = tmp_path / "other"
    assert kill_in(other, GPU, demo_corpus, overrides, at=15) == ["step-00000002"]
    trained = train_in(other, monkeypatch, GPU, demo_corpus, overrides, resume=True)
    assert trained.resumed == 2
    assert files(other) == files(tmp_path / "one")
    if precision == "fp16":
        header, *rows = [line.split("\t") for line in (other / "curve.tsv").read_text().splitlines()]
        assert header[-2:] == ["grad_scale", "skipped_steps"]
        assert int(rows[-1][-1]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("last", [4, 5])
@pytest.mark.long
def test_training_that_failed_after_its_last_step_only_finishes(demo_corpus, tmp_path, monkeypatch, last):
    overrides = {**SMALL, "training.max_steps": last}
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, overrides)
    with monkeypatch.context() as patched:
        patched.setattr(run, "tidy_pipeline", broken)
        with pytest.raises(OSError, match="the disk"):
            train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, overrides)
    steps = [path.name for path in Checkpoints(tmp_path / "other" / "model.checkpoints", {}).all()]
    assert steps == [f"step-{step:08d}" for step in (2, 4, 5) if step <= last][-2:]
    with monkeypatch.context() as patched:
        patched.setattr("labelwise.train.out_of_memory.Updates.update", broken)
        trained = train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, overrides, resume=True)
    assert trained.resumed == last
    assert files(tmp_path / "other") == files(tmp_path / "one")


@pytest.mark.slow
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
    changed = [name for name, content in seen["before"].items() if seen["after"].get(name) != content]
    assert changed == []


def broken(*given, **options):
    raise OSError("the disk")


def stopped(folder: Path, monkeypatch, corpus: Path, overrides: dict) -> None:
    """Train to the end, but for the last of it: checkpoints are left."""
    with monkeypatch.context() as patched:
        patched.setattr(run, "tidy_pipeline", broken)
        with pytest.raises(OSError, match="the disk"):
            train_in(folder, monkeypatch, CPU, corpus, overrides)


@pytest.mark.slow
@pytest.mark.parametrize("other", ["the config", "the corpus", "labelwise/train/loop.py", "no resume"])
@pytest.mark.long
def test_checkpoints_of_another_training_are_not_used(other, demo_corpus, tmp_path, monkeypatch):
    overrides = {**SMALL, "training.max_steps": 2}
    stopped(tmp_path, monkeypatch, demo_corpus, overrides)
    if other == "the config":
        overrides["training.dropout"] = 0.2
    if other.endswith(".py"):
        monkeypatch.setattr(checkpoints, "digest_files", lambda folders: {**digest_files(folders), other: "edited"})
    if other == "the corpus":
        manifest = demo_corpus / MANIFEST
        read_bytes = Path.read_bytes
        changed = lambda path: read_bytes(path) + b" " * (path == manifest)  # noqa: E731
        monkeypatch.setattr(Path, "read_bytes", changed)
    made = []
    update = Updates.update
    monkeypatch.setattr(Updates, "update", lambda *given, **options: (made.append(1), update(*given, **options)))
    told = []
    options = {"resume": other != "no resume", "tell": told.append}
    trained = train_in(tmp_path, monkeypatch, CPU, demo_corpus, overrides, **options)
    assert (trained.resumed, len(made)) == (None, 3)
    if other != "no resume":
        assert f"this has changed since the checkpoints were saved: {other}. They are kept until" in told.pop()
    assert told == []
    assert len((tmp_path / "curve.tsv").read_text().splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.tsv", "model"]


@pytest.fixture
def made(demo_corpus, tiny_bert, tmp_path):
    """Make (pipeline, optimizer) by what embeds: "tok2vec" or "transformer"; nothing is random but the seed."""

    def make(kind: str, seed: int):
        overrides = {key: value for key, value in SMALL.items() if "tok2vec" in key}
        if kind == "transformer":
            overrides = {key: value for key, value in overrides_for("fp16", tiny_bert).items() if "trans" in key}
        overrides["training.seed"] = seed
        nlp = init_nlp(read_config(Recipe(GPU if kind == "transformer" else CPU, demo_corpus, overrides=overrides)))
        corpus = registry.resolve(nlp.config.interpolate()["corpora"])["train"]
        return nlp, Adam(0.001, use_averages=True), list(corpus(nlp))

    return make


def output(folder: Path) -> Path:
    """What a checkpoint copies of a training's folder."""
    (folder / "model-best").mkdir(parents=True)
    (folder / "model-best" / "meta.json").write_text("{}")
    (folder / "curve.tsv").write_text("step\n0\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
def test_a_checkpoint_has_all_that_the_next_step_depends_on(kind, made, tmp_path):
    nlp, optimizer, examples = made(kind, seed=1)
    for number in range(3):
        nlp.update(examples[number : number + 2], sgd=optimizer, drop=0.1)
    for scaler in find_scalers(nlp):
        scaler._growth_tracker.fill_(7)
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    saved.save(State(step=3, epoch=1, batches=2, scores=[0.5]), nlp, optimizer, output(tmp_path / "out"))
    other, fresh, _ = made(kind, seed=2)
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
    for one, two in zip(find_scalers(nlp), find_scalers(other), strict=True):
        assert (one._scale.item(), one._growth_tracker.item(), one.skipped) == (
            two._scale.item(),
            two._growth_tracker.item(),
            two.skipped,
        )
    nlp.update(examples[:2], sgd=optimizer)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_last_two_checkpoints_are_kept(steps, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    folder = output(tmp_path / "out")
    for step in range(8, 8 + steps):
        saved.save(State(step=step), None, None, folder)
    expected = [f"step-{step:08d}" for step in range(8, 8 + steps)][-2:]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == expected
    assert saved.last()[1].step == 7 + steps
    assert Checkpoints(tmp_path / "checkpoints", {"a": "2"}).last() is None
    saved.delete()
    assert saved.all() == []


def test_another_trainings_checkpoints_are_kept_until_the_first_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    folder = output(tmp_path / "out")
    earlier = Checkpoints(tmp_path / "checkpoints", {"a": "1", "b": "1", "gone": "1"})
    earlier.save(State(step=200), None, None, folder)
    earlier.save(State(step=400), None, None, folder)
    later = Checkpoints(tmp_path / "checkpoints", {"a": "1", "b": "2", "new": "1"})
    assert later.last() is None
    assert later.what_differs() == ["b", "new", "gone"]
    assert earlier.last()[1].step == 400
    later.save(State(step=0), None, None, folder)
    assert [path.name for path in later.all()] == ["step-00000000"]
    assert later.last()[1].step == 0
    assert earlier.last() is None


def test_a_training_that_was_killed_while_it_removed_anothers_checkpoints_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    folder = output(tmp_path / "out")
    earlier, later = (Checkpoints(tmp_path / "checkpoints", {"a": value}) for value in "12")
    for step in (300, 400):
        earlier.save(State(step=step), None, None, folder)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "remove", lambda path: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            later.save(State(step=50), None, None, folder)
    assert later.last()[1].step == 50
    for step in (100, 150):
        later.save(State(step=step), None, None, folder)
    assert [path.name for path in later.all()] == ["step-00000100", "step-00000150"]


def test_a_training_that_begins_anew_forgets_where_it_was_before(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    folder = output(tmp_path / "out")
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    for step in (300, 400, 50):
        saved.save(State(step=step), None, None, folder)
    assert saved.last()[1].step == 50


@pytest.mark.parametrize("content", ["{}", '{"fingerprint": "f", "step": 3}', "no JSON"])
def test_checkpoints_of_another_version_are_named_as_that(content, tmp_path):
    (tmp_path / "checkpoints" / "step-00000003").mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-00000003" / "state.json").write_text(content)
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    assert saved.last() is None
    assert saved.what_differs() == ["the format of checkpoints"]


def test_only_checkpoints_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    mine = {tmp_path / "checkpoints" / name for name in ("notes.txt", "step-00000009", "step-1")}
    for path in mine:
        path.mkdir(parents=True)
    (tmp_path / "checkpoints" / ".step-00000007.labelwise.tmp").mkdir()
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    folder = output(tmp_path / "out")
    for step in range(4):
        saved.save(State(step=step), None, None, folder)
    saved.delete()
    assert set((tmp_path / "checkpoints").iterdir()) == mine


@pytest.mark.parametrize("how", [KeyboardInterrupt, "SIGKILL"])
def test_a_checkpoint_that_was_being_written_is_not_taken(how, tmp_path, monkeypatch):
    """The one before is; and what a killed process leaves doesn't hinder the same one being written again."""
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
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
            assert (tmp_path / "checkpoints" / ".step-00000004.labelwise.tmp").is_dir()
        else:
            with pytest.raises(how):
                saved.save(State(step=4), None, None, folder)
    assert saved.last()[1].step == 2
    saved.save(State(step=4), None, None, folder)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000002", "step-00000004"]


def test_a_checkpoint_keeps_its_curve_and_pipeline_when_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "take_arrays", lambda nlp, optimizer: {})
    monkeypatch.setattr(checkpoints, "find_slots", lambda nlp: [])
    folder = output(tmp_path / "out")
    saved = Checkpoints(tmp_path / "checkpoints", {"a": "1"})
    saved.save(State(step=0), None, None, folder)
    with (folder / "curve.tsv").open("a") as curve:
        curve.write("1\n")
    checkpoints.remove(folder / "model-best")
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
    epoch, process = Streamed.epoch, os.getpid()

    def merge_meanwhile(self, rng):
        if rng is not None and list(saved("step-*")) and os.getpid() == process:
            settings = Settings(
                tokenizer=read_rules(ROOT / "project.yml"), docs_per_partition=8 if what == "other" else 100
            )
            merge_data([demo_corpus.parent / "tasks/datasets.yml"], corpus, settings)
        return epoch(self, rng)

    def train_again(told: list[str]):
        steps = {**SMALL, "training.max_steps": 60}
        options = {"workers": workers, "resume": True, "tell": told.append}
        return train_in(tmp_path / "out", monkeypatch, CPU, corpus, steps, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Streamed, "epoch", merge_meanwhile)
        with pytest.raises(InputError, match=r"corpus: the corpus was merged anew meanwhile; start again"):
            train_again([])
    assert list(saved("step-*"))
    assert not (tmp_path / "out/model").exists()
    told: list[str] = []
    assert train_again(told)
    assert told == [
        "Starting over, because this has changed since the checkpoints were saved: the corpus. They are kept until "
        "this training saves its first one"
    ]

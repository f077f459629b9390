import errno
import gc
import os
import shutil
import signal
import threading
from itertools import islice
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from spacy.language import Language
from spacy.util import load_config
from thinc.api import Model
from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler

from labelwise.base.errors import InputError
from labelwise.corpus.tokenizer import read_rules
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.train import loop
from labelwise.train import train_pipeline as run
from labelwise.train.checkpoint import CheckpointSaver, read_state, restore, take_arrays
from labelwise.train.config import fit_config, make_pipeline
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from scripts.train import train_cli
from tests.conftest import ROOT, call
from tests.train.training import CPU, GPU, NER, SMALL, STEPS, files, train_in, with_bert

OVER = "Starting over, because the config, the corpus, the device, code or packages have changed"


def wait_for_checkpoint() -> None:
    savers = [value for value in gc.get_objects() if type(value) is CheckpointSaver]
    assert savers
    for saver in savers:
        saver.wait()


def kill_in(folder: Path, corpus: Path, overrides: dict, config: Path, at: int) -> None:
    """Train in another process, and kill it before its update number `at`."""
    if child := os.fork():
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        assert not (folder / "model").exists()
        return
    updates, update = iter(range(at - 1)), Language.update

    def killed(*args, **options):
        if next(updates, None) is None:
            wait_for_checkpoint()
            os.kill(os.getpid(), signal.SIGKILL)
        return update(*args, **options)

    try:
        Language.update = killed
        train_in(folder, corpus, overrides, config, resume=True)
    finally:
        os._exit(1)


@pytest.mark.guarantee("resume")
@pytest.mark.parametrize("config", [CPU, pytest.param(NER, marks=pytest.mark.long)])
def test_killed_twice_training_ends_with_the_same_bytes(config, demo_corpus, tmp_path):
    """Update 4 is of step 3; the second process begins with step 3, and its update 3 is of step 5."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train_in(whole, demo_corpus, config=config)
    assert sorted(path.name for path in whole.iterdir()) == ["curve.tsv", "model"]
    for at, step in ((4, 2), (3, 4)):
        kill_in(killed, demo_corpus, STEPS, config, at)
        assert f'"step":{step},' in (killed / "model.checkpoint/state.json").read_text()
        assert (killed / "model.checkpoint/model-best/meta.json").stat().st_nlink > 1, "its files aren't copied"
    assert train_in(killed, demo_corpus, config=config, resume=True).resumed == 4
    assert files(killed) == files(whole)


def test_killed_training_of_a_small_transformer_ends_with_the_same_bytes(demo_corpus, tiny_bert, tmp_path):
    overrides = {"training.max_steps": 6, "training.eval_frequency": 2}
    overrides["components.ner.model.tok2vec.name"] = str(tiny_bert)
    train_in(tmp_path / "whole", demo_corpus, overrides, SMALL)
    kill_in(tmp_path / "killed", demo_corpus, overrides, SMALL, at=4)
    assert train_in(tmp_path / "killed", demo_corpus, overrides, SMALL, resume=True).resumed == 2
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.long
def test_killed_training_of_a_transformer_ends_with_the_same_bytes(demo_corpus, tiny_bert, tmp_path):
    """Four parts a batch: update 14 is the second part of step 3, which loses a gradient."""
    overrides = with_bert(tiny_bert, accumulate_gradient=3)
    train_in(tmp_path / "whole", demo_corpus, overrides, GPU)
    kill_in(tmp_path / "killed", demo_corpus, overrides, GPU, at=14)
    assert train_in(tmp_path / "killed", demo_corpus, overrides, GPU, resume=True).resumed == 2
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.parametrize("config", ["tok2vec", pytest.param("transformer", marks=pytest.mark.long)])
def test_a_checkpoint_is_of_its_step_though_training_goes_on_while_it_is_saved(request, config, demo_corpus, tmp_path):
    """Step 2's is written once step 3 has changed the parameters; the process is killed in step 4."""
    transformer = config == "transformer"
    overrides = with_bert(request.getfixturevalue("tiny_bert"), max_steps=6) if transformer else STEPS
    train_in(tmp_path / "whole", demo_corpus, overrides, GPU if transformer else CPU)
    if not (child := os.fork()):
        updated, update, savez = threading.Event(), loop.sum_gradients, np.savez

        def count(training_parameters, ranks):
            update(training_parameters, ranks)
            steps.append(1)
            if len(steps) == 5:  # of step 4: step 3 is over
                updated.set()
                wait_for_checkpoint()
                os.kill(os.getpid(), signal.SIGKILL)

        def wait(*args, **arrays):
            assert updated.wait(60)
            savez(*args, **arrays)

        try:
            steps: list[int] = []
            loop.sum_gradients, np.savez = count, wait
            train_in(tmp_path / "killed", demo_corpus, overrides, GPU if transformer else CPU)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    resumed = train_in(tmp_path / "killed", demo_corpus, overrides, GPU if transformer else CPU, resume=True)
    assert resumed.resumed == 2
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_the_best_pipeline_is_serialized_once_and_written_while_training_goes_on(demo_corpus, tmp_path, monkeypatch):
    write, to_bytes, serialized, seen = CheckpointSaver._write, Model.to_bytes, [], []

    def late(self, state, arrays, files):
        missing = [path for path in files if not path.exists()]
        write(self, state, arrays, files)
        here = threading.current_thread() is threading.main_thread()
        seen.append((here, missing == [*files], [path.parts[-2:] for path in files]))
        assert all(path.read_bytes() == content for path, content in files.items())

    monkeypatch.setattr(CheckpointSaver, "_write", late)
    monkeypatch.setattr(Model, "to_bytes", lambda self: (serialized.append(1), to_bytes(self))[1])
    train_in(tmp_path, demo_corpus)
    better = [step for step in seen if step[2]]
    assert better
    assert all(one == (False, True, [("tok2vec", "model"), ("ner", "model")]) for one in better)
    assert len(serialized) == 2 * len(better)


def test_all_that_is_saved_is_restored(demo_corpus, tiny_bert, tmp_path, monkeypatch):
    """thinc's gradient scaler works on the CPU as well, except for a check."""
    monkeypatch.setattr(PyTorchGradScaler, "_scale_tensor", lambda self, tensor, *args: tensor.mul_(self._scale))
    scaled = {"components.ner.model.tok2vec.grad_scaler_config": {"enabled": True, "init_scale": 64.0}}
    config = TrainingConfig(GPU, demo_corpus, overrides=with_bert(tiny_bert) | scaled)
    one, other = (Training(config, make_pipeline(fit_config(config)), checkpoint=tmp_path / "saved") for _ in range(2))
    list(islice(loop.train_while_improving(one), 3))
    one.folder, one.curve = tmp_path / "best", tmp_path / "curve.tsv"
    one.folder.mkdir()
    one.curve.touch()
    saver = CheckpointSaver(one)
    saver.save()
    saver.wait()
    other.state = read_state(other.checkpoint, "")
    restore(other)
    arrays, restored = map(take_arrays, (one, other))
    assert {"mom1-0", "mom2-0", "scale-0"} <= arrays.keys() == restored.keys()
    assert all(np.array_equal(array, restored[name]) for name, array in arrays.items())
    assert (arrays["growth-0"], other.optimizer.learn_rate) == (3, one.optimizer.learn_rate)
    updates = [[one.optimizer.nr_update[parameter.key] for parameter in one.parameters] for one in (one, other)]
    assert updates[0] == updates[1]


def test_a_checkpoint_that_cannot_be_saved_ends_training(demo_corpus, tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr("labelwise.train.checkpoint.np.savez", full)
    with pytest.raises(InputError, match="No space left on device; free some space"):
        train_in(tmp_path, demo_corpus)
    assert full.call_count == 1
    assert list(tmp_path.iterdir()) == []


def stopped(folder: Path, monkeypatch, corpus: Path, overrides: dict = STEPS) -> None:
    """Train almost to the end: a checkpoint is left."""

    def broken(*args):
        raise OSError("the disk")

    with monkeypatch.context() as patched:
        patched.setattr(run, "write_seen", broken)
        with pytest.raises(OSError, match="the disk"):
            train_in(folder, corpus, overrides)


@pytest.mark.parametrize("last", [4, 5])
def test_training_that_failed_after_its_last_step_only_finishes(demo_corpus, tmp_path, monkeypatch, last):
    overrides = {**STEPS, "training.max_steps": last}
    train_in(tmp_path / "whole", demo_corpus, overrides)
    stopped(tmp_path / "failed", monkeypatch, demo_corpus, overrides)
    with monkeypatch.context() as patched:
        patched.setattr(Language, "update", lambda *args, **options: pytest.fail("a step was taken"))
        assert train_in(tmp_path / "failed", demo_corpus, overrides, resume=True).resumed == last
    assert files(tmp_path / "failed") == files(tmp_path / "whole")


@pytest.fixture(scope="module")
def killed(demo_corpus, tmp_path_factory) -> Path:
    """A project with the checkpoint of a killed training."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "configs").mkdir()
    load_config(CPU, overrides=STEPS, interpolate=False).to_disk(config := folder / "configs/own.cfg")
    kill_in(folder, demo_corpus, {}, config, at=5)
    (folder / "training/own").mkdir(parents=True)
    (folder / "model.checkpoint").rename(folder / "training/own/model-best.checkpoint")
    return folder


@pytest.mark.parametrize("other", ["config", "code", "nothing"])
def test_the_checkpoint_of_another_training_is_not_used(other, killed, demo_corpus, tmp_path, monkeypatch):
    root = shutil.copytree(killed, tmp_path / "project")
    config = root / "configs/own.cfg"
    if other == "config":
        config.write_text(config.read_text().replace("\nfew_dropout = 0.4", "\nfew_dropout = 0.2"))
    if other == "code":
        for name in ("labelwise", "spacy_per_label"):
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        with (tmp_path / "spacy_per_label/loss.py").open("a") as file:
            file.write("# edited\n")
        monkeypatch.setattr("labelwise.base.files.PACKAGE", tmp_path / "labelwise")
    monkeypatch.chdir(root)
    printed = call(train_cli, "own", "--corpus", demo_corpus, "--resume")
    assert ("Resuming from step" in printed) == (other == "nothing")
    assert (OVER in " ".join(printed.split())) == (other != "nothing")
    assert len((root / "plots/own.tsv").read_text().splitlines()) == 7


@pytest.mark.parametrize("content", ["{}", '{"fingerprint": "f", "step": 3}', "no JSON", '{"digest":"b","step":3}'])
def test_checkpoints_of_another_version_or_training_are_not_used(content, tmp_path):
    (tmp_path / "state.json").write_text(content)
    assert read_state(tmp_path, "a") is None


@pytest.mark.guarantee("one-corpus")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_ends_when_its_corpus_is_merged_anew_and_is_not_resumed(demo_corpus, tmp_path, monkeypatch, workers):
    """Its next epoch would have other texts, or missing files."""
    corpus = shutil.copytree(demo_corpus, tmp_path / "corpus")
    saved, texts, process = tmp_path / "out/model.checkpoint", PartitionedCorpus.texts, os.getpid()

    def merge_meanwhile(self):
        if self.shuffle and saved.is_dir() and os.getpid() == process:
            settings = Settings(tokenizer=read_rules(ROOT / "project.yml"), dev_ratio=0.2, docs_per_partition=100)
            merge_data([demo_corpus.parent / "tasks/datasets.yml"], corpus, settings)
        return texts(self)

    def train_again(messages: list[str]):
        overrides = {**STEPS, "training.max_steps": 12, "training.eval_frequency": 4}
        return train_in(tmp_path / "out", corpus, overrides, workers=workers, resume=True, log=messages.append)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionedCorpus, "texts", merge_meanwhile)
        with pytest.raises(InputError, match=r"corpus/.*\.spacy: .*; start again"):
            train_again([])
    assert saved.is_dir()
    assert not (tmp_path / "out/model").exists()
    messages: list[str] = []
    assert train_again(messages)
    assert [message.startswith(OVER) for message in messages if "changed for this training" not in message] == [True]

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import spacy
from spacy.util import load_config

from labelwise.base.errors import InputError
from labelwise.train import loop
from labelwise.train.loop import score_dev
from labelwise.train.parameters import find_parameters
from labelwise.train.ranks import LocalRanks, SingleProcess, check_ranks, start_ranks, sum_gradients
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT
from tests.train.training import CPU, GPU, STEPS, curve, files, losses, train_in, with_bert

# Evaluated, and so logged and saved, after every step; without dropout, so ranks compute what one process does.
EXACT = STEPS | {"training.eval_frequency": 1, "training.dropout": 0.0}


@pytest.mark.guarantee("ranks")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranks_give_each_other_values_and_sums_to_the_bit(count):
    sizes = [(101, 7), (), (1,), (0,)]

    def work(ranks):
        rng = np.random.default_rng(ranks.rank)
        gathered = []
        for _ in range(3):
            arrays = [rng.normal(size=size).astype("float32") for size in sizes]
            sums = [array.copy() for array in arrays]
            ranks.all_reduce(sums)
            gathered.append((ranks.rank, arrays, sums))
        return ranks.all_gather_object(gathered)

    with start_ranks(count, 709, work) as ranks:
        all_told = work(ranks)
    assert [[rank for rank, _, _ in gathered] for gathered in all_told] == [[rank] * 3 for rank in range(count)]
    for turn in range(3):
        for number in range(len(sizes)):
            expected = sum(gathered[turn][1][number].astype("float64") for gathered in all_told)
            sums = [gathered[turn][2][number] for gathered in all_told]
            assert all(np.array_equal(total, sums[0]) for total in sums)
            assert sums[0] == pytest.approx(expected, rel=1e-5, abs=1e-6)
            assert sums[0].shape == sizes[number]


def wait_for_ever(ranks) -> None:
    while True:
        ranks.all_gather_object(None)


def children() -> set[int]:
    resource_tracker.ensure_running()
    return {process.pid for process in psutil.Process().children(recursive=True)}


def die(ranks) -> None:
    ranks.all_gather_object(None)
    if ranks.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_ever(ranks)


def die_in_a_sum(ranks) -> None:
    for turn in range(10**9):
        if (ranks.rank, turn) == (2, 1):
            ranks.all_gather_object = lambda value: os.kill(os.getpid(), signal.SIGKILL)
        ranks.all_reduce([np.ones(1, "f")])


def fail(ranks) -> None:
    if ranks.rank == 1:
        raise InputError("too long")
    wait_for_ever(ranks)


KILLED = r"a process of the training was killed.*workers in project"


@pytest.mark.guarantee("ranks")
@pytest.mark.parametrize(
    ("count", "follow", "message"), [(3, die, KILLED), (3, die_in_a_sum, KILLED), (2, fail, "too long")]
)
def test_a_rank_that_ends_ends_all_and_why_is_said(count, follow, message):
    before = children()
    with pytest.raises(InputError, match=message), start_ranks(count, 1, follow) as ranks:
        follow(ranks)
    assert children() == before
    with pytest.raises(FileNotFoundError):
        SharedMemory(ranks.shared.name)


def test_ranks_end_when_the_first_fails():
    before = children()
    with pytest.raises(KeyError), start_ranks(3, 1, wait_for_ever) as ranks:
        {}[len(ranks.all_gather_object(None))]
    assert children() == before


def test_a_gradient_that_one_rank_has_is_given_to_all():
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label").add_label("A")
    nlp.initialize()
    size = sum(slot.get().size for slot in find_parameters(nlp))

    def work(ranks):
        slots = find_parameters(nlp)
        if ranks.rank == 1:
            slots[0].gradient()[...] = 3
        sum_gradients(slots, ranks)
        gradients = [(slot.has_gradient(), float(slot.gradient().sum()) / slot.get().size) for slot in slots]
        return ranks.all_gather_object(gradients)

    with start_ranks(2, size, work) as ranks:
        one, other = work(ranks)
    assert one == other == [(True, 3.0), *[(False, 0.0)] * (len(one) - 1)]


@pytest.fixture(scope="module")
def alone(demo_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    train_in(folder, demo_corpus, EXACT)
    return folder


@pytest.fixture
def compared(monkeypatch) -> list[bool]:
    equal: list[bool] = []
    is_over = loop.is_over

    def compare(training):
        parameters = training.ranks.all_gather_object([parameter.get() for parameter in training.parameters])
        equal.append(
            all(np.array_equal(*pair) for values in parameters for pair in zip(values, parameters[0], strict=True))
        )
        return is_over(training)

    monkeypatch.setattr(loop, "is_over", compare)
    return equal


@pytest.mark.guarantee("ranks")
@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_ranks_stay_equal_and_train_what_one_process_does(workers, alone, demo_corpus, tmp_path, compared):
    train_in(tmp_path, demo_corpus, EXACT, workers=workers)
    assert compared == [True] * 8
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)
    one, two = (float(curve(folder, "ents_f")[-1][0]) for folder in (alone, tmp_path))
    assert one == pytest.approx(two, abs=0.05)


def test_spawned_processes_train_what_forked_ones_do(demo_corpus, tmp_path, monkeypatch):
    overrides = EXACT | {"training.dropout": 0.1, "training.max_steps": 2}
    for method in ("fork", "spawn"):
        monkeypatch.setenv("LABELWISE_START_METHOD", method)
        train_in(tmp_path / method, demo_corpus, overrides, workers=2)
    assert files(tmp_path / "fork") == files(tmp_path / "spawn")
    assert losses(tmp_path / "fork")[-1] > 0
    monkeypatch.setenv("LABELWISE_START_METHOD", "borrow")
    with pytest.raises(InputError, match="LABELWISE_START_METHOD=borrow: give fork or spawn"):
        train_in(tmp_path / "else", demo_corpus, overrides, workers=2)


@pytest.mark.parametrize("wrong", ["", "parameters", "sums"])
def test_ranks_that_differ_or_do_not_sum_are_refused_before_the_first_step(wrong, demo_corpus, tmp_path, monkeypatch):
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label").add_label("A")
    nlp.initialize()
    parameters = find_parameters(nlp)

    def work(ranks):
        if ranks.rank and wrong == "parameters":
            parameters[-1].array[...] += 1
        check_ranks(parameters, ranks)
        ranks.all_gather_object(None)

    if wrong == "sums":
        monkeypatch.setattr(LocalRanks, "all_reduce", lambda self, arrays: None)
    expected = pytest.raises(InputError, match="have different parameters, or don't see each other's sums")
    with expected if wrong else nullcontext(), start_ranks(2, 10**6, work) as ranks:
        work(ranks)
    if wrong == "sums":
        with expected:
            train_in(tmp_path, demo_corpus, EXACT, workers=2)
        assert list(tmp_path.iterdir()) == []


def test_a_container_without_room_for_gradients_is_told_the_remedy(monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=2**20))
    message = "no room for the gradients of 2 processes, 8 MB. Remedy: give the container more"
    with pytest.raises(InputError, match=message), start_ranks(2, 2**20, wait_for_ever):
        pass


def test_a_rank_without_texts_takes_part(demo_corpus, tmp_path):
    overrides = {**EXACT, "training.batcher.size": 1, "training.max_steps": 3}
    for workers in (1, 2):
        train_in(tmp_path / str(workers), demo_corpus, overrides, workers=workers)
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), rel=1e-3)


def test_shares_of_dev_are_counted_as_the_whole(alone, demo_corpus):
    nlp = spacy.load(alone / "model")
    nlp.remove_pipe("ner")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": [{"IS_TITLE": True}]}])

    def scores(ranks):
        training = Training(TrainingConfig(CPU, demo_corpus), nlp)
        training.ranks = ranks
        return score_dev(training)

    with start_ranks(3, 1, scores) as ranks:
        shared = scores(ranks)
    assert shared == scores(SingleProcess())
    assert shared[1]["ents_r"] > 0


@pytest.mark.guarantee("resume")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_training_goes_on_with_either_number_of_processes(workers, alone, demo_corpus, tmp_path, monkeypatch):
    """A rank is killed in step 3."""
    overrides = {**EXACT, "training.dropout": 0.1} if workers == 2 else EXACT
    first, update = os.getpid(), loop.update_within_memory

    def killed(training, *args):
        if training.state.step == 2 and os.getpid() != first:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(training, *args)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "update_within_memory", killed)
        with pytest.raises(InputError, match="a process of the training was killed"):
            train_in(tmp_path / "killed", demo_corpus, overrides, workers=2)
    assert train_in(tmp_path / "killed", demo_corpus, overrides, workers=workers, resume=True).resumed == 2
    if workers == 1:
        assert losses(tmp_path / "killed") == pytest.approx(losses(alone), rel=1e-3)
    else:
        train_in(tmp_path / "whole", demo_corpus, overrides, workers=2)
        assert files(tmp_path / "killed") == files(tmp_path / "whole")


# With PyTorch's own communication: the command, with one argument more.
LAUNCHED = """
import os, signal, sys
from functools import partial
import numpy as np
from labelwise.base.console import run
from scripts import train
from spacy.language import Language
from labelwise.train import ahead, loop, reader
from labelwise.train.parameters import find_scalers
from labelwise.train.updates import accumulate
from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler
is_over, kind = loop.is_over, sys.argv.pop(1)
def compare(training):
    told = training.ranks.all_gather_object([parameter.get() for parameter in training.parameters])
    assert all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)), "ranks differ"
    if kind == "killed" and training.ranks.rank and training.state.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return is_over(training)
loop.is_over = compare

whole, deal_out, update, sum_gradients = [], reader.deal_out, loop.update_within_memory, loop.sum_gradients
def deal(texts, count):
    whole[:] = texts
    return deal_out(texts, count)
def remember(training, *given):
    globals()["training"] = training
    return update(training, *given)
def sum_and_check(parameters, ranks):
    sum_gradients(parameters, ranks)
    summed = [one.gradient().copy() for one in parameters]
    for one in parameters:
        one.gradient()[...] = 0
    assert not accumulate(training, 0, whole, 0.0, {}, False)
    largest = max(np.abs(one.gradient()).max() for one in parameters)
    for one, value in zip(parameters, summed, strict=True):
        assert np.abs(one.gradient() - value).max() < 1e-5 * largest, one.key
        one.gradient()[...] = value
    with open(f"checked-{ranks.rank}", "a") as file:
        file.write("x")
def overflow(parameters, ranks):
    step, [scaler] = training.state.step + 1, find_scalers(training.nlp)
    expected = 1024 if step <= 3 else 512
    assert scaler._scale.item() == expected, (step, scaler._scale)
    if step == 3:
        before[:] = [one.get() for one in parameters]
        if ranks.rank:
            next(one for one in parameters if one.tensor is not None).tensor.grad.view(-1)[0] = np.inf
    if step == 4:
        for one, value in zip(parameters, before, strict=True):
            assert one.tensor is None or np.array_equal(one.get(), value)
        assert any(not np.array_equal(one.get(), value) for one, value in zip(parameters, before, strict=True))
    sum_gradients(parameters, ranks)
if kind == "ahead":
    ahead.MIN_GPU_ID, Language.update = -1, None
before = []
if kind in ("gradients", "overflow"):
    reader.deal_out, loop.update_within_memory = deal, remember
    loop.sum_gradients = sum_and_check if kind == "gradients" else overflow
    enabled = {"components.ner.model.tok2vec.grad_scaler_config.enabled": kind == "overflow"}
    train.TrainingConfig = partial(train.TrainingConfig, overrides=enabled)  # the CPU would do without a scaler
    PyTorchGradScaler._scale_tensor = lambda self, tensor, *given: tensor.mul_(self._scale)
run(train.train_cli)
"""


def launch(folder: Path, corpus: Path, kind: str, overrides: dict):
    """Train by torchrun in two processes."""
    folder.mkdir(exist_ok=True)
    (folder / "child.py").write_text(LAUNCHED)
    (folder / "configs").mkdir(exist_ok=True)
    load_config(GPU, overrides).to_disk(folder / "configs/tiny.cfg")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = ["child.py", kind, "tiny", "--corpus", corpus, "--gpu-id", -1, "--resume"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.guarantee("ranks")
@pytest.mark.long
def test_torchrun_trains_what_one_process_does(demo_corpus, tiny_bert, tmp_path):
    """By gloo on the CPU, also after a kill, and with processes that prepare batches."""
    same = {"optimizer.learn_rate.total_steps": 8}  # which follows max_steps where that's an override
    overrides = with_bert(tiny_bert, dropout=0.0, max_steps=8, **same)  # the frequency is a quarter
    assert launch(tmp_path / "killed", demo_corpus, "killed", overrides).returncode
    for folder in ("whole", "killed"):
        done = launch(tmp_path / folder, demo_corpus, "whole", overrides)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "Resuming from step 4" in done.stdout
    done = launch(tmp_path / "ahead", demo_corpus, "ahead", overrides)
    assert done.returncode == 0, done.stderr[-3000:]
    for file in ("plots/tiny.tsv", "training/tiny/model-best/ner/model"):
        assert len({(tmp_path / name / file).read_bytes() for name in ("whole", "killed", "ahead")}) == 1
    (tmp_path / "whole/plots/tiny.tsv").rename(tmp_path / "whole/curve.tsv")
    train_in(tmp_path / "one", demo_corpus, overrides, GPU)
    assert losses(tmp_path / "whole") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)


@pytest.mark.long
def test_ranks_of_torchrun_sum_the_gradients_that_one_process_computes(demo_corpus, tiny_bert, tmp_path):
    """In each of 50 steps from the same parameters, within 1e-5 of the largest gradient."""
    overrides = with_bert(tiny_bert, dropout=0.0, max_steps=49, eval_frequency=49)
    done = launch(tmp_path, demo_corpus, "gradients", overrides)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [(tmp_path / f"checked-{rank}").read_text() for rank in range(2)] == ["x" * 50] * 2


@pytest.mark.long
def test_an_overflow_in_one_rank_of_torchrun_skips_the_transformers_update_in_all(demo_corpus, tiny_bert, tmp_path):
    """thinc's scaler works on the CPU as well, except for a check."""
    done = launch(tmp_path, demo_corpus, "overflow", with_bert(tiny_bert, dropout=0.0, max_steps=5))
    assert done.returncode == 0, done.stderr[-3000:]

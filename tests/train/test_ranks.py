"""Several processes train what one would: in shared memory, and with PyTorch's own communication."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import spacy
from spacy.util import load_config

from labelwise.base.errors import InputError
from labelwise.train.checkpoint import State
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone, forked, sum_gradients
from tests.conftest import ROOT
from tests.train.training import GPU, STEPS, curve, files, losses, train_in, with_bert

# Evaluated, and so logged and saved, after every step; no dropout, so that ranks compute what one process does.
EXACT = STEPS | {"training.eval_frequency": 1, "training.dropout": 0.0}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranks_give_each_other_values_and_sums_to_the_bit(count):
    sizes = [(101, 7), (), (1,), (0,)]

    def work(ranks):
        rng = np.random.default_rng(ranks.rank)
        told = []
        for _ in range(3):
            arrays = [rng.normal(size=size).astype("float32") for size in sizes]
            sums = [array.copy() for array in arrays]
            ranks.sum(sums)
            told.append((ranks.rank, arrays, sums))
        return ranks.exchange(told)

    with forked(count, 709, work) as ranks:
        all_told = work(ranks)
    assert [[rank for rank, _, _ in told] for told in all_told] == [[rank] * 3 for rank in range(count)]
    for turn in range(3):
        for number in range(len(sizes)):
            expected = sum(told[turn][1][number].astype("float64") for told in all_told)
            sums = [told[turn][2][number] for told in all_told]
            assert all(np.array_equal(one, sums[0]) for one in sums)
            assert sums[0] == pytest.approx(expected, rel=1e-5, abs=1e-6)
            assert sums[0].shape == sizes[number]


def wait_for_ever(ranks) -> None:
    while True:
        ranks.exchange(None)


def children() -> set[int]:
    """The processes that this one has started; other tests may have left some."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def die(ranks) -> None:
    ranks.exchange(None)
    if ranks.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_ever(ranks)


def fail(ranks) -> None:
    raise InputError("too long") if ranks.rank == 1 else ZeroDivisionError


@pytest.mark.parametrize(
    ("count", "follow", "said"),
    [(3, die, r"a process of the training was killed.*workers in project"), (2, fail, "too long")],
)
def test_a_rank_that_ends_ends_all_and_why_is_said(count, follow, said):
    before = children()
    with pytest.raises(InputError, match=said), forked(count, 1, follow) as ranks:
        wait_for_ever(ranks)
    assert children() == before


def test_ranks_end_when_the_first_fails():
    before = children()
    with pytest.raises(KeyError), forked(3, 1, wait_for_ever) as ranks:
        {}[len(ranks.exchange(None))]
    assert children() == before


class Scaler:
    """A gradient scaler of a transformer, of which one rank's gradients may have overflowed."""

    def __init__(self, found_inf: bool) -> None:
        self._found_inf = self.found_inf = found_inf


@pytest.mark.parametrize("infinite", [(), (0,), (1,)])
def test_a_gradient_or_an_infinity_that_one_rank_has_is_given_to_all(infinite):
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label").add_label("A")
    nlp.initialize()
    size = sum(slot.get().size for slot in find_slots(nlp))

    def work(ranks):
        slots, scaler = find_slots(nlp), Scaler(ranks.rank in infinite)
        if ranks.rank == 1:
            slots[0].gradient()[...] = 3
        sum_gradients(slots, [scaler], ranks)
        found = [(slot.has_gradient(), float(slot.gradient().sum()) / slot.get().size) for slot in slots]
        return ranks.exchange((found, scaler._found_inf))

    with forked(2, size, work) as ranks:
        one, other = work(ranks)
    assert one == other == ([(True, 3.0), *[(False, 0.0)] * (len(one[0]) - 1)], bool(infinite))


@pytest.fixture(scope="module")
def alone(demo_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    train_in(folder, demo_corpus, EXACT)
    return folder


@pytest.fixture
def compared(monkeypatch) -> list[bool]:
    """Whether the parameters of all ranks are equal, after each step of the first one."""
    equal: list[bool] = []
    take_step = Loop.take_step

    def step(self, *given):
        take_step(self, *given)
        told = self.ranks.exchange([slot.get() for slot in self.slots])
        equal.append(all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)))

    monkeypatch.setattr(Loop, "take_step", step)
    return equal


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_ranks_stay_equal_and_train_what_one_process_does(workers, alone, demo_corpus, tmp_path, compared):
    train_in(tmp_path, demo_corpus, EXACT, workers=workers)
    assert compared == [True] * 7
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)
    one, two = (float(curve(folder, "ents_f")[-1][0]) for folder in (alone, tmp_path))
    assert one == pytest.approx(two, abs=0.05)


def test_a_rank_without_texts_takes_part(demo_corpus, tmp_path):
    """Batches of one text, for two ranks."""
    overrides = {**EXACT, "training.batcher.size": 1, "training.max_steps": 3}
    for workers in (1, 2):
        train_in(tmp_path / str(workers), demo_corpus, overrides, workers=workers)
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), rel=1e-3)


def test_shares_of_dev_are_counted_as_the_whole(alone, demo_corpus):
    nlp = spacy.load(alone / "model")
    nlp.remove_pipe("ner")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": [{"IS_TITLE": True}]}])

    def scores(ranks):
        return Loop(nlp, -1, State(""), ranks).score_dev()

    with forked(3, 1, scores) as ranks:
        shared = scores(ranks)
    assert shared == scores(Alone())
    assert shared[1]["ents_r"] > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_training_goes_on_with_either_number_of_processes(workers, alone, demo_corpus, tmp_path, monkeypatch):
    """A rank is killed in step 3; with as many processes as before, the bytes are those of a training in one go."""
    overrides = {**EXACT, "training.dropout": 0.1} if workers == 2 else EXACT
    first, update = os.getpid(), Loop.update

    def killed(self, step, *given):
        if step == 3 and os.getpid() != first:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(self, step, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Loop, "update", killed)
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
import numpy as np
from labelwise.base.console import run
from scripts.train import train_cli
from labelwise.train.loop import Loop
take_step, kind = Loop.take_step, sys.argv.pop(1)
def step(self, *given):
    if kind == "killed" and self.ranks.rank and self.state.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    take_step(self, *given)
    told = self.ranks.exchange([slot.get() for slot in self.slots])
    assert all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)), "ranks differ"
Loop.take_step = step
run(train_cli)
"""


def launch(folder: Path, corpus: Path, kind: str, overrides: dict):
    """Train by torchrun in two processes."""
    folder.mkdir(exist_ok=True)
    (folder / "child.py").write_text(LAUNCHED)
    load_config(GPU, overrides).to_disk(folder / "small.cfg")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    given = [folder / "child.py", kind, folder / "small.cfg", corpus, folder / "model", "--resume"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, *map(str, given), "--curve", str(folder / "curve.tsv")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_torchrun_trains_what_one_process_does(demo_corpus, tiny_bert, tmp_path):
    """gloo, on the CPU; where a rank is killed, the training goes on to the same bytes."""
    overrides = with_bert(tiny_bert, dropout=0.0, max_steps=6)
    assert launch(tmp_path / "killed", demo_corpus, "killed", overrides).returncode
    for folder in ("whole", "killed"):
        done = launch(tmp_path / folder, demo_corpus, "whole", overrides)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "Resuming from step 4" in done.stdout
    for file in ("curve.tsv", "model/ner/model"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes()
    train_in(tmp_path / "one", demo_corpus, overrides, GPU)
    assert losses(tmp_path / "whole") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)

"""Several processes train what one would: in shared memory, and with PyTorch's own communication."""

import json
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

from labelwise.errors import InputError
from labelwise.train import loop
from labelwise.train.checkpoint import State
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone, forked, sum_gradients
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import NO_DROPOUT, ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
STEPS = 6
# Evaluated, and so logged and saved, after every step; no dropout, so that ranks compute what one process does.
EXACT = {
    "training.max_steps": STEPS,
    "training.eval_frequency": 1,
    "training.batcher.size": 300,
    "training.dropout": 0.0,
    "components.tok2vec.model.encode.width": 32,
}
BERT = {
    "training.max_steps": 4,
    "training.eval_frequency": 1,
    "training.batcher.size": 900,
    "training.dropout": 0.0,
    "training.optimizer.learn_rate.warmup_steps": 1,
    "components.per_label.model.tok2vec.transformer_config": NO_DROPOUT,
}


def losses(folder: Path) -> list[float]:
    """The recognizer's loss of each step, from the curve."""
    header, *rows = [line.split("\t") for line in (folder / "curve.tsv").read_text().splitlines()]
    return [float(row[header.index("loss_ner")]) for row in rows]


def train_in(folder: Path, corpus: Path, overrides: dict, config: Path = CPU, **options):
    folder.mkdir(exist_ok=True)
    return train_pipeline(
        Recipe(config, corpus, overrides=overrides, **options), folder / "model", folder / "curve.tsv"
    )


# What ranks tell each other.


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranks_give_each_other_values_and_sums_to_the_bit(count):
    """Many more numbers than ranks, fewer, and none; they can't be shared out evenly."""
    sizes = [(101, 7), (), (1,), (0,)]

    def work(ranks):
        rng = np.random.default_rng(ranks.rank)
        told = []
        for _ in range(3):
            arrays = [rng.normal(size=size).astype("float32") for size in sizes]
            told.append((ranks.rank, arrays, ranks.sum(arrays)))
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


def test_a_rank_that_is_killed_ends_all():
    before = children()

    def die(ranks):
        ranks.exchange(None)
        if ranks.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_ever(ranks)

    message = r"a process of the training was killed.*workers in project"
    with pytest.raises(InputError, match=message), forked(3, 1, die) as ranks:
        wait_for_ever(ranks)
    assert children() == before


@pytest.mark.parametrize(("error", "said"), [(InputError("too long"), "too long"), (ZeroDivisionError(), "Traceback")])
def test_what_fails_in_a_rank_is_said(error, said):
    def fail(ranks):
        raise error

    with pytest.raises(InputError, match=said), forked(2, 1, fail) as ranks:
        wait_for_ever(ranks)


def test_ranks_end_when_the_first_fails():
    before = children()
    with pytest.raises(KeyError), forked(3, 1, wait_for_ever) as ranks:
        {}[len(ranks.exchange(None))]
    assert children() == before


# Gradients.


def test_a_gradient_that_one_rank_has_is_given_to_all():
    nlp = spacy.blank("en")
    nlp.add_pipe("per_label").add_label("A")
    nlp.initialize()

    def work(ranks):
        slots = find_slots(nlp)
        if ranks.rank == 1:
            slots[0].set_gradient(np.full(slots[0].get().shape, 3, "float32"))
        sum_gradients(slots, [], ranks)
        return [(slot.has_gradient(), float(slot.gradient().sum()) / slot.get().size) for slot in slots]

    size = sum(slot.get().size for slot in find_slots(nlp))
    with forked(2, size, lambda ranks: ranks.exchange(work(ranks))) as ranks:
        one, other = ranks.exchange(work(ranks))
    assert one == other == [(True, 3.0), *[(False, 0.0)] * (len(one) - 1)]


class Scaler:
    """A gradient scaler of a transformer, of which one rank's gradients have overflowed."""

    def __init__(self, found_inf: bool) -> None:
        self._found_inf = found_inf

    @property
    def found_inf(self) -> bool:
        return self._found_inf


@pytest.mark.parametrize("infinite", [(), (0,), (1,)])
def test_an_infinity_of_one_rank_skips_the_step_of_all(infinite):
    def work(ranks):
        scalers = [Scaler(ranks.rank in infinite), Scaler(found_inf=False)]
        sum_gradients([], scalers, ranks)
        return ranks.exchange([scaler.found_inf for scaler in scalers])

    with forked(2, 1, work) as ranks:
        assert work(ranks) == [[bool(infinite), False]] * 2


# Training.


@pytest.fixture(scope="module")
def alone(demo_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    train_in(folder, demo_corpus, EXACT)
    return folder


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_ranks_stay_equal_and_train_what_one_process_does(workers, alone, demo_corpus, tmp_path, monkeypatch):
    """The first has its parameters compared after every step; dev is scored in shares."""
    equal = []
    step = Loop.step

    def compared(self, batch):
        step(self, batch)
        told = self.ranks.exchange([slot.get() for slot in self.slots])
        equal.append(all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)))

    monkeypatch.setattr(Loop, "step", compared)
    trained = train_in(tmp_path, demo_corpus, EXACT, workers=workers)
    assert equal == [True] * (STEPS + 1)
    assert trained.words > 0
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)
    score = (tmp_path / "curve.tsv").read_text().splitlines()[-1].split("\t")[5]
    assert float(score) == pytest.approx(float((alone / "curve.tsv").read_text().split()[-5]), abs=0.05)


def test_a_rank_without_texts_takes_part(demo_corpus, tmp_path):
    """Batches of one text, for two ranks."""
    overrides = {**EXACT, "training.batcher.size": 1, "training.max_steps": 3}
    train_in(tmp_path / "one", demo_corpus, overrides)
    train_in(tmp_path / "two", demo_corpus, overrides, workers=2)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)


@pytest.mark.long
def test_what_is_random_differs_between_ranks_and_steps_and_again_is_the_same(demo_corpus, tmp_path, monkeypatch):
    overrides = {**EXACT, "training.dropout": 0.2, "training.eval_frequency": 3}
    seen = []

    def watched(slots, scalers, ranks):
        seen.extend(ranks.exchange(int(np.random.get_state()[1][0])))
        sum_gradients(slots, scalers, ranks)

    monkeypatch.setattr(loop, "sum_gradients", watched)
    curves = []
    for number in range(2):
        train_in(tmp_path / str(number), demo_corpus, overrides, workers=2)
        curves.append((tmp_path / str(number) / "curve.tsv").read_text())
    assert curves[0] == curves[1]
    one, two = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert one == two
    assert len(set(one)) == len(one) == 2 * (STEPS + 1)


def test_shares_of_dev_are_counted_as_the_whole(alone, demo_corpus):
    nlp = spacy.load(alone / "model")
    nlp.remove_pipe("ner")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": [{"IS_TITLE": True}]}, {"label": "DATE", "pattern": "August"}])

    def scores(ranks):
        return Loop(nlp, -1, None, ranks=ranks, state=State()).evaluate().scores()

    with forked(3, 1, scores) as ranks:
        shared = scores(ranks)
    assert shared == scores(Alone())
    assert shared["ents_r"] > 0


@pytest.mark.long
def test_training_resumes_with_another_number_of_processes(alone, demo_corpus, tmp_path, monkeypatch):
    """1, 2 and 1 again: stopped twice, after checkpoints."""
    update = Loop.update

    def stop_at(step):
        def stopped(self, *given):
            if self.state.step + 1 == step:
                raise KeyError(step)
            return update(self, *given)

        return stopped

    for workers, step in ((1, 3), (2, 5)):
        monkeypatch.setattr(Loop, "update", stop_at(step))
        with pytest.raises((KeyError, InputError)):
            train_in(tmp_path, demo_corpus, EXACT, workers=workers, resume=True)
    monkeypatch.setattr(Loop, "update", update)
    trained = train_in(tmp_path, demo_corpus, EXACT, workers=1, resume=True)
    assert trained.resumed == 4
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)


@pytest.mark.long
def test_killed_ranks_resume_to_the_same_bytes(demo_corpus, tmp_path, monkeypatch):
    """With dropout: what a step draws follows from its number and the rank."""
    overrides = {**EXACT, "training.dropout": 0.1, "training.eval_frequency": 2}
    first, update = os.getpid(), Loop.update

    def die(self, *given):
        if self.state.step == 4 and os.getpid() != first:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(self, *given)

    train_in(tmp_path / "one", demo_corpus, overrides, workers=2)
    with monkeypatch.context() as patched:
        patched.setattr(Loop, "update", die)
        with pytest.raises(InputError, match="a process of the training was killed"):
            train_in(tmp_path / "other", demo_corpus, overrides, workers=2)
    trained = train_in(tmp_path / "other", demo_corpus, overrides, workers=2, resume=True)
    assert trained.resumed == 4
    assert (tmp_path / "one" / "curve.tsv").read_bytes() == (tmp_path / "other" / "curve.tsv").read_bytes()
    best = Path("model") / "ner" / "model"
    assert (tmp_path / "one" / best).read_bytes() == (tmp_path / "other" / best).read_bytes()


@pytest.mark.parametrize("workers", [0, -1])
def test_numbers_of_processes_that_cannot_be_are_errors(workers, demo_corpus, tmp_path):
    with pytest.raises(InputError, match=f"--workers {workers}: give at least 1"):
        train_in(tmp_path, demo_corpus, EXACT, workers=workers)


# With PyTorch's own communication.

CHILD = """
import json, os, sys
from pathlib import Path
from labelwise.train.loop import Loop
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
import numpy as np
config, corpus, folder, overrides = json.loads(sys.argv[1])
step = Loop.step
def compared(self, batch):
    step(self, batch)
    told = self.ranks.exchange([slot.get() for slot in self.slots])
    assert all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)), "ranks differ"
if int(os.environ.get("WORLD_SIZE", "1")) > 1:
    Loop.step = compared
recipe = Recipe(Path(config), Path(corpus), overrides=overrides)
train_pipeline(recipe, Path(folder) / "model", Path(folder) / "curve.tsv")
"""


@pytest.mark.long
def test_torchrun_trains_what_one_process_does(demo_corpus, tiny_bert, tmp_path):
    """gloo, on the CPU."""
    overrides = {**BERT, "components.per_label.model.tok2vec.name": str(tiny_bert)}
    (tmp_path / "child.py").write_text(CHILD)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for count in (1, 2):
        folder = tmp_path / str(count)
        folder.mkdir()
        given = json.dumps([str(GPU), str(demo_corpus), str(folder), overrides])
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if count > 1 else []
        command = [sys.executable, *launcher, str(tmp_path / "child.py"), given]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (losses(tmp_path / str(count)) for count in (1, 2))
    assert two == pytest.approx(one, rel=1e-3)


LAUNCHED = """
import os, signal, sys
from labelwise.console import run
from scripts.train import train_cli
from labelwise.train.loop import Loop
update, kind = Loop.update, sys.argv.pop(1)
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
def die(self, *given):
    if first and os.environ["RANK"] == "1" and self.state.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return update(self, *given)
if kind == "killed":
    Loop.update = die
if kind == "other" and os.environ["RANK"] == "1":
    sys.argv += ["--seed", "7"]
run(train_cli)
"""


def launch(folder: Path, corpus: Path, kind: str) -> subprocess.CompletedProcess[str]:
    """Train by torchrun in two processes, which are started again once where one fails."""
    folder.mkdir()
    (folder / "child.py").write_text(LAUNCHED)
    config = folder / "small.cfg"
    settings = load_config(CPU, EXACT | {"training.eval_frequency": 2})
    settings.to_disk(config)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    given = [str(folder / "child.py"), kind, str(config), str(corpus), str(folder / "model"), "--resume"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, *given, "--curve", str(folder / "curve.tsv")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_torchrun_starts_a_killed_rank_again_and_the_bytes_are_the_same(demo_corpus, tmp_path):
    for kind in ("whole", "killed"):
        done = launch(tmp_path / kind, demo_corpus, kind)
        assert done.returncode == 0, done.stderr[-3000:]
    assert "Resuming from step 4" in done.stdout
    for file in ("curve.tsv", "model/ner/model"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes()


@pytest.mark.long
def test_a_rank_with_another_config_is_named_before_the_first_step(demo_corpus, tmp_path):
    done = launch(tmp_path / "other", demo_corpus, "other")
    assert done.returncode
    assert "rank 1, on " in done.stdout + done.stderr
    assert 'Traceback (most recent call last):\n  File "' + str(tmp_path) not in done.stderr
    assert not (tmp_path / "other" / "model").exists()

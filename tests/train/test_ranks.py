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

from labelwise.common.errors import InputError
from labelwise.train import loop
from labelwise.train.batches import Batch, Cost, batch_cost
from labelwise.train.loop import Run
from labelwise.train.monitor import Monitor
from labelwise.train.out_of_memory import Updates
from labelwise.train.parameters import find_slots, sum_gradients
from labelwise.train.ranks import Alone, compare_facts, forked
from labelwise.train.reader import PartitionedCorpus
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
    "training.batcher.size": 1500,
    "training.dropout": 0.0,
    "training.optimizer.learn_rate.warmup_steps": 1,
    "components.transformer.model.transformer_config": NO_DROPOUT,
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


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("costs", [[], [(9, 1)], [(5, 1), (4, 1), (3, 1), (3, 1), (3, 1)], [(2, 9), (1, 30), (4, 8)]])
def test_shares_have_every_text_once_and_cost_about_the_same(count, costs):
    batch = Batch([object() for _ in costs], [Cost(*cost) for cost in costs])
    shares = batch.shares(count)
    assert len(shares) == count
    assert sorted(id(item) for share in shares for item in share) == sorted(map(id, batch))
    assert all(share.costs == [batch.costs[batch.index(item)] for item in share] for share in shares)
    single = max((batch_cost([cost]) for cost in batch.costs), default=0)
    assert max(share.cost for share in shares) - min(share.cost for share in shares) <= max(single, batch.cost // count)


# Gradients.


def test_a_gradient_that_one_rank_has_is_given_to_all():
    nlp = spacy.blank("en")
    nlp.add_pipe("labelwise_per_label").add_label("A")
    nlp.initialize()

    def work(ranks):
        slots = find_slots(nlp)
        if ranks.rank == 1:
            slots[0].set_gradient(np.full(slots[0].get().shape, 3, "float32"))
        sum_gradients(slots, ranks)
        return [(slot.has_gradient(), float(slot.gradient().sum()) / slot.get().size) for slot in slots]

    size = sum(slot.get().size for slot in find_slots(nlp))
    with forked(2, size, lambda ranks: ranks.exchange(work(ranks))) as ranks:
        one, other = ranks.exchange(work(ranks))
    assert one == other == [(True, 3.0), *[(False, 0.0)] * (len(one) - 1)]


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
    total = Run.total_losses

    def compared(self, losses):
        told = self.ranks.exchange([slot.get() for slot in self.slots])
        equal.append(all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)))
        return total(self, losses)

    monkeypatch.setattr(Run, "total_losses", compared)
    trained = train_in(tmp_path, demo_corpus, EXACT, workers=workers)
    assert equal == [True] * (STEPS + 1)
    assert trained.words > 0
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)
    score = (tmp_path / "curve.tsv").read_text().splitlines()[-1].split("\t")[5]
    assert float(score) == pytest.approx(float((alone / "curve.tsv").read_text().split()[-4]), abs=0.05)


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

    def watched(slots, ranks):
        seen.extend(ranks.exchange(int(np.random.get_state()[1][0])))
        sum_gradients(slots, ranks)

    monkeypatch.setattr(loop, "sum_gradients", watched)
    curves = []
    for number in range(2):
        train_in(tmp_path / str(number), demo_corpus, overrides, workers=2)
        curves.append((tmp_path / str(number) / "curve.tsv").read_text())
    assert curves[0] == curves[1]
    one, two = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert one == two
    assert len(set(one)) == len(one) == 2 * (STEPS + 1)


def test_shares_of_dev_are_counted_as_the_whole(demo_corpus):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": [{"IS_TITLE": True}]}, {"label": "DATE", "pattern": "August"}])

    def scores(ranks):
        return Run(None, monitor=Monitor(), ranks=ranks).evaluate(nlp, PartitionedCorpus(demo_corpus / "dev")).scores()

    with forked(3, 1, scores) as ranks:
        shared = scores(ranks)
    assert shared == scores(Alone())
    assert shared["ents_r"] > 0


@pytest.mark.slow
@pytest.mark.long
def test_training_resumes_with_another_number_of_processes(alone, demo_corpus, tmp_path, monkeypatch):
    """1, 2 and 1 again: stopped twice, after checkpoints."""
    update = Updates.update

    def stop_at(step):
        def stopped(self, *given, **options):
            if self.state.step + 1 == step:
                raise KeyError(step)
            update(self, *given, **options)

        return stopped

    for workers, step in ((1, 3), (2, 5)):
        monkeypatch.setattr(Updates, "update", stop_at(step))
        with pytest.raises((KeyError, InputError)):
            train_in(tmp_path, demo_corpus, EXACT, workers=workers, resume=True)
    monkeypatch.setattr(Updates, "update", update)
    trained = train_in(tmp_path, demo_corpus, EXACT, workers=1, resume=True)
    assert trained.resumed == 4
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=1e-3)


@pytest.mark.slow
@pytest.mark.long
def test_killed_ranks_resume_to_the_same_bytes(demo_corpus, tmp_path, monkeypatch):
    """With dropout: what a step draws follows from its number and the rank."""
    overrides = {**EXACT, "training.dropout": 0.1, "training.eval_frequency": 2}
    first, update = os.getpid(), Updates.update

    def die(self, *given, **options):
        if self.state.step == 4 and os.getpid() != first:
            os.kill(os.getpid(), signal.SIGKILL)
        update(self, *given, **options)

    train_in(tmp_path / "one", demo_corpus, overrides, workers=2)
    with monkeypatch.context() as patched:
        patched.setattr(Updates, "update", die)
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
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from labelwise.train.loop import Run
from labelwise.train.monitor import Monitor
import numpy as np
config, corpus, folder, overrides = json.loads(sys.argv[1])
total = Run.total_losses
def compared(self, losses):
    told = self.ranks.exchange([slot.get() for slot in self.slots])
    assert all(np.array_equal(*pair) for one in told for pair in zip(one, told[0], strict=True)), "ranks differ"
    return total(self, losses)
if int(os.environ.get("WORLD_SIZE", "1")) > 1:
    Run.total_losses = compared
recipe = Recipe(Path(config), Path(corpus), overrides=overrides)
train_pipeline(recipe, Path(folder) / "model", Path(folder) / "curve.tsv")
"""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.long
def test_torchrun_trains_what_one_process_does(precision, demo_corpus, tiny_bert, tmp_path):
    """gloo, on the CPU; in fp16 with the gradient scaler, which overflows at first."""
    overrides = {
        **BERT,
        "components.transformer.model.name": str(tiny_bert),
        "components.transformer.model.precision": precision,
        "components.transformer.model.grad_scaler_config.init_scale": 2.0**20,
    }
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
    assert two == pytest.approx(one, rel=0.02 if precision == "fp16" else 1e-3)
    if precision == "fp16":
        one, two = ((tmp_path / str(count) / "curve.tsv").read_text().split()[-1] for count in (1, 2))
        assert one == two != "0"


class Told(Alone):
    """Ranks that have said something."""

    def __init__(self, *others: dict) -> None:
        self.others = others

    def exchange(self, value):
        return [value, *(("box", other) for other in self.others)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"the config": "b", "spacy": "3"}, "the config of rank 2, on box, isn't that of rank 0, on .*: b, not a"),
        ({"the config": "a"}, "spacy of rank 2, .*: None, not 3"),
        ({"the config": "a", "spacy": "3", "torch": "2"}, "torch of rank 2, .*: 2, not None"),
    ],
)
def test_ranks_that_would_take_other_steps_are_named(other, said):
    facts = {"the config": "a", "spacy": "3"}
    compare_facts(Told(facts, facts), facts)
    with pytest.raises(InputError, match=said):
        compare_facts(Told(facts, other), facts)


LAUNCHED = """
import os, signal, sys
from labelwise.commands.console import run
from labelwise.commands.train import train_cli
from labelwise.train.out_of_memory import Updates
update, kind = Updates.update, sys.argv.pop(1)
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
def die(self, *given, **options):
    if first and os.environ["RANK"] == "1" and self.state.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    update(self, *given, **options)
if kind == "killed":
    Updates.update = die
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
    assert "the config of rank 1" in done.stdout + done.stderr
    assert 'Traceback (most recent call last):\n  File "' + str(tmp_path) not in done.stderr
    assert not (tmp_path / "other" / "model").exists()

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from spacy.language import Language
from thinc.backends import context_pools
from thinc.shims.pytorch_grad_scaler import PyTorchGradScaler

from labelwise.base.errors import InputError
from labelwise.train.parameters import is_out_of_memory
from tests.conftest import run_python
from tests.train.training import CPU, GPU, STEPS, curve, files, losses, train_in, with_bert

UPDATE = Language.update


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (MemoryError(), True),
        (type("OutOfMemoryError", (Exception,), {})("cupy"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("CUDNN_STATUS_ALLOCATION_FAILED"), True),
        (RuntimeError("could not create a primitive"), True),  # oneDNN's
        (RuntimeError("device-side assert"), False),
        (ValueError("out of memory"), False),
    ],
    ids=repr,
)
def test_errors_that_mean_no_memory(error, meant):
    assert is_out_of_memory(error) == meant


def fail_beyond(most: int, monkeypatch, rank: int | None = None, error: Exception | None = None) -> None:
    """Make updates with more words fail after their work, in one rank or (None) in all."""
    first = os.getpid()

    def update(self, examples, **options):
        UPDATE(self, examples, **options)
        here = rank is None or (os.getpid() == first) == (rank == 0)
        if here and sum(map(len, examples)) > most:
            raise error or MemoryError

    monkeypatch.setattr(Language, "update", update)


WHOLE = {**STEPS, "training.dropout": 0.0, "training.batcher.size": 900}


@pytest.fixture(scope="module")
def whole(demo_corpus, tmp_path_factory) -> Callable[[int], Path]:
    """Train without a lack of memory, once per number of processes; return the folder."""

    @cache
    def train(workers: int) -> Path:
        folder = tmp_path_factory.mktemp("whole")
        train_in(folder, demo_corpus, WHOLE, workers=workers)
        return folder

    return train


@pytest.mark.parametrize(("workers", "rank"), [(1, None), (2, 0), (2, 1)])
def test_all_ranks_go_on_with_fewer_words_at_a_time_and_learn_the_same(
    workers, rank, whole, demo_corpus, tmp_path, monkeypatch
):
    """The failed update leaves gradients and a loss behind."""
    folder = whole(workers)
    fail_beyond(150, monkeypatch, rank)
    told: list[str] = []
    trained = train_in(tmp_path, demo_corpus, WHOLE, workers=workers, log=told.append)
    told = [message for message in told if "out of memory in" in message and "words; retrying with" in message]
    assert told[-1].endswith(f"retrying with {trained.state.sub_batch:,}")
    one, other = (np.array(curve(path, "loss_ner", "score")).astype(float) for path in (folder, tmp_path))
    np.testing.assert_allclose(other, one, rtol=1e-3, atol=0.02)


@pytest.mark.parametrize("accumulate", [1, 1000], ids=["several texts", "one text"])
def test_the_same_words_are_tried_once_more_when_pools_are_freed(accumulate, demo_corpus, tmp_path, monkeypatch):
    overrides = {**STEPS, "training.accumulate_gradient": accumulate}
    train_in(tmp_path / "whole", demo_corpus, overrides)
    freed, tries = [], []

    def update(self, examples, **options):
        UPDATE(self, examples, **options)
        tries.append(sum(map(len, examples)))
        if not freed:
            raise MemoryError

    monkeypatch.setattr(Language, "update", update)
    pool = SimpleNamespace(free_all_blocks=lambda: freed.append(1))
    monkeypatch.setitem(context_pools.get(), "a pool", pool)
    messages: list[str] = []
    trained = train_in(tmp_path / "again", demo_corpus, overrides, log=messages.append)
    assert [message for message in messages if "out of memory" in message] == []
    assert (trained.state.sub_batch, freed) == (0, [1])
    assert tries[0] == tries[1]
    assert files(tmp_path / "again" / "model") == files(tmp_path / "whole" / "model")


@pytest.mark.guarantee("streaming")
@pytest.mark.parametrize("workers", [1, 2])
def test_stopping_names_the_step_and_a_remedy(workers, demo_corpus, tmp_path, monkeypatch):
    fail_beyond(0, monkeypatch)
    message = r"Step 0: out of memory at one text of \d+ words, '.{20,}'. Remedy: set max_words of corpora.train below"
    with pytest.raises(InputError, match=message):
        train_in(tmp_path, demo_corpus, {**STEPS, "training.accumulate_gradient": 1000}, workers=workers)


LIMITED = """
import json, resource, sys
import labelwise.train.config as config
from labelwise.base.errors import InputError
from labelwise.train.training_config import TrainingConfig
from labelwise.train.train_pipeline import train_pipeline
file, corpus, overrides, extra = json.loads(sys.argv[1])
init_nlp = config.init_nlp

def limited(*given, **options):
    nlp = init_nlp(*given, **options)
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra * 2**20,) * 2)
    return nlp

config.init_nlp = limited
try:
    train_pipeline(TrainingConfig(file, corpus, overrides=overrides), "model", "c.tsv", log=print)
except InputError as error:
    print("InputError:", error)
"""


@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
@pytest.mark.long
def test_memory_that_really_runs_out_is_seen(kind, demo_corpus, tiny_bert, tmp_path):
    """A child process may use some MB more than at the start, and gets a batch that needs far more."""
    overrides = {"training.max_steps": 1, "training.batcher.size": 10**6}
    wide = {"components.tok2vec.model.encode.width": 384}
    overrides |= wide if kind == "tok2vec" else {"components.ner.model.tok2vec.name": str(tiny_bert)}
    config, extra = (CPU, 20) if kind == "tok2vec" else (GPU, 40)
    arguments = json.dumps([str(config), str(demo_corpus), overrides, extra])
    printed = run_python("-c", LIMITED, arguments, cwd=tmp_path, OMP_NUM_THREADS="1", WITH_TORCH="1")
    assert "Step 0: out of memory at " in printed


def test_micro_batches_with_a_gradient_scaler_learn_the_same_as_the_whole_batch(
    demo_corpus, tiny_bert, tmp_path, monkeypatch
):
    """thinc's scaler works on the CPU as well, except for a check."""
    monkeypatch.setattr(PyTorchGradScaler, "_scale_tensor", lambda self, tensor, *args: tensor.mul_(self._scale))
    options = {"dropout": 0.0, "max_steps": 4, "optimizer.learn_rate.initial_rate": 0.002}
    scaled = {"components.ner.model.tok2vec.grad_scaler_config": {"enabled": True}}
    learned = []
    for parts in (1, 3):
        overrides = with_bert(tiny_bert, accumulate_gradient=parts, **options) | scaled
        train_in(tmp_path / str(parts), demo_corpus, overrides, GPU)
        learned.append(losses(tmp_path / str(parts)))
    assert learned[0] == pytest.approx(learned[1], rel=1e-3)

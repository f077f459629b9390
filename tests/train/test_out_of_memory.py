"""Training when memory runs out: what it says, and how it goes on with fewer texts at a time."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from spacy.language import Language

from labelwise.errors import InputError
from labelwise.train.parameters import is_out_of_memory
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
TORCH_CPU = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory"
SMALL = {
    "training.max_steps": 3,
    "training.eval_frequency": 1,
    "training.batcher.size": 400,
    "training.dropout": 0.0,
    "components.tok2vec.model.encode.width": 16,
}
UPDATE = Language.update


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (MemoryError("std::bad_alloc"), True),
        (np._core._exceptions._ArrayMemoryError((10,), np.dtype("f")), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError(TORCH_CPU), True),
        (type("OutOfMemoryError", (Exception,), {})("Out of memory allocating 512 bytes"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), True),
        (RuntimeError("size mismatch"), False),
        (ValueError("out of memory"), False),
        (KeyboardInterrupt(), False),
    ],
    ids=repr,
)
def test_errors_that_mean_no_memory(error, meant):
    assert is_out_of_memory(error) == meant


def fail_beyond(most: int, monkeypatch, rank: int | None = None, error: Exception | None = None) -> None:
    """Have updates fail after their work if they have more words; None means in all ranks."""
    first = os.getpid()

    def update(self, examples, **options):
        UPDATE(self, examples, **options)
        here = rank is None or (os.getpid() == first) == (rank == 0)
        if here and sum(map(len, examples)) > most:
            raise error or MemoryError

    monkeypatch.setattr(Language, "update", update)


def train(folder, corpus, tell=lambda told: None, **options):
    folder.mkdir(exist_ok=True)
    recipe = Recipe(CPU, corpus, overrides=SMALL, **options)
    return train_pipeline(recipe, folder / "model", folder / "c.tsv", tell=tell)


@pytest.mark.parametrize(("workers", "rank"), [(1, None), (2, 0), (2, 1)])
def test_all_ranks_go_on_with_fewer_texts_at_a_time_and_learn_the_same(
    workers, rank, demo_corpus, tmp_path, monkeypatch
):
    """What failed had left gradients behind, and a loss."""
    train(tmp_path / "whole", demo_corpus, workers=workers)
    fail_beyond(100, monkeypatch, rank)
    told: list[str] = []
    trained = train(tmp_path / "halved", demo_corpus, told.append, workers=workers)
    assert trained.halved == len(told) > 0
    assert all("out of memory at" in one and "words at a time; going on with" in one for one in told)
    one, other = (
        np.array([list(map(float, line.split("\t")[4:6])) for line in (folder / "c.tsv").read_text().splitlines()[1:]])
        for folder in (tmp_path / "whole", tmp_path / "halved")
    )
    np.testing.assert_allclose(other, one, rtol=1e-3, atol=0.02)


def test_stopping_names_the_step_and_a_remedy(demo_corpus, tmp_path, monkeypatch):
    """One text that doesn't fit ends training."""
    fail_beyond(0, monkeypatch)
    message = r"Step 0: out of memory at one text of \d+ words, '.{20,}'. Remedy: set max_words of corpora.train below"
    for workers in (1, 2):
        with pytest.raises(InputError, match=message):
            train(tmp_path, demo_corpus, workers=workers)


def test_other_errors_are_not_taken_for_no_memory(demo_corpus, tmp_path, monkeypatch):
    fail_beyond(0, monkeypatch, error=ValueError("E203"))
    with pytest.raises(ValueError, match="E203"):
        train(tmp_path, demo_corpus)


LIMITED = """
import json, resource, sys
import labelwise.train.config as config
from labelwise.errors import InputError
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
file, corpus, overrides, extra = json.loads(sys.argv[1])
init_nlp = config.init_nlp

def limited(*given, **options):
    nlp = init_nlp(*given, **options)
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra * 2**20,) * 2)
    return nlp

config.init_nlp = limited
try:
    print(train_pipeline(Recipe(file, corpus, overrides=overrides), "model", "c.tsv", tell=print).halved)
except InputError as error:
    print("InputError:", error)
"""


@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
@pytest.mark.long
def test_memory_that_really_runs_out_is_seen(kind, demo_corpus, tiny_bert, tmp_path):
    """A child process may have some MB more than it begins training with, and has a batch that needs far more."""
    overrides = {"training.max_steps": 1, "training.batcher.size": 10**6}
    if kind == "tok2vec":
        overrides |= {"components.tok2vec.model.encode.width": 384}
    else:
        overrides |= {"components.per_label.model.tok2vec.name": str(tiny_bert)}
    config = CPU if kind == "tok2vec" else GPU
    given = json.dumps([str(config), str(demo_corpus), overrides, 20 if kind == "tok2vec" else 40])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, given]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "Step 0: out of memory at " in done.stdout, done.stdout + done.stderr

"""Training when memory runs out: what it says, and how it continues with smaller sub-batches."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from spacy.training.initialize import init_nlp
from spacy.util import registry

from labelwise.common.errors import InputError
from labelwise.train import loop
from labelwise.train.batches import Batch, word_cost
from labelwise.train.loop import Run, update_components
from labelwise.train.monitor import Monitor
from labelwise.train.out_of_memory import is_out_of_memory
from labelwise.train.parameters import find_slots
from labelwise.train.pipeline import read_config
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import NO_DROPOUT, ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
TORCH_CPU = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory"
ERRORS = [
    MemoryError("std::bad_alloc"),
    np._core._exceptions._ArrayMemoryError((10,), np.dtype("f")),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError(TORCH_CPU),
    type("OutOfMemoryError", (Exception,), {})("Out of memory allocating 512 bytes"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    type("CUBLASError", (RuntimeError,), {})("CUBLAS_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_errors_that_mean_no_memory(error):
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("size mismatch"), ValueError("out of memory"), KeyboardInterrupt()])
def test_other_errors(error):
    assert not is_out_of_memory(error)


@pytest.fixture
def pipeline(demo_corpus, tiny_bert):
    """Make (pipeline, Examples); in its updates nothing is random."""

    def make(kind: str):
        overrides = {"components.ner.update_with_oracle_cut_size": 0, "components.ner.model.use_upper": False}
        if kind == "transformer":
            overrides |= {"components.transformer.model.name": str(tiny_bert)}
            overrides |= {"components.transformer.model.precision": "fp32"}
            overrides |= {"components.transformer.model.transformer_config": NO_DROPOUT}
        else:
            overrides |= {"components.tok2vec.model.encode.width": 16}
        nlp = init_nlp(read_config(Recipe(GPU if kind == "transformer" else CPU, demo_corpus, overrides=overrides)))
        corpus = registry.resolve(nlp.config.interpolate()["corpora"])["train"]
        return nlp, list(corpus(nlp))[:6]

    return make


def batch_of(examples) -> Batch:
    return Batch(examples, [word_cost(eg) for eg in examples])


def gradients(nlp) -> list[np.ndarray | None]:
    """Of each parameter that has one, by slot."""
    found = []
    for slot in find_slots(nlp):
        if slot.tensor is not None:
            found.append(None if slot.tensor.grad is None else slot.tensor.grad.numpy().copy())
        else:
            name = slot.key[1]
            found.append(slot.owner.get_grad(name).copy() if slot.owner.has_grad(name) else None)
    return found


def failing(nlp, most: int, error: Exception = ERRORS[0]):
    """Make an `nlp.update` that fails after its work whenever there are more words.

    RETURNS (tuple): the function, and a list of the texts of each part.
    """
    done: list[list[str]] = []

    def update(examples, **options):
        update_components(nlp, examples, **options)
        if sum(len(eg.predicted) for eg in examples) > most:
            raise error
        done.append([eg.predicted.text for eg in examples])

    return update, done


def step(nlp, examples, run: Run, own=None, count: int = 1) -> dict[str, float]:
    """Compute the gradients of a step as the loop does; give the losses, which begin with those of before."""
    losses = {"ner": 1000.0}
    run.slots = find_slots(nlp)
    run.learn(nlp, batch_of(examples), own or partial(update_components, nlp), 0.0, losses, count)
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.long
def test_a_halved_step_has_the_gradients_of_a_whole_one(kind, count, pipeline, tmp_path):
    """What failed had left gradients behind, and a loss."""
    nlp, examples = pipeline(kind)
    whole_losses = step(nlp, examples, Run(tmp_path, monitor=Monitor()), count=count)
    whole = gradients(nlp)
    other, examples = pipeline(kind)
    longest = max(len(eg.predicted) for eg in examples)
    own, _ = failing(other, most=int(1.5 * longest))
    run = Run(tmp_path, monitor=Monitor(), on_oom="halve")
    losses = step(other, examples, run, own, count)
    assert run.state.halved >= 1
    assert losses["ner"] == pytest.approx(whole_losses["ner"], rel=0.01)
    compared = 0
    for slot, one, two in zip(find_slots(nlp), whole, gradients(other), strict=True):
        # thinc takes the last token of a batch for features that are missing (PrecomputableAffine), so W differs.
        if getattr(slot.owner, "name", "") == "precomputable_affine" and slot.key[1] == "W":
            continue
        assert (one is None) == (two is None)
        if one is not None:
            scale = max(float(np.abs(one).max()), 1e-3)
            assert np.abs(one - two).max() < 0.02 * scale, slot.key[1]
            compared += 1
    assert compared > 10


@pytest.mark.slow
def test_a_halved_step_is_to_the_bit_one_of_the_sub_batches_that_fit(pipeline, tmp_path):
    nlp, examples = pipeline("tok2vec")
    longest = max(len(eg.predicted) for eg in examples)
    own, done = failing(nlp, most=longest)
    run = Run(tmp_path, monitor=Monitor(), on_oom="halve")
    losses = step(nlp, examples, run, own)
    size = run.state.device_size
    other, examples = pipeline("tok2vec")
    expected = {"ner": 1000.0}
    texts = {eg.text: eg for eg in examples}
    final = []
    for part in reversed(done):  # the last repetition: all texts, each once
        if set(part) & {text for other_part in final for text in other_part}:
            break
        final.insert(0, part)
    assert Counter(text for part in final for text in part) == Counter(eg.text for eg in examples)
    for part in final:
        other.update([texts[text] for text in part], drop=0.0, sgd=False, losses=expected)
    assert losses == expected
    for one, two in zip(gradients(nlp), gradients(other), strict=True):
        assert (one is None and two is None) or np.array_equal(one, two)
    assert 1 <= size < sum(len(eg.predicted) for eg in examples)


def test_the_next_step_is_divided_by_what_has_fitted(pipeline, tmp_path):
    nlp, examples = pipeline("tok2vec")
    longest = max(len(eg.predicted) for eg in examples)
    own, done = failing(nlp, most=2 * longest)
    run = Run(tmp_path, monitor=Monitor(), on_oom="halve")
    step(nlp, examples, run, own)
    halved = run.state.halved
    done.clear()
    step(nlp, examples, run, own)
    assert run.state.halved == halved
    assert Counter(text for part in done for text in part) == Counter(eg.text for eg in examples)


@pytest.mark.parametrize("error", ERRORS[1:4], ids=repr)
def test_stopping_names_the_step_and_a_remedy(error, pipeline, tmp_path):
    nlp, examples = pipeline("tok2vec")
    own, _ = failing(nlp, most=0, error=error)
    run = Run(tmp_path, monitor=Monitor(), on_oom="stop")
    run.state.step = 41
    words = [len(eg.predicted) for eg in examples]
    message = (
        f"Step 42: out of memory at 6 text\\(s\\) that cost {sum(words):,} words together; the longest has "
        f"{max(words):,} words. .*device_size below {sum(words)}, .*on_oom = .halve. in the config"
    )
    with pytest.raises(InputError, match=message):
        step(nlp, examples, run, own)


def test_one_text_that_does_not_fit_ends_training(pipeline, tmp_path):
    nlp, examples = pipeline("tok2vec")
    own, _ = failing(nlp, most=0)
    words = len(examples[0].predicted)
    message = rf"Step 0: out of memory at 1 text\(s\) .*set max_words of corpora.train below {words}, which cuts"
    with pytest.raises(InputError, match=message):
        step(nlp, examples[:1], Run(tmp_path, monitor=Monitor(), on_oom="halve"), own)


def test_other_errors_are_not_taken_for_no_memory(pipeline, tmp_path):
    nlp, examples = pipeline("tok2vec")
    own, _ = failing(nlp, most=0, error=ValueError("E203"))
    with pytest.raises(ValueError, match="E203"):
        step(nlp, examples, Run(tmp_path, monitor=Monitor(), on_oom="halve"), own)


@pytest.mark.slow
def test_training_goes_on_and_tells_how_often_it_halved(demo_corpus, tmp_path, monkeypatch):
    failed = []

    def update_all(nlp, examples, **options):
        if sum(len(eg.predicted) for eg in examples) > 200:
            failed.append(len(examples))
            raise MemoryError
        update_components(nlp, examples, **options)

    monkeypatch.setattr(loop, "update_components", update_all)
    overrides = {"training.max_steps": 2, "training.eval_frequency": 2, "training.batcher.size": 800}
    recipe = Recipe(CPU, demo_corpus, overrides={**overrides, "labelwise.on_oom": "halve"})
    trained = train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")
    assert trained.halved == len(failed) > 0
    assert (tmp_path / "model" / "config.cfg").exists()


LIMITED = """
import json, resource, sys
from pathlib import Path
import labelwise.train.pipeline as pipeline
from labelwise.common.errors import InputError
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
config, corpus, overrides, extra = json.loads(sys.argv[1])
init_nlp = pipeline.init_nlp

def limited(*given, **options):
    nlp = init_nlp(*given, **options)
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra * 2**20,) * 2)
    return nlp

pipeline.init_nlp = limited
try:
    train_pipeline(Recipe(Path(config), Path(corpus), overrides=overrides), Path("model"), Path("c.tsv"))
except InputError as error:
    print("InputError:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tok2vec", "transformer"])
@pytest.mark.long
def test_memory_that_really_runs_out_is_named(kind, demo_corpus, tiny_bert, tmp_path):
    """A child process may have some MB more than it begins training with, and has a batch that needs far more."""
    overrides = {"training.max_steps": 1, "training.batcher.size": 10**6}
    if kind == "tok2vec":
        overrides |= {"components.tok2vec.model.encode.width": 384}
    else:
        overrides |= {
            "training.accumulate_gradient": 1,
            "components.transformer.model.name": str(tiny_bert),
            "components.transformer.model.precision": "fp32",
        }
    config = CPU if kind == "tok2vec" else GPU
    given = json.dumps([str(config), str(demo_corpus), overrides, 20 if kind == "tok2vec" else 40])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, given]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "InputError: Step 0: out of memory at " in done.stdout, done.stdout + done.stderr

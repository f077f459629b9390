"""What computes: the CPU, with which library."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import thinc.api

from labelwise.base.device import CpuOps, use_gpu, why_not
from labelwise.base.errors import InputError


def test_a_gpu_that_isnt_there_is_named():
    with pytest.raises(InputError, match="GPU 77 can't be used"):
        use_gpu(77)


def test_apples_gpu_is_not_taken_for_one_with_cuda(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(thinc.api, "require_gpu", Mock())
    with pytest.raises(InputError, match="GPU 0: macOS has no CUDA, which labelwise needs; use the CPU"):
        use_gpu(0)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "This machine has 1, numbered from 0"),
        (RuntimeError("cudaErrorInsufficientDriver: too old"), r": too old\. The driver is older than CUDA needs"),
        (RuntimeError("cudaErrorNoDevice: no CUDA-capable device"), r"no CUDA-capable device\. Is there a GPU"),
    ],
)
def test_why_a_gpu_cannot_be_used(monkeypatch, number, said):
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=Mock(side_effect=[number]))))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cublas", SimpleNamespace())
    assert re.search(said, why_not(ValueError("No GPU devices detected")))


@pytest.mark.parametrize("given", ["", "2"])
def test_a_command_multiplies_with_one_thread_unless_told_otherwise(given):
    told = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    told |= {"OPENBLAS_NUM_THREADS": given} if given else {}
    # numpy reads it when it is loaded: whatever is imported first, it must be set before that.
    code = "import sys, os, scripts; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    found = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", given or "1"]


def test_dropout_draws_what_it_is_told_and_keeps_the_sum():
    """A part of 65,536 is all that the probability may be off; a seed gives the same mask again."""
    use_gpu(-1)
    ops = thinc.api.get_current_ops()
    thinc.api.fix_random_seed(1)
    mask = ops.get_dropout_mask((1000, 300), 0.1)
    assert mask.dtype == "float32"
    assert set(mask.ravel().tolist()) == {0.0, float(np.float32(1 / 0.9))}
    assert (mask == 0).mean() == pytest.approx(0.1, abs=0.003)
    thinc.api.fix_random_seed(1)
    assert (ops.get_dropout_mask((1000, 300), 0.1) == mask).all()
    assert (ops.get_dropout_mask((3, 2), 0.0) == 1).all()
    assert (ops.get_dropout_mask((3, 2), 1.0) == 0).all()


def test_whoever_asks_for_the_cpu_is_given_the_same():
    """spaCy's ner makes its upper layer for "cpu", whatever the rest computes with."""
    use_gpu(-1)
    assert thinc.api.Linear(2, 3).ops is thinc.api.get_current_ops()  # what a pipeline that is loaded now computes with
    assert not getattr(thinc.api.get_current_ops(), "use_blis", False)
    with thinc.api.use_ops("cpu"):
        assert type(thinc.api.get_current_ops()) is CpuOps

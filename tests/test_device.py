import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import thinc.api

from labelwise.base.device import CpuOps, use_gpu, why_not
from labelwise.base.errors import InputError
from labelwise.train.gpu import peak_memory
from scripts.train import train_cli
from tests.conftest import ROOT, call
from tests.train.training import train_in


def test_apples_gpu_is_not_taken_for_one_with_cuda(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(thinc.api, "require_gpu", Mock())
    with pytest.raises(InputError, match="GPU 0: macOS has no CUDA, which labelwise needs; use the CPU"):
        use_gpu(0)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1, "This machine has 1, numbered from 0"),
        (RuntimeError("cudaErrorInsufficientDriver: too old"), r": too old\. The driver is older than CUDA needs"),
        (RuntimeError("cudaErrorNoDevice: no CUDA-capable device"), r"no CUDA-capable device\. Is there a GPU"),
    ],
)
def test_why_a_gpu_cannot_be_used(monkeypatch, number, message):
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=Mock(side_effect=[number]))))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cublas", SimpleNamespace())
    assert re.search(message, why_not(ValueError("No GPU devices detected")))


@pytest.mark.parametrize("given", ["", "2"])
def test_a_command_multiplies_with_one_thread_unless_told_otherwise(given):
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    env |= {"OPENBLAS_NUM_THREADS": given} if given else {}
    # numpy reads it when it is loaded: whatever is imported first, it must be set before that.
    code = "import sys, os, scripts; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", given or "1"]


def test_dropout_draws_what_it_is_told_and_keeps_the_sum():
    """The probability may be off by a part in 65,536."""
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
    use_gpu(-1)
    assert thinc.api.Linear(2, 3).ops is thinc.api.get_current_ops()  # what a pipeline that is loaded now computes with
    assert not getattr(thinc.api.get_current_ops(), "use_blis", False)
    with thinc.api.use_ops("cpu"):
        assert type(thinc.api.get_current_ops()) is CpuOps


@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_on_the_cpu_leaves_a_gpu_that_is_there_alone(workers, demo_corpus, tmp_path, monkeypatch):
    """CUDA can't be used in a forked process."""
    touched = Mock(side_effect=RuntimeError("cudaErrorInitializationError: initialization error"))
    for module in (thinc.compat, thinc.util):
        monkeypatch.setattr(module, "has_cupy_gpu", True)
        monkeypatch.setattr(module, "cupy", SimpleNamespace(random=SimpleNamespace(seed=touched)))
    train_in(tmp_path, demo_corpus, workers=workers)
    assert not touched.called


def test_a_gpu_is_seeded_and_multiplies_in_tf32(monkeypatch):
    torch = pytest.importorskip("torch")
    before, seeded = torch.get_float32_matmul_precision(), Mock()
    for module in (thinc.compat, thinc.util):
        monkeypatch.setattr(module, "has_cupy_gpu", True)
        monkeypatch.setattr(module, "cupy", SimpleNamespace(random=SimpleNamespace(seed=seeded)))
    monkeypatch.setattr(thinc.api, "require_gpu", lambda gpu_id: True)
    use_gpu(-1)
    assert torch.get_float32_matmul_precision() == before == "highest"
    try:
        use_gpu(0)
        thinc.api.fix_random_seed(7)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    seeded.assert_called_once_with(7)


def test_the_peak_of_a_gpus_memory_is_that_since_the_last_row(monkeypatch):
    torch, used = pytest.importorskip("torch"), iter([3 * 2**20, 5 * 2**20])
    reset = Mock()
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda gpu_id: next(used))
    assert [peak_memory(0) for _ in range(2)] == [{"gpu_memory_mb": 3}, {"gpu_memory_mb": 5}]
    assert reset.call_count == 2
    assert peak_memory(-1) == {}


def test_a_machine_without_a_gpu_is_told_what_it_can_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("thinc.compat.has_cupy_gpu", False)
    (tmp_path / "configs").mkdir()
    shutil.copy(ROOT / "configs/gpu.cfg", tmp_path / "configs")
    printed = " ".join(call(train_cli, "gpu", status=1).split())
    assert "configs/gpu.cfg is for a GPU, and none can be used here: " in printed
    assert "This machine can run `dvc repro report@cpu`" in printed

"""Choose the CPU or a GPU, and the CPU's matrix multiplication.

thinc multiplies with BLIS, whose wheels are slow on some processors; numpy's OpenBLAS has kernels for most. For Apple's
processors thinc has its own.
"""

import math
import sys
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import thinc.api
import thinc.compat
import thinc.util
from thinc.config import registry

from labelwise.base.environment import GPU_ENVIRONMENT
from labelwise.base.errors import InputError


@registry.ops("labelwise.CpuOps")
class CpuOps(thinc.api.NumpyOps):
    """thinc's numpy ops with numpy's matrix multiplication, and dropout masks in a seventh of the time.

    They are registered, so thinc uses them for the CPU everywhere. The C code of spaCy's parser and ner still
    multiplies with BLIS.
    """

    def __init__(self, device_type: Literal["cpu"] = "cpu", device_id: int = -1, **options: Any) -> None:
        super().__init__(device_type, device_id, use_blis=False)

    def get_dropout_mask(self, shape: tuple[int, ...], drop: float | None) -> np.ndarray:
        """Return a dropout mask: zeros with probability `drop`, to 1 / 65,536; other values keep the expected sum.

        It needs two random bytes per value, a float eight.
        """
        if not drop or drop >= 1:
            return super().get_dropout_mask(shape, drop)
        draws = np.frombuffer(np.random.bytes(2 * math.prod(shape)), np.uint16)
        return (draws >= round(drop * 2**16)).reshape(shape) * np.float32(1 / (1 - drop))


def use_gpu(gpu_id: int) -> None:
    """Use a GPU, or the CPU if the number is negative; refuse an unusable GPU."""
    # Where thinc sees a GPU, each seed goes to cupy, too; that would open the GPU, which no forked process could use.
    thinc.util.has_cupy_gpu = gpu_id >= 0 and thinc.compat.has_cupy_gpu
    if gpu_id < 0:
        thinc.api.require_cpu()
        return
    if sys.platform == "darwin":  # thinc would take Apple's
        raise InputError(
            f"GPU {gpu_id}: macOS has no CUDA, which labelwise needs; use the CPU: --gpu-id -1, or the config cpu"
        )
    try:
        thinc.api.require_gpu(gpu_id)
    except Exception as error:  # thinc raises ValueError; CUDA's libraries others
        raise InputError(
            f"GPU {gpu_id} can't be used: {why_not(error)}. The CPU does the same, slowly: --gpu-id -1"
        ) from error
    if find_spec("torch"):
        import torch

        # Use TF32, where the GPU has it, for products that aren't computed in half precision.
        torch.set_float32_matmul_precision("high")


def compute_alone() -> None:
    """Compute on the CPU as a command's own process does, to the bit, without PyTorch's threads."""
    use_gpu(-1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def why_not(error: Exception) -> str:
    """Explain why GPUs can't be used, with a remedy: thinc reports an old driver as no GPU."""
    try:
        import cupy
        import cupy.cublas  # loads libcublas and libcublasLt

        count = cupy.cuda.runtime.getDeviceCount()
    except ModuleNotFoundError:
        return f"{error}. cupy isn't installed: use {GPU_ENVIRONMENT}"
    except ImportError as missing:
        return f"{missing}. A library of CUDA is missing: reinstall {GPU_ENVIRONMENT}"
    except Exception as failed:  # CUDA's own
        message = str(failed)
        if "InsufficientDriver" in message:
            return (
                f"{message}. The driver is older than CUDA needs (13: R580; nvidia-smi shows it); install a newer one"
            )
        return f"{message}. Is there a GPU, and its driver (nvidia-smi)?"
    return f"{error}. This machine has {count}, numbered from 0"

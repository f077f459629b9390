"""Choose the CPU or a GPU, and on the CPU what multiplies matrices.

On the CPU nearly all time goes into products of matrices. thinc has them done by BLIS, whose wheels carry generic
kernels; numpy's OpenBLAS chooses kernels for the processor that it finds. For Apple's processors thinc has its own.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import thinc.api
from thinc.config import registry

from labelwise.base.errors import InputError


@registry.ops("labelwise.CpuOps")
class CpuOps(thinc.api.NumpyOps):
    """thinc's ops for numpy's arrays, but numpy multiplies matrices, and masks of dropout take a seventh of the time.

    They are registered, so that thinc takes them for its own wherever it asks for the CPU's. The C code of spaCy's
    own parser and ner has its products from BLIS as before.
    """

    def __init__(self, device_type: Literal["cpu"] = "cpu", device_id: int = -1, **options: Any) -> None:
        """Leave the products to numpy."""
        super().__init__(device_type, device_id, use_blis=False)

    def get_dropout_mask(self, shape: tuple[int, ...], drop: float | None) -> np.ndarray:
        """Draw zeros with the probability `drop`, to 1 / 65,536, and else what keeps the sum as it was.

        Two random bytes for each decide, not the eight of a number between 0 and 1.
        """
        if not drop or drop >= 1:
            return super().get_dropout_mask(shape, drop)
        draws = np.frombuffer(np.random.bytes(2 * math.prod(shape)), np.uint16)
        return (draws >= round(drop * 2**16)).reshape(shape) * np.float32(1 / (1 - drop))


def use_gpu(gpu_id: int) -> None:
    """Use a GPU, or the CPU if the number is negative.

    RAISES (InputError): this machine, or this environment, can't use that GPU.
    """
    if gpu_id < 0:
        thinc.api.require_cpu()
        return
    if sys.platform == "darwin":  # thinc would take Apple's
        raise InputError(
            f"GPU {gpu_id}: macOS has no CUDA, which labelwise needs; use the CPU: --gpu-id -1, or the CPU stages"
        )
    try:
        thinc.api.require_gpu(gpu_id)
    except Exception as error:  # ValueError from thinc, others from CUDA's libraries
        raise InputError(
            f"GPU {gpu_id} can't be used: {why_not(error)}. The CPU does the same, slowly: --gpu-id -1, or gpu_id: -1 "
            "in project.yml"
        ) from error


def why_not(error: Exception) -> str:
    """Say why GPUs can't be used, and what helps: thinc says the same of a driver that is too old as of no GPU at all.

    error (Exception): thinc's.
    """
    try:
        import cupy
        import cupy.cublas  # loads libcublas and libcublasLt

        count = cupy.cuda.runtime.getDeviceCount()
    except ModuleNotFoundError:
        return f"{error}. cupy isn't installed: use the environment of `make gpu`"
    except ImportError as missing:
        return f"{missing}. A library of CUDA is missing: make the environment anew, by `make gpu`"
    except Exception as failed:  # CUDA's own
        said = str(failed)
        if "InsufficientDriver" in said:
            return f"{said}. The driver is older than CUDA needs (13: R580; nvidia-smi shows it); install a newer"
        return f"{said}. Is there a GPU, and its driver (nvidia-smi)?"
    return f"{error}. This machine has {count}, numbered from 0"


def device_name(gpu_id: int) -> str:
    """Name the GPU, or the CPU if the number is negative."""
    if gpu_id < 0:
        return "CPU"
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(gpu_id)["name"].decode()


def gpu_load(gpu_id: int) -> Callable[[], float] | None:
    """Make what measures how busy a GPU is, in percent; None if there is none, or NVML can't tell."""
    if gpu_id < 0:
        return None
    try:
        import torch

        torch.cuda.utilization(gpu_id)
    except Exception:  # whatever NVML and its driver raise: training continues without
        return None
    return lambda: float(torch.cuda.utilization(gpu_id))

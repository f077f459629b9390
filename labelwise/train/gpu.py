"""Check that a training has its GPU, name it, and measure its memory."""

import sys
from importlib.util import find_spec
from pathlib import Path

import thinc.compat

from labelwise.base.device import why_not
from labelwise.base.errors import InputError


def check_gpu(config: Path) -> None:
    """Check that there is a GPU for a config that needs one, without opening it.

    RAISES (InputError): if no GPU is usable; the message names what runs here.
    """
    if not thinc.compat.has_cupy_gpu:
        macos = "macOS has no CUDA, which labelwise needs"
        reason = macos if sys.platform == "darwin" else why_not(ValueError("No GPU was found"))
        raise InputError(
            f"{config} is for a GPU, and none can be used here: {reason}. This machine can run "
            "`dvc repro report@cpu`, or `weasel run all`; --gpu-id -1 trains on the CPU, slowly"
        )


def device_name(gpu_id: int) -> str:
    """Name the GPU, or the CPU if the number is negative."""
    if gpu_id < 0:
        return "CPU"
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(gpu_id)["name"].decode()


def peak_memory(gpu_id: int) -> dict[str, int]:
    """Return the peak memory of PyTorch's tensors on a GPU since the last call, in MB: `gpu_memory_mb`.

    RETURNS (dict[str, int]): empty on the CPU, or without PyTorch.
    """
    if gpu_id < 0 or not find_spec("torch"):
        return {}
    import torch

    peak = torch.cuda.max_memory_allocated(gpu_id)
    torch.cuda.reset_peak_memory_stats(gpu_id)
    return {"gpu_memory_mb": round(peak / 2**20)}

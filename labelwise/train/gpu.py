"""Check that a training has its GPU, name it, and measure what the training takes of it."""

import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import thinc.compat

from labelwise.base.device import why_not
from labelwise.base.errors import InputError


def check_gpu(config: Path) -> None:
    """Check that there is a GPU for a config that asks for one, without opening it.

    RAISES (InputError): there is none that can be used; what runs here is named.
    """
    if not thinc.compat.has_cupy_gpu:
        macos = "macOS has no CUDA, which labelwise needs"
        reason = macos if sys.platform == "darwin" else why_not(ValueError("No GPU was found"))
        raise InputError(
            f"{config} is for a GPU, and none can be used here: {reason}. What this machine can run is "
            "`dvc repro report@cpu`, or `weasel run all`; the CPU does the same as a GPU, slowly: --gpu-id -1"
        )


def device_name(gpu_id: int) -> str:
    """Name the GPU, or the CPU if the number is negative."""
    if gpu_id < 0:
        return "CPU"
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(gpu_id)["name"].decode()


class GpuMeter:
    """Measures what a training takes of its GPU; nothing on the CPU, or without PyTorch.

    gpu_id (int): the GPU; the CPU if it is negative.
    percent (int | None): see `measure`; None until a step was measured, and where CUPTI can't tell.
    """

    def __init__(self, gpu_id: int) -> None:
        """Take the GPU."""
        self.gpu_id = gpu_id if find_spec("torch") else -1
        self.percent: int | None = None

    @contextmanager
    def measure(self, wanted: bool) -> Iterator[None]:
        """Make a block, a step of a training, and find the share of its time in which the GPU computed, in percent.

        PyTorch has the times of the kernels from CUPTI, which costs some time: let it measure few steps. What NVML
        calls utilization is 100 % of a time in which a process merely has kernels to launch.

        wanted (bool): False measures nothing.
        """
        if self.gpu_id < 0 or not wanted:
            yield
            return
        import torch
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            torch.cuda.synchronize(self.gpu_id)
            start = time.perf_counter()
            yield
            torch.cuda.synchronize(self.gpu_id)
            seconds = time.perf_counter() - start
        events = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        busy = covered((event.time_range.start, event.time_range.end) for event in events) / 1e6
        self.percent = min(100, round(100 * busy / seconds)) if events else None

    def take(self) -> dict[str, Any]:
        """Take the percent of the last measured step, and the most memory that tensors had since the last time, in MB.

        Both are without a value where nothing tells them.
        """
        if self.gpu_id < 0:
            return {}
        import torch

        peak = torch.cuda.max_memory_allocated(self.gpu_id)
        torch.cuda.reset_peak_memory_stats(self.gpu_id)
        return {
            "gpu_percent": "" if self.percent is None else self.percent,
            "gpu_memory_mb": round(peak / 2**20),
        }


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Add up the time that intervals cover; what several of them cover counts once.

    >>> covered([(0, 2), (5, 6), (1, 3), (1, 2)])
    4.0
    """
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total

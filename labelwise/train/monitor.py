"""What training does to the machine, sampled in the background: memory, processors, the GPU, and the throughput."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from labelwise.common.memory import tree_pss

INTERVAL = 1.0  # seconds between two samples, at first
MOST_ROWS = 1000  # in the file: once there are more, every second one is dropped, and they come half as often
BUSY = 50  # percent of the time that a GPU should be busy, at least
COLUMNS = ["seconds", "step", "words_per_second", "memory_mb", "cpu_percent"]
GPU_COLUMNS = ["gpu_percent", "gpu_memory_mb", "gpu_power_w"]


class Monitor:
    """Samples what training takes, as a context manager; at the end it writes the samples to a TSV file.

        seconds step    words_per_second    memory_mb   cpu_percent gpu_percent gpu_memory_mb   gpu_power_w
        1.0     12      8290                412         99          93          11021           512

    The memory is that of the process and its descendants, as the proportional set size. Without a GPU, or without NVML,
    its columns are left out.

    step, words (int): where training is; whoever trains keeps them up to date.
    peak (int): the most memory that was seen, in bytes.
    """

    def __init__(self, path: Path | None = None, gpu: Callable[[], list[float]] | None = None) -> None:
        """Take the TSV file, None for none, and what reads a GPU; see `open_nvml`."""
        self.path = path
        self.gpu = gpu
        self.step = self.words = self.peak = 0
        self.memory = 0
        self.rows: list[list[float]] = []
        self.interval = INTERVAL
        self.start = time.perf_counter()
        self._processes: dict[int, psutil.Process] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last = (self.start, 0)

    def begin(self, step: int, words: int) -> None:
        """Say where training is when it begins, which isn't 0 if it resumes."""
        self.step, self.words = max(step, 0), words
        self._last = (time.perf_counter(), words)

    def __enter__(self) -> "Monitor":
        """Start sampling."""
        self.sample()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take a last sample, and write the file."""
        self._ended.set()
        self._thread.join()
        self.sample()
        if self.path:
            self.write(self.path)

    def _run(self) -> None:
        while not self._ended.wait(self.interval):
            self.sample()

    def sample(self) -> None:
        """Take a sample."""
        now, words = time.perf_counter(), self.words
        since, before = self._last
        self._last = (now, words)
        self.memory = tree_pss(psutil.Process().pid)
        self.peak = max(self.peak, self.memory)
        rate = (words - before) / (now - since) if now > since else 0.0
        row = [now - self.start, self.step, rate, self.memory / 2**20, self._cpu_percent()]
        self.rows.append([*row, *(self.gpu() if self.gpu else ())])
        if len(self.rows) > MOST_ROWS:
            self.rows = self.rows[1::2]
            self.interval *= 2

    def _cpu_percent(self) -> float:
        """Add up what the processes have used since the last call, in percent of one core."""
        try:
            found = [psutil.Process(), *psutil.Process().children(recursive=True)]
        except psutil.Error:
            return 0.0
        self._processes = {process.pid: self._processes.get(process.pid, process) for process in found}
        total = 0.0
        for process in self._processes.values():
            try:
                total += process.cpu_percent()
            except psutil.Error:
                continue
        return total

    def write(self, path: Path) -> None:
        """Write the samples."""
        columns = [*COLUMNS, *(GPU_COLUMNS if self.gpu else [])]
        lines = ["\t".join(columns)]
        lines += ["\t".join([f"{row[0]:.1f}", *(f"{value:.0f}" for value in row[1:])]) for row in self.rows]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf8")

    def gpu_percent(self) -> float | None:
        """Compute how busy the GPU was while training made steps; None without one."""
        busy = [row[5] for row in self.rows if row[1] > 0 and not math.isnan(row[5])] if self.gpu else []
        return sum(busy) / len(busy) if busy else None


def idle_gpu(percent: float | None, shares: Mapping[str, float]) -> str:
    """Say why a GPU has little to do; the empty string if it has enough.

    percent (float | None): how busy it was.
    shares (Mapping): of the time, by phase; see `clock.Clock`.
    """
    if percent is None or percent >= BUSY:
        return ""
    remedies = {
        "waiting for data": "another process prepares its batches; give that one a core of its own",
        "reading": "set `loader` of corpora.train to in_memory, if the texts fit into memory",
        "batching": "count `words` rather than wordpieces in training.batcher",
        "evaluation": "raise training.eval_frequency, or set `limit` of corpora.dev",
        "saving": "raise training.eval_frequency: every evaluation saves",
    }
    name = max(remedies, key=lambda phase: shares.get(phase, 0.0))
    if shares.get(name, 0.0) < 0.1:
        return f"The GPU was {percent:.0f}% busy: its batches are small; raise `size` of training.batcher"
    return f"The GPU was {percent:.0f}% busy, because {name} took {shares[name]:.0%} of the time: {remedies[name]}"


def open_nvml(gpu_id: int) -> Callable[[], list[float]] | None:
    """Make what reads a GPU's utilization in percent, memory in MB and power in W; None if there is no GPU, or no NVML.

    gpu_id (int): the number that CUDA gives it, which `CUDA_VISIBLE_DEVICES` can make differ from NVML's.
    """
    if gpu_id < 0:
        return None
    try:
        import cupy
        import pynvml

        pynvml.nvmlInit()
        device: Any = pynvml.nvmlDeviceGetHandleByPciBusId(cupy.cuda.Device(gpu_id).pci_bus_id)
    except Exception:  # whatever NVML and its driver raise: training continues without
        return None
    return nvml_reader(pynvml, device)


def nvml_reader(nvml: Any, device: Any) -> Callable[[], list[float]]:
    """Make what reads a device through the module `pynvml`; what can't be read, such as the power of some, is NaN."""
    values: list[Callable[[], float]] = [
        lambda: float(nvml.nvmlDeviceGetUtilizationRates(device).gpu),
        lambda: nvml.nvmlDeviceGetMemoryInfo(device).used / 2**20,
        lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
    ]

    def read_or_nan(value: Callable[[], float]) -> float:
        """Read a value that this GPU may not have."""
        try:
            return value()
        except nvml.NVMLError:
            return math.nan

    return lambda: [read_or_nan(value) for value in values]

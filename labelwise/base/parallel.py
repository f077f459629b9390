"""Processes for the jobs of a stage (`jobs`), and their memory.

Jobs run in this process, in others, or on a cluster (`cluster`); the results have the same bytes.

Memory is the proportional set size (PSS), which counts shared pages once; only Linux has it. Elsewhere it is the unique
(USS) or resident set size (RSS), which count shared pages never or each time.
"""

import ctypes
import gc
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_all_start_methods, get_context
from pathlib import Path
from typing import Any

import psutil

from labelwise.base.errors import InputError
from labelwise.base.jobs import MapJobs, map_in_order, scheduler_address

# Yields the items of an iterable; takes a name for it, how many items there are, if that isn't their len, and what each
# stands for.
Progress = Callable[..., Iterable[Any]]
MEASURES = ("pss", "uss", "rss")  # of memory, the best first
SHARED = Path("/dev/shm")  # noqa: S108  Linux's shared memory; often 64 MB in a container
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it


def start_method() -> str:
    """Return how to start processes: LABELWISE_START_METHOD, or fork, which shares loaded data, or spawn."""
    known = [one for one in ("fork", "spawn") if one in get_all_start_methods()]
    method = os.environ.get("LABELWISE_START_METHOD") or ("fork" if sys.platform == "linux" else "spawn")
    if method not in known:
        raise InputError(f"LABELWISE_START_METHOD={method}: give {' or '.join(known)}")
    return method


@contextmanager
def frozen() -> Iterator[None]:
    """Collect garbage, and freeze the rest, so forked processes share its memory.

    Otherwise a forked process could collect an earlier training's cycles, and free GPU memory. At the end, everything
    is unfrozen and collected: frozen objects would never be freed.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def open_workers(workers: int, shared: Path | None) -> Iterator[MapJobs]:
    """Open processes for the jobs of a stage, and close them; after an error without waiting.

    workers (int): processes of this machine; 1 is this process.
    shared (Path | None): folder of the outputs, visible to a cluster's workers; None for this machine alone.
    """
    if shared and (address := scheduler_address()):
        from labelwise.base.cluster import open_cluster

        with open_cluster(address, shared) as map_jobs:
            yield map_jobs
        return
    # Garbage collection skips loaded objects, spaCy's above all, so forked workers share them.
    gc.freeze()
    if workers == 1:
        yield map
        return
    with open_pool(workers) as pool:
        yield partial(map_in_order, pool.submit, lambda: workers)


@contextmanager
def shared_memory_named() -> Iterator[None]:
    """Turn OSError into an InputError that names the place of shared memory."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{SHARED}: {error.strerror}; processes share memory there. Make it writable, or use one process (workers: "
            "1 in project.yml, --workers 1)"
        ) from error


@contextmanager
def open_pool(workers: int) -> Iterator[Executor]:
    """Open processes of this machine, and close them; after an error without waiting."""
    others = active_children()
    with shared_memory_named():
        pool = ProcessPoolExecutor(workers, mp_context=get_context(start_method()), initializer=begin_worker)
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - set(others):
            process.kill()  # its job may take minutes
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def begin_worker() -> None:
    """End this process when its parent dies (Linux: prctl(2)); the parent handles signals."""
    from labelwise.base.device import compute_alone

    compute_alone()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def count_cores(root: Path = Path("/")) -> int:
    """Count usable cores: by affinity, or fewer by a control group's quota.

    A quota of 1.5 cores counts as 2. In a container, a group's path may be the host's.

    https://docs.kernel.org/admin-guide/cgroup-v2.html https://docs.kernel.org/scheduler/sched-bwc.html
    """
    cores: float = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    groups = root / "proc/self/cgroup"
    for line in groups.read_text(encoding="utf8").splitlines() if groups.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") or not controllers:  # version 2 names none
            top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
            group = top / path.lstrip("/")
            cores = min(cores, *(_quota(parent) for parent in (group, *group.parents) if parent.is_relative_to(top)))
    return math.ceil(cores)


def _quota(group: Path) -> float:
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="utf8").split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text(encoding="utf8") for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError):  # no such file, or the word `max`
        return math.inf


def check_workers(workers: int, gpu_id: int) -> None:
    """Refuse less than 1 process, and more than 1 on a GPU."""
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")


def tree_memory(pid: int) -> tuple[int, str]:
    """Sum the memory of a process and its descendants, in bytes, and name the measure: PSS, USS or RSS."""
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0, MEASURES[0].upper()
    total, measure = 0, 0
    for process in processes:
        try:
            try:
                memory: Any = process.memory_full_info()
            except psutil.AccessDenied:  # as macOS denies it
                memory = process.memory_info()
        except psutil.Error:
            continue
        number = next(number for number, name in enumerate(MEASURES) if hasattr(memory, name))
        total, measure = total + getattr(memory, MEASURES[number]), max(measure, number)
    return total, MEASURES[measure].upper()


def trim_heap() -> None:
    """Return freed memory to the system, if the C library can.

    glibc's malloc returns only the end of its heap. With blocks of many sizes, such as a transformer's tensors, freed
    blocks lie between others: the heap of a MiniLM training grew to three times its use.
    """
    if TRIM:
        TRIM(0)


def no_progress(items: Iterable[Any], *described: Any) -> Iterable[Any]:
    """Ignore progress."""
    return items

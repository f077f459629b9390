"""Jobs beside each other: a window of them over any Executor, whose results come in order; and the memory they take.

A stage's jobs are done in this process or in others; the bytes of the results are the same.

Memory is the proportional set size: pages that several processes share are counted once.
"""

import ctypes
import gc
import math
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, TypeVar

import psutil

from labelwise.base.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")
# Takes what is iterated over, a name for it, and how many items there are, if that isn't their len; yields the items.
Progress = Callable[..., Iterable[Any]]
MapJobs = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # as the builtin `map`
WINDOW = 12  # jobs of each worker that are sent and not yet taken: the others go on while one takes ten times as long
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it


def map_in_order(
    executor: Executor, workers: int, function: Callable[[Job], Result], jobs: Iterable[Job]
) -> Iterator[Result]:
    """Yield the results of jobs, in order, while a window of jobs behind them is being done.

    workers (int): those of the executor.
    RAISES (InputError): a worker was killed; what the function raises.
    """
    waiting = iter(jobs)
    sent: deque[tuple[str, Future[Result]]] = deque()
    name = ""
    try:
        while True:
            for job in islice(waiting, WINDOW * workers - len(sent)):
                name = str(job)
                sent.append((name, executor.submit(function, job)))
            if not sent:
                return
            name, future = sent.popleft()
            result = future.result()
            yield result
    except BrokenExecutor as error:
        raise InputError(f"{name}: a worker was killed, perhaps for lack of memory: use fewer workers") from error
    finally:
        for _, future in sent:
            future.cancel()


@contextmanager
def open_workers(workers: int) -> Iterator[MapJobs]:
    """Open processes for the jobs of a stage, and close them; after an error without waiting for jobs.

    workers (int): processes; 1 is this process itself.
    YIELDS (Callable): takes a function and jobs, and yields the results in order, as `map` does.
    """
    # Garbage collection needn't look at what is loaded, spaCy above all, and so forked workers share it.
    gc.freeze()
    if workers == 1:
        yield map
        return
    others = active_children()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=begin_worker)
    try:
        yield partial(map_in_order, pool, workers)
    except BaseException:
        for process in set(active_children()) - set(others):
            process.kill()  # its job may take minutes
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def begin_worker() -> None:
    """Have the system end this process when the one that made it is killed; only Linux can do that (prctl(2)).

    The one that made it is who decides what follows from signals: an interrupt reaches all processes of a terminal.
    PyTorch's threads aren't forked, and it would wait for them forever: a worker computes in a single thread.
    """
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def count_cores(root: Path = Path("/")) -> int:
    """Count the cores that this process may use: those of its affinity, or fewer by a quota of its control groups.

    A quota of 1.5 cores counts as 2. In a container, a group's path may be that on the host, and its files above.

    root (Path): the folder that has `proc` and `sys`.
    https://docs.kernel.org/admin-guide/cgroup-v2.html
    https://docs.kernel.org/scheduler/sched-bwc.html
    """
    cores: float = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    groups = root / "proc/self/cgroup"
    for line in groups.read_text(encoding="utf8").splitlines() if groups.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") or not controllers:  # version 2 names none
            top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
            group = top / path.lstrip("/")
            cores = min(cores, *(_quota(one) for one in (group, *group.parents) if one.is_relative_to(top)))
    return math.ceil(cores)


def _quota(group: Path) -> float:
    """Read how many cores' time the processes of a control group may take; infinite without a quota."""
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="utf8").split()
        else:
            quota, period = ((group / f"cpu.cfs_{one}_us").read_text(encoding="utf8") for one in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError):  # no such file; the word `max`
        return math.inf


def check_workers(workers: int, gpu_id: int) -> None:
    """Check a number of processes that predict or train.

    RAISES (InputError): it is less than 1, or more on a GPU.
    """
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")


def tree_pss(pid: int) -> int:
    """Sum the proportional set sizes of a process and its descendants, in bytes; 0 for those that have ended."""
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def give_back() -> None:
    """Give freed memory back to the system, if the C library can.

    glibc's malloc does so only from the end of its heap. Where blocks of many sizes come and go, as a transformer's
    tensors do, freed ones lie between others, and the heap grows: in training MiniLM to three times what is in use.
    """
    if TRIM:
        TRIM(0)


def no_progress(items: Iterable[Any], name: str, total: int | None = None) -> Iterable[Any]:
    """Show nothing."""
    return items

"""Where work is done: functions over jobs, results in order, and never more jobs ahead than are soon needed.

Any `concurrent.futures.Executor` will do. The one for clusters is Dask's. Ray was tried as well (2.60, November 2026,
two workers on one machine, the same bytes): it has no Executor of its own, its packages take 247 MB against 34 MB, its
processes 650 MB against 295 MB, it listens on all of the machine's addresses, and leaves files behind.
"""

import ctypes
import logging
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from tempfile import TemporaryDirectory
from typing import Literal, TypeVar

from labelwise.common.collector import frozen
from labelwise.common.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")
Engine = Literal["processes", "dask"]


def check_workers(workers: int, gpu_id: int, engine: Engine = "processes") -> None:
    """Check a number of processes that predict.

    RAISES (InputError): it is less than 1, or more on a GPU, or they are a cluster's, which has none of our GPUs.
    """
    if engine == "dask" and gpu_id >= 0:
        raise InputError(
            f"--engine dask --gpu-id {gpu_id}: a cluster's workers predict on their CPUs; leave one of the two away"
        )
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")


def run_in_order(
    executor: Executor | None, function: Callable[[Job], Result], jobs: Iterable[Job], *, ahead: int
) -> Iterator[tuple[Job, Result]]:
    """Yield each job with its result, in order.

    executor (Executor | None): None runs them in this process.
    ahead (int): the most jobs that run or wait while the caller has the result of an earlier one: back-pressure.
    RAISES (InputError): a worker was killed.
    """
    if executor is None:
        yield from ((job, function(job)) for job in jobs)
        return
    pending: deque[tuple[Job, Future[Result]]] = deque()

    def take() -> tuple[Job, Result]:
        """Wait for the oldest job."""
        job, future = pending.popleft()
        try:
            return job, future.result()
        except BrokenExecutor as error:
            raise InputError("a worker was killed, perhaps for lack of memory: use fewer --workers") from error

    try:
        for job in jobs:
            pending.append((job, executor.submit(function, job)))
            if len(pending) > ahead:
                yield take()
        while pending:
            yield take()
    finally:
        for _, future in pending:
            future.cancel()


@contextmanager
def open_executor(engine: Engine, workers: int, address: str = "") -> Iterator[Executor | None]:
    """Open an executor, and close it at the end.

    engine (str): "processes" on this machine, or a "dask" cluster.
    workers (int): how many processes; one is this process itself. A cluster with an address has its own.
    address (str): that of a dask cluster's scheduler, which sees the same files; without one, a cluster is made of
        processes on this machine.
    RAISES (InputError): the engine isn't installed, or can't be reached, or /dev/shm isn't there.
    """
    if engine == "dask":
        with _open_dask(workers, address) as executor:
            yield executor
    elif address:
        raise InputError(f"--address {address}: only a cluster has one; add --engine dask")
    elif workers == 1:
        yield None
    else:
        # Forked workers share what is loaded, spaCy above all, as long as the garbage collector doesn't write to it.
        context = get_context("fork")
        try:
            executor = ProcessPoolExecutor(workers, mp_context=context, initializer=begin_worker)
        except OSError as error:
            raise InputError(
                f"--workers {workers}: processes need shared memory, and /dev/shm can't be used: {error.strerror}; "
                "mount it (mount -t tmpfs shm /dev/shm), or give --workers 1"
            ) from error
        with frozen(), executor:
            yield executor


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


def start_uninterrupted(process: BaseProcess) -> None:
    """Start a process that an interrupt doesn't reach, as it does all of a terminal: whoever started it ends it."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _open_dask(workers: int, address: str) -> Iterator[Executor]:
    try:
        import dask
        from distributed import Client, KilledWorker, LocalCluster
    except ImportError as error:
        raise InputError("--engine dask needs the package distributed: pip install '.[dask]'") from error
    with ExitStack() as stack:
        cluster = address
        if not address:
            folder = stack.enter_context(TemporaryDirectory(prefix="labelwise-dask-"))
            stack.enter_context(dask.config.set({"temporary-directory": folder}))
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # None takes port 8787, and warns where that isn't free
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,  # what goes wrong in a job is raised here as well
                )
            )
        try:
            client = stack.enter_context(Client(cluster, timeout="10s", set_as_default=False))
            client.wait_for_workers(1, timeout=30)
        except OSError as error:
            raise InputError(f"--address {address}: no dask scheduler with a worker answers there: {error}") from error
        # Equal jobs mustn't be run as one: they write files.
        executor = stack.enter_context(client.get_executor(pure=False))
        try:
            yield executor
        except KilledWorker as error:
            raise InputError(f"workers of the cluster were killed, perhaps for lack of memory: {error}") from error

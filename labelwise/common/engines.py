"""Which engine does the work: processes of this machine, or a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from labelwise.common.collector import frozen
from labelwise.common.engine import Engine, Processes
from labelwise.common.errors import InputError
from labelwise.common.memory import parse_size, plan_workers

EngineName = Literal["processes", "dask"]


def check_workers(workers: int, gpu_id: int, engine: EngineName = "processes") -> None:
    """Check a number of processes that predict.

    RAISES (InputError): it is less than 1, or more on a GPU, or they are a cluster's, which has none of our GPUs.
    """
    if engine == "dask" and gpu_id >= 0:
        raise InputError(
            f"--engine dask --gpu-id {gpu_id}: a cluster's workers predict on their CPUs; leave one of the two away"
        )
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")


def plan_processes(workers: int, memory: str, engine: EngineName, alone: int, each: int) -> int:
    """Choose how many processes, at most `workers`, there is memory for.

    memory (str): such as "256MB"; empty for no limit.
    alone, each (int): see `memory.plan_workers`.
    RAISES (InputError): a cluster has limits of its own, or what `parse_size` and `plan_workers` raise.
    """
    if not memory:
        return workers
    if engine != "processes":
        raise InputError(
            "--memory, or LABELWISE_MEMORY, plans processes on this machine; a cluster has limits of its own"
        )
    return plan_workers(parse_size(memory), workers, alone, each)


@contextmanager
def open_engine(engine: EngineName, workers: int, address: str, beside: Path) -> Iterator[Engine]:
    """Open an engine, and close it at the end, which after an error waits for no job.

    engine (str): "processes" on this machine, or a "dask" cluster.
    workers (int): how many processes; one is this process itself. A cluster with an address has its own.
    address (str): that of a dask cluster's scheduler, whose workers see the same files; without one, a cluster is made
        of processes on this machine.
    beside (Path): the output; a cluster's jobs lie in a hidden folder beside it while this runs.
    RAISES (InputError): the engine isn't installed, or can't be reached, or its workers can't do the work, or /dev/shm
        isn't there.
    """
    if engine == "dask":
        try:
            from labelwise.common.cluster import open_cluster
        except ImportError as error:
            raise InputError("--engine dask needs the package distributed: pip install '.[dask]'") from error
        with open_cluster(workers, address, beside) as cluster:
            yield cluster
    elif address:
        raise InputError(f"--address {address}: only a cluster has one; add --engine dask")
    elif workers == 1:
        yield Engine()
    else:
        try:
            processes = Processes(workers)
        except OSError as error:
            raise InputError(
                f"--workers {workers}: processes need shared memory, and /dev/shm can't be used: {error.strerror}; "
                "mount it (mount -t tmpfs shm /dev/shm), or give --workers 1"
            ) from error
        done = False
        with frozen():
            try:
                yield processes
                done = True
            finally:
                processes.close(wait=done)

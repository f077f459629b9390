"""Run the jobs of a stage on any Executor; yield results in order, with bounded look-ahead.

On a cluster, a job may run twice, if its worker was presumed dead. Each run writes to its own folder, which is moved
into place when its result arrives.
"""

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from labelwise.base.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")
MapJobs = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # as the builtin `map`
# Returns the results of jobs that write to one folder, in order, and shows their progress under a name.
DoJobs = Callable[[Callable[[Any, Path], Any], Sequence[Any], str], list[Any]]
WINDOW = 12  # jobs sent per worker: the others continue while one takes ten times as long


def map_in_order(
    submit: Callable[[Callable[[Job], Result], Job], Future[Result]],
    workers: Callable[[], int],
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    killed: tuple[type[Exception], ...] = (BrokenExecutor,),
) -> Iterator[Result]:
    """Yield job results in order, with bounded look-ahead.

    workers (Callable): current number of workers, which may change.
    killed (tuple): the executor's errors for a killed worker.
    RAISES (InputError): if a worker was killed.
    """
    waiting = iter(jobs)
    sent: deque[tuple[str, Future[Result]]] = deque()
    name = ""
    try:
        while True:
            for job in islice(waiting, max(0, WINDOW * max(1, workers()) - len(sent))):
                name = str(job)
                sent.append((name, submit(function, job)))
            if not sent:
                return
            name, future = sent.popleft()
            result = future.result()
            yield result
    except killed as error:
        if isinstance(error, CancelledError):
            raise InputError(f"{name}: the cluster's scheduler ended; start it, and run the command again") from error
        raise InputError(f"{name}: a worker was killed, perhaps for lack of memory: use fewer workers") from error
    finally:
        for _, future in sent:
            future.cancel()


def map_apart(
    map_jobs: MapJobs,
    function: Callable[[Job, Path], Result],
    jobs: Iterable[Job],
    out: Path,
    folders: Path | None = None,
) -> Iterator[Result]:
    """Yield results of jobs that write files, in order, by then in `out`; `folders` is on its disk."""
    folders = folders or out
    folders.mkdir(parents=True, exist_ok=True)
    for folder, result in map_jobs(partial(do_apart, function, folders), jobs):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            place = out / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        shutil.rmtree(folder)
        yield result


def map_in_place(
    map_jobs: MapJobs, function: Callable[[Job, Path], Result], jobs: Iterable[Job], out: Path
) -> Iterator[Result]:
    """Yield results of jobs that write new files to `out`, in order; on a cluster as `map_apart` does."""
    out.mkdir(parents=True, exist_ok=True)
    if scheduler_address():
        return map_apart(map_jobs, function, jobs, out)
    return map_jobs(partial(do_in_place, function, out), jobs)


def scheduler_address() -> str:
    """Return the Dask scheduler's address from Dask's environment variable; "" without."""
    return os.environ.get("DASK_SCHEDULER_ADDRESS", "")


def do_in_place(function: Callable[[Job, Path], Result], out: Path, job: Job) -> Result:
    """Run a job that writes to a folder."""
    return function(job, out)


def do_apart(function: Callable[[Job, Path], Result], folders: Path, job: Job) -> tuple[Path, Result]:
    """Run a job in a new folder of its own; return the folder, too."""
    folder = folders / f"job-{uuid4().hex}"
    folder.mkdir()
    return folder, function(job, folder)

"""Where jobs are done: in this process, in others of this machine, or on a cluster. The bytes of results are the same.

Results come in the order of their jobs, and no more jobs are made than are soon needed.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children, get_context
from threading import Event
from typing import Any, TypeVar

from labelwise.common.errors import InputError
from labelwise.common.workers import begin_worker

Job = TypeVar("Job")
Result = TypeVar("Result")
AHEAD = 2  # jobs in flight for each slot: one is being done, the next is there
WINDOW = 12  # jobs for each slot that are in flight, or done and wait for one before them: as long as a slow one takes
LOOK = 1.0  # seconds, after which it is looked whether slots came or went


class Engine:
    """Does jobs in this process, one after the other."""

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of jobs, in order.

        RAISES (InputError): a worker was killed, or what the engine itself raises.
        """
        yield from map(function, jobs)


class SideBySide(Engine, ABC):
    """Does jobs elsewhere, as many at a time as it has slots."""

    @abstractmethod
    def slots(self) -> int:
        """Count the jobs that can be done at a time now."""

    @abstractmethod
    def submit(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        """Begin a job."""

    @abstractmethod
    def result(self, future: Future[Any]) -> Any:
        """Take what a job gave, or another future if it is done again."""

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of jobs, in order; what is in flight follows from the slots, as they come and go."""
        waiting = iter(jobs)
        pending: deque[Future[Any]] = deque()
        running: set[Future[Any]] = set()
        ended = Event()

        def begin(future: Future[Any]) -> Future[Any]:
            """Count a future as long as it isn't done."""
            running.add(future)
            future.add_done_callback(end)
            return future

        def end(future: Future[Any]) -> None:
            """Make room for another one; this is called in any thread."""
            running.discard(future)
            ended.set()

        try:
            while True:
                slots = self.slots()
                room = min(max(1, AHEAD * slots) - len(running), max(1, WINDOW * slots) - len(pending))
                pending.extend(begin(self.submit(function, job)) for job in islice(waiting, max(0, room)))
                if not pending:
                    return
                if not pending[0].done():
                    ended.wait(LOOK)
                    ended.clear()
                elif isinstance(result := self.result(pending[0]), Future):
                    pending[0] = begin(result)
                else:
                    pending.popleft()
                    yield result
        finally:
            for future in pending:
                future.cancel()


@contextmanager
def _killed_named() -> Iterator[None]:
    """Make a block in which a worker that was killed is an error of the user's."""
    try:
        yield
    except BrokenExecutor as error:
        raise InputError("a worker was killed, perhaps for lack of memory: use fewer --workers") from error


class Processes(SideBySide):
    """Does jobs in processes of this machine, which are forked from this one."""

    def __init__(self, workers: int) -> None:
        """Start none yet."""
        self.workers = workers
        self._others = active_children()
        # Forked workers share what is loaded, spaCy above all, as long as the garbage collector doesn't write to it.
        self._pool = ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=begin_worker)

    def slots(self) -> int:
        """Count the processes."""
        return self.workers

    def submit(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        """Begin a job."""
        with _killed_named():
            return self._pool.submit(function, job)

    def result(self, future: Future[Any]) -> Any:
        """Take what a job gave."""
        with _killed_named():
            return future.result()

    def close(self, *, wait: bool) -> None:
        """End the processes; unless their jobs are waited for, at once: one may take minutes."""
        if not wait:
            for process in set(active_children()) - set(self._others):
                process.kill()
        self._pool.shutdown(cancel_futures=True)

"""Where jobs are done: in this process, in others of this machine, or on a cluster. The bytes of results are the same.

Results come in the order of their jobs, and no more jobs are made than are soon needed.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from labelwise.common.errors import InputError
from labelwise.common.workers import begin_worker

Job = TypeVar("Job")
Result = TypeVar("Result")
AHEAD = 2  # jobs in flight for each slot: one is being done, the next is there
LOOK = 1.0  # seconds, after which it is looked whether slots came or went


class Engine:
    """Does jobs in this process, one after the other."""

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in order.

        RAISES (InputError): a worker was killed, or what the engine itself raises.
        """
        yield from ((job, function(job)) for job in jobs)


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

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in order; what is in flight follows from the slots, as they come and go."""
        waiting = iter(jobs)
        pending: deque[tuple[Job, Future[Any]]] = deque()
        try:
            while True:
                room = max(1, AHEAD * self.slots()) - len(pending)
                pending.extend((job, self.submit(function, job)) for job in islice(waiting, max(0, room)))
                if not pending:
                    return
                job, future = pending[0]
                if not wait([future], timeout=LOOK).done:
                    continue
                if isinstance(result := self.result(future), Future):
                    pending[0] = job, result
                else:
                    pending.popleft()
                    yield job, result
        finally:
            for _, future in pending:
                future.cancel()


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
        return self._pool.submit(function, job)

    def result(self, future: Future[Any]) -> Any:
        """Take what a job gave."""
        try:
            return future.result()
        except BrokenExecutor as error:
            raise InputError("a worker was killed, perhaps for lack of memory: use fewer --workers") from error

    def close(self, *, wait: bool) -> None:
        """End the processes; unless their jobs are waited for, at once: one may take minutes."""
        if not wait:
            for process in set(active_children()) - set(self._others):
                process.kill()
        self._pool.shutdown(cancel_futures=True)

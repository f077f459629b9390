"""The phases of a merge that have jobs: done while their progress is shown."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeVar

from labelwise.common.parallel import MapJobs
from labelwise.merge.jobs import MergeJob, ReadJob

AnyJob = TypeVar("AnyJob", ReadJob, MergeJob)
Result = TypeVar("Result")
# Shows a phase's progress, given its name and the bytes to come: yields a function of the bytes and rows just done.
ByteProgress = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]


def no_byte_progress(name: str, total: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show nothing."""
    return nullcontext(lambda done, rows: None)


class Runner(NamedTuple):
    """Runs the jobs of a phase, and shows its progress."""

    map_jobs: MapJobs
    progress: ByteProgress

    def run(
        self, phase: str, function: Callable[[AnyJob], Result], jobs: Iterable[AnyJob], total: int
    ) -> Iterator[Result]:
        """Yield the results of the jobs, in order.

        total (int): the sum of the jobs' `size`, in bytes.
        """
        made: deque[tuple[int, int]] = deque()  # bytes and tasks of jobs that aren't done

        def noted() -> Iterator[AnyJob]:
            """Yield the jobs, and note how large they are."""
            for job in jobs:
                made.append((job.size, job.tasks if isinstance(job, MergeJob) else 0))
                yield job

        with self.progress(phase, total) as advance:
            for result in self.map_jobs(function, noted()):
                yield result
                size, tasks = made.popleft()
                advance(size, tasks or getattr(result, "tasks", 0))

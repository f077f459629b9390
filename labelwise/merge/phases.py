"""The phases of a merge that have jobs: done by an engine, all of them or a share, while their progress is shown."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, NamedTuple, TypeVar

from labelwise.common.engine import Engine
from labelwise.common.shares import Shares
from labelwise.merge.jobs import MergeJob, ReadJob

AnyJob = TypeVar("AnyJob", ReadJob, MergeJob)
Result = TypeVar("Result")
# Shows a phase's progress, given its name and the bytes to come: yields a function of the bytes and rows just done.
ByteProgress = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]


def no_byte_progress(name: str, total: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show nothing."""
    return nullcontext(lambda done, rows: None)


class Planned(NamedTuple, Generic[AnyJob]):
    """The jobs of a phase.

    jobs (Callable): makes those with some numbers.
    length (int): how many there are.
    total (int): the sum of their `size`, in bytes.
    """

    jobs: Callable[[range], Iterable[AnyJob]]
    length: int
    total: int


class Runner(NamedTuple):
    """Runs the jobs of a phase, and shows its progress."""

    engine: Engine
    progress: ByteProgress
    shares: Shares

    def run(
        self,
        phase: str,
        function: Callable[[AnyJob], Result],
        planned: Planned[AnyJob],
        decode: Callable[[bytes], Result],
        *,
        last: bool = False,
    ) -> Iterator[Result]:
        """Return the results of the jobs, in order; see `Shares.results`."""

        def do(numbers: range) -> Iterator[Result]:
            """Do the jobs with these numbers."""
            made: deque[tuple[int, int]] = deque()  # bytes and tasks of jobs that aren't done

            def jobs() -> Iterator[AnyJob]:
                """Make them, and note how large they are."""
                for job in planned.jobs(numbers):
                    made.append((job.size, job.tasks if isinstance(job, MergeJob) else 0))
                    yield job

            with self.progress(phase, planned.total * len(numbers) // max(1, planned.length)) as advance:
                for result in self.engine.map(function, jobs()):
                    yield result
                    size, tasks = made.popleft()
                    advance(size, tasks or getattr(result, "tasks", 0))

        return self.shares.results(phase, planned.length, do, decode, last=last)

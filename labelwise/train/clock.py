"""Where the time goes: the seconds of each phase, none counted twice."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


class Clock:
    """Adds up the seconds that are spent in phases; those of a phase within another count for the inner one alone.

    seconds (Counter[str]): by phase; "update" is all that happens outside the others.
    """

    def __init__(self) -> None:
        """Start in the phase "update"."""
        self.seconds: Counter[str] = Counter()
        self.phases = ["update"]
        self.since = time.perf_counter()

    def _turn(self) -> None:
        now = time.perf_counter()
        self.seconds[self.phases[-1]] += now - self.since  # type: ignore[assignment]
        self.since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Make a block that is a phase."""
        self._turn()
        self.phases.append(name)
        try:
            yield
        finally:
            self._turn()
            self.phases.pop()

    def during(self, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items; getting each one is in the phase, what is done with it isn't."""
        iterator = iter(items)
        while True:
            with self.phase(name):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def shares(self) -> dict[str, float]:
        """Compute each phase's share of all the time, the largest first."""
        self._turn()
        total = sum(self.seconds.values()) or 1.0
        return {name: seconds / total for name, seconds in self.seconds.most_common()}

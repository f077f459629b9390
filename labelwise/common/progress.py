"""How long-running work shows its progress: it wraps what it iterates over in whatever its caller shows."""

from collections.abc import Callable, Iterable
from typing import Any

# Takes what is iterated over, and a name for it; yields the same items.
Progress = Callable[[Iterable[Any], str], Iterable[Any]]


def no_progress(items: Iterable[Any], name: str) -> Iterable[Any]:
    """Show nothing."""
    return items

"""How long-running work shows its progress: it wraps what it iterates over in whatever its caller shows."""

from collections.abc import Callable, Iterable
from typing import Any

# Takes what is iterated over, a name for it, and how many items there are, if that isn't their len; yields the items.
Progress = Callable[..., Iterable[Any]]


def no_progress(items: Iterable[Any], name: str, total: int | None = None) -> Iterable[Any]:
    """Show nothing."""
    return items

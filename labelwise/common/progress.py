"""How long work shows how far it is: by wrapping what it goes through, in whatever its caller shows."""

from collections.abc import Callable, Iterable
from typing import Any

# Takes what is gone through, and a name for that; gives the same items.
Progress = Callable[[Iterable[Any], str], Iterable[Any]]


def no_progress(items: Iterable[Any], name: str) -> Iterable[Any]:
    """Show nothing."""
    return items

"""How often Python looks for objects that refer to each other in circles, and among which.

It looks through all that spaCy holds, whose objects don't: a tenth of the time of training if nothing is done. And
looking writes to each object, so that forked processes would share less and less of what they began with.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen() -> Iterator[None]:
    """Make a block in which circles aren't looked for among what there is at its beginning; blocks may be nested."""
    outermost = not gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if outermost:
            gc.unfreeze()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Make a block in which circles are looked for rarely, and not at all among what there is at its beginning."""
    own = gc.get_threshold()
    gc.collect()
    gc.set_threshold(20_000, 20, 20)
    try:
        with frozen():
            yield
    finally:
        gc.set_threshold(*own)

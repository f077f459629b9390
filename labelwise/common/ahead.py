"""Work that another process does ahead of this one, which takes what is ready."""

import multiprocessing
import os
import pickle
import queue
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from labelwise.common.errors import InputError
from labelwise.common.workers import begin_worker, start_uninterrupted

Item = TypeVar("Item")
WAIT = 1.0  # seconds, after which it is looked whether the process is still there


@contextmanager
def made_ahead(make: Callable[..., Iterator[Item]], *given: Any, most: int = 8) -> Iterator[Iterator[Item]]:
    """Make a block in which another process calls a generator, and this one gets what it yields, in its order.

    The process is started anew, not forked, since CUDA can't be used in a fork; it sees no GPU.

    given (Any): what the generator is called with, which is pickled, as is what it yields.
    most (int): how many may be ready and not yet taken.
    """
    context = multiprocessing.get_context("spawn")
    ready: Any = context.Queue(most)
    # A queue is written to by a thread: what a process is started with would be waited for, also if it ends at once.
    asked: Any = context.Queue()
    asked.put(pickle.dumps((make, given)))
    process = context.Process(target=_serve, args=(ready, asked), daemon=True)
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        start_uninterrupted(process)
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        os.environ |= {"CUDA_VISIBLE_DEVICES": devices} if devices is not None else {}
    try:
        yield _take(ready, process)
    finally:
        asked.cancel_join_thread()
        process.kill()
        process.join()


def _serve(ready: Any, asked: Any) -> None:
    """Be the other process."""
    begin_worker()
    try:
        make, given = pickle.loads(asked.get())  # noqa: S301  of this program's own making
        for item in make(*given):
            ready.put((item, None))
        ready.put((None, None))
    except InputError as error:
        ready.put((None, error))
    except Exception:
        ready.put((None, RuntimeError(f"in the process that prepares batches:\n{traceback.format_exc()}")))


def _take(ready: Any, process: Any) -> Iterator[Any]:
    """Yield what the process has made, until it has no more.

    RAISES (InputError): it was killed.
    """
    while True:
        try:
            item, error = ready.get(timeout=WAIT)
        except queue.Empty:
            if process.is_alive():
                continue
            raise InputError(
                "the process that prepares batches was killed, perhaps for lack of memory: it holds a partition and "
                "the wordpieces of texts"
            ) from None
        if error:
            raise error
        if item is None:
            return
        yield item

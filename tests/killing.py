"""Preloaded by a worker of a test's cluster (`dask worker --preload`): kills one worker, once.

The file KILL_WHERE names a function, such as `labelwise.merge.read:read_source`. The first worker that has run it
deletes the file and kills itself before returning the result.
"""

import importlib
import os
import signal
from pathlib import Path

from labelwise.base import cluster

WHERE = Path(os.environ["KILL_WHERE"])
do_on_worker = getattr(cluster, "original", cluster.do_on_worker)  # Dask loads this twice
wrapped: set[str] = set()


def watch(where: str) -> None:
    module, _, path = where.partition(":")
    owner = importlib.import_module(module)
    *owners, name = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    inner = getattr(owner, name)

    def outer(*args, **options):
        result = inner(*args, **options)
        try:
            WHERE.rename(WHERE.with_name("killed"))
        except FileNotFoundError:
            return result
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    setattr(owner, name, outer)


def do_and_die(*arguments):
    if WHERE.exists() and (where := WHERE.read_text()) not in wrapped:
        wrapped.add(where)
        with cluster.ONE_AT_A_TIME:
            watch(where)
    return do_on_worker(*arguments)


cluster.original, cluster.do_on_worker = do_on_worker, do_and_die  # type: ignore[attr-defined]

"""Run jobs on the workers of a Dask cluster (https://distributed.dask.org).

A worker must compute the same bytes: each job carries the sender's code, versions and rounding, and a file that the
worker must see. A worker that differs refuses the job.
"""

import hashlib
import logging
import os
import pickle
import platform
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from labelwise.base.console import msg
from labelwise.base.device import compute_alone
from labelwise.base.environment import TOKENIZERS
from labelwise.base.errors import InputError
from labelwise.base.files import digest_code
from labelwise.base.jobs import Job, MapJobs, Result, map_in_order

if TYPE_CHECKING:
    from distributed import Client

MAX_WAIT_SECONDS = 60  # seconds to wait for the scheduler; workers may come when jobs wait for them
SILENCE = 5  # seconds without a scheduler or a worker before a command says that it waits
PACKAGES = (  # that decide results
    *("spacy", "thinc", "numpy", "msgspec", "rensa", "tokenizers", "torch", "transformers", "spacy-transformers"),
    *chain.from_iterable(TOKENIZERS.values()),
)
CALL = "__import__('labelwise.base.cluster').base.cluster.do_on_worker(*given)"
ONE_AT_A_TIME = Lock()  # spaCy isn't thread-safe, and a worker may have several threads


@contextmanager
def open_cluster(address: str, shared: Path) -> Iterator[MapJobs]:
    """Connect to a scheduler; see `parallel.open_workers`.

    shared (Path): a folder that all workers must see.
    RAISES (InputError): if distributed isn't installed, or no scheduler answers.
    """
    setting = f"DASK_SCHEDULER_ADDRESS={address}"
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise InputError(f"{setting} needs the package distributed: pip install 'labelwise[dask]'") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are raised here, too
    connected: list[Client] = []
    ended = Event()
    Thread(target=_watch, args=(connected, address, ended), daemon=True).start()
    try:
        client = Client(address, timeout=MAX_WAIT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        ended.set()
        raise InputError(f"{setting}: no Dask scheduler answers there ({error}); start one, or unset it") from error
    connected.append(client)
    try:
        executor = client.get_executor(pure=False)  # equal jobs mustn't be done as one: they write files
        with NamedTemporaryFile(dir=shared, prefix=".labelwise-") as mark:

            def submit(function: Callable[[Job], Result], job: Job) -> Future[Result]:
                # A worker that can't unpickle what it is sent closes its connection, and the job would wait forever.
                arguments = (fingerprint(), str(Path.cwd()), mark.name, pickle.dumps((function, job)))
                future: Future[Result] = executor.submit(eval, CALL, {"given": arguments})
                return future

            def map_jobs(function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
                killed = KilledWorker, CancelledError
                try:
                    yield from map_in_order(submit, lambda: len(client.nthreads()), function, jobs, killed)
                except ImportError as error:
                    raise InputError(
                        f"{setting}: a worker lacks a module ({error}); install the same labelwise there, and restart "
                        "it"
                    ) from error

            yield map_jobs
    finally:
        ended.set()
        client.close(timeout=2)


def _watch(connected: list["Client"], address: str, ended: Event) -> None:
    message = ""
    while not ended.wait(SILENCE):
        waiting = f"Waiting for the Dask scheduler at {address}"
        with suppress(OSError, RuntimeError):  # closed in the meantime
            if connected:
                waiting = "" if connected[0].nthreads() else f"Waiting for a Dask worker: dask worker {address}"
            if waiting and waiting != message:
                msg.info(waiting)
            message = waiting


@lru_cache
def fingerprint() -> dict[str, str]:
    """Fingerprint code, versions and rounding, once per process: loaded code doesn't change."""
    return {
        "labelwise": digest_code([".", "../spacy_per_label"]),
        "Python": platform.python_version(),
        **{package: version_of(package) for package in PACKAGES},
        "rounding": digest_rounding(),
    }


def version_of(package: str) -> str:
    """Return the version of a package, or that it isn't installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def digest_rounding() -> str:
    """Digest numpy's results for fixed numbers, which depend on the processor; see `environment`."""
    drawn = np.random.default_rng(0).standard_normal((2, 300, 300), np.float32)
    results = (drawn[0] @ drawn[1], np.exp(drawn), np.tanh(drawn), drawn.sum(axis=1))
    return hashlib.blake2b(b"".join(result.tobytes() for result in results), digest_size=4).hexdigest()


def do_on_worker(sender: dict[str, str], folder: str, mark: str, packed: bytes) -> Any:
    """Run a job on a worker; refuse another fingerprint, or invisible folders."""
    own_fingerprint, host = fingerprint(), socket.gethostname()
    different = [
        f"{name} {own_fingerprint[name]} instead of {sender[name]}"
        for name in sender
        if own_fingerprint[name] != sender[name]
    ]
    if different:
        raise InputError(
            f"{host}: this worker has {', '.join(different)}; install the same there, and restart it (docs/scale.md "
            "says what helps if only the rounding differs)"
        )
    shared = Path(mark).parent
    # It is listed, because NFS may remember that the mark wasn't there.
    if not Path(folder).is_dir() or not shared.is_dir() or Path(mark) not in shared.iterdir():
        raise InputError(
            f"{host}: this worker doesn't see {folder if shared.is_dir() else shared} as it is here; put inputs and "
            "outputs on a disk that all machines share, at the same path"
        )
    with ONE_AT_A_TIME:
        os.chdir(folder)
        compute_alone()
        function, job = pickle.loads(packed)  # noqa: S301  of the user's own process
        return function(job)

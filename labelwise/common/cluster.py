"""Jobs on a Dask cluster: its workers are checked before they do anything, and what goes wrong there is named.

A job lies in a file of a folder that all see, and its number is all that travels. Ray was tried as well (2.60, November
2026, two workers on one machine, the same bytes): it has no Executor of its own, its packages take 247 MB against
34 MB, its processes 650 MB against 295 MB, it listens on all of the machine's addresses, and leaves files behind.
"""

import logging
import os
import pickle
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import dask
from distributed import Client, KilledWorker, LocalCluster, get_worker

from labelwise.common.engine import LOOK, SideBySide
from labelwise.common.errors import InputError
from labelwise.common.facts import Facts, answer, difference, own_facts
from labelwise.common.outputs import workspace

REACH = 10  # seconds to reach a scheduler
TELL = 10  # seconds from one line to the next that says that there is no worker
SHARED = 60  # seconds until a worker must see a new file: NFS remembers folders for as long, by default
CLOSE = 2  # seconds for the scheduler to be told that we leave
log = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What a job gave: a result or an error, and the worker's host and address."""

    host: str
    address: str
    result: Any = None
    error: Exception | None = None


def do_job(folder: Path, function: int, number: int, facts: Facts) -> Outcome:
    """Do a job, on a worker, unless that has other code than who sent it; first it notes that it has begun."""
    address = get_worker().address
    done = Outcome(f"{socket.gethostname()} ({address})", address)
    try:
        check_equal(done.host, difference(facts))
        job = pickle.loads((folder / str(number)).read_bytes())  # noqa: S301  of this program's own making
        with _begun(folder, number).open("a", encoding="utf8") as begun:
            begun.write(f"{address} on {socket.gethostname()}\n")
        return done._replace(result=_held(folder / str(function))(job))
    except Exception as error:
        return done._replace(error=error)


@lru_cache(maxsize=1)
def _held(file: Path) -> Callable[[Any], Any]:
    """Load what is done with jobs, which may hold a lot, once."""
    function: Callable[[Any], Any] = pickle.loads(file.read_bytes())  # noqa: S301  of this program's own making
    return function


def _begun(folder: Path, number: int) -> Path:
    return folder / f"{number}.begun"


def check_equal(host: str, difference: str) -> None:
    """Check that a worker doesn't differ from who sends it jobs.

    RAISES (InputError): it does.
    """
    if difference:
        raise InputError(f"{host}: this worker can't do the work: {difference}; install the same there, and restart it")


class Sent(NamedTuple):
    """A job that is in flight: its number, its name, and the host on which it failed before, if it did."""

    number: int
    name: str
    failed: str = ""


class Cluster(SideBySide):
    """Does jobs on the workers of a Dask cluster."""

    def __init__(self, client: Client, name: str, folder: Path) -> None:
        """Wait for the first worker, and check all that there are.

        name (str): what messages call the cluster.
        folder (Path): an empty folder, for jobs, which all workers see.
        """
        self.client, self.name, self.folder = client, name, folder
        self._executor = client.get_executor(pure=False)  # equal jobs mustn't be run as one: they write files
        self._patience = read_patience()
        self._checked: set[str] = set()
        self._sent: dict[Future[Any], Sent] = {}
        self._files = 0
        self._function: tuple[Any, int] = None, 0
        self._workers: dict[str, Any] = {}
        self._looked = float("-inf")
        self._last = self._told = time.monotonic()  # when there was a worker, or a line about that
        self._mark = folder / secrets.token_hex(8)
        self._mark.touch()
        while not self.slots():
            time.sleep(LOOK)

    def slots(self) -> int:
        """Count the workers; at most once a second they are looked for, and new ones are checked.

        RAISES (InputError): the scheduler is lost, there has been no worker for too long, one can't do the work, or a
            job has killed two.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK:
            before, self._workers = self._workers, self._find_workers()
            self._check_new()
            if before.keys() - self._workers.keys():
                self._check_killed()
            self._check_patience(now)
            self._looked = time.monotonic()
        return len(self._workers)

    def _find_workers(self) -> dict[str, Any]:
        try:
            if self.client.status == "running":
                return dict(self.client.scheduler_info()["workers"])
        except OSError as error:
            raise self._lost() from error
        raise self._lost()

    def _check_new(self) -> None:
        """Check workers that are new: they have the same code, do one job at a time, and see the same folder."""
        end = time.monotonic() + SHARED
        while new := [address for address in self._workers if address not in self._checked]:
            for address, said in self.client.run(
                answer, own_facts(), self._mark, workers=new, on_error="return"
            ).items():
                if isinstance(said, OSError):  # it has gone; if it hasn't, it is asked again
                    del self._workers[address]
                    continue
                if isinstance(said, Exception):
                    check_equal(address, f"its labelwise can't answer: {type(said).__name__}: {said}")
                host = f"{said.host} ({address})"
                check_equal(host, said.difference)
                if self._workers[address]["nthreads"] > 1:
                    raise InputError(f"{host}: this worker has several threads; start it with --nthreads 1")
                if said.sees:
                    self._checked.add(address)
                elif time.monotonic() > end:
                    raise InputError(
                        f"{host}: this worker doesn't see {self.folder}; put inputs and outputs on a disk that all of "
                        "them share, at the same path"
                    )
            if not self._workers.keys() <= self._checked:
                time.sleep(LOOK)

    def _check_killed(self) -> None:
        """Check that no job was begun on two workers that are gone: it would take all of them with it."""
        for sent in (sent for future, sent in self._sent.items() if not future.done()):
            begun = _begun(self.folder, sent.number)
            lines = begun.read_text(encoding="utf8").splitlines() if begun.exists() else []
            gone = [line for line in lines if line.partition(" ")[0] not in self._workers]
            if len(gone) > 1:
                raise InputError(
                    f"{sent.name}: workers were killed while they had it, perhaps for lack of memory: {', '.join(gone)}"
                )

    def _check_patience(self, now: float) -> None:
        """Say that there is no worker, every now and then, as long as one is waited for."""
        if self._workers:
            self._last = self._told = now
        elif now - self._last >= self._patience:
            raise InputError(
                f"{self.name}: there has been no worker for {self._patience:g} seconds; start some, or wait longer: "
                "LABELWISE_WAIT=600"
            )
        elif now - self._told >= TELL:
            self._told = now
            log.warning(
                "%s: no worker for %.0f of %g seconds (LABELWISE_WAIT)", self.name, now - self._last, self._patience
            )

    def submit(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        """Begin a job; what is done with jobs is written once."""
        if self._function[0] is not function:
            self._function = function, self._write(function)
        return self._send(Sent(self._write(job), str(job)))

    def _write(self, content: Any) -> int:
        self._files += 1
        (self.folder / str(self._files)).write_bytes(pickle.dumps(content))
        return self._files

    def _send(self, sent: Sent, **where: Any) -> Future[Any]:
        given = self.folder, self._function[1], sent.number, own_facts()
        future: Future[Any] = self._executor.submit(do_job, *given, **where)
        self._sent[future] = sent
        return future

    def result(self, future: Future[Any]) -> Any:
        """Take what a job gave; one that fails is tried once elsewhere."""
        sent = self._sent.pop(future)
        try:
            outcome: Outcome = future.result()
        except KilledWorker as error:
            raise InputError(
                f"{sent.name}: workers were killed while they had it, perhaps for lack of memory, at last "
                f"{error.last_worker.address}"
            ) from error
        except (CancelledError, OSError) as error:
            raise self._lost() from error
        if isinstance(outcome.error, (OSError, MemoryError)):
            others = [address for address in self._workers if address != outcome.address]
            if others and not sent.failed:
                return self._send(sent._replace(failed=f"{outcome.host} and "), workers=others)
            raise InputError(f"{sent.failed}{outcome.host}: {sent.name}: {outcome.error}") from outcome.error
        if outcome.error:
            raise outcome.error
        for file in (self.folder / str(sent.number), _begun(self.folder, sent.number)):
            file.unlink()
        return outcome.result

    def _lost(self) -> InputError:
        return InputError(f"{self.name}: the scheduler is lost; start it, and run this again: what is done is kept")


def read_patience() -> float:
    """Read for how many seconds it is waited for a worker.

    RAISES (InputError): that isn't a number.
    """
    patience = os.environ.get("LABELWISE_WAIT", "60")
    try:
        return float(patience)
    except ValueError as error:
        raise InputError(f"LABELWISE_WAIT={patience}: give a number of seconds") from error


@contextmanager
def open_cluster(workers: int, address: str, beside: Path) -> Iterator[Cluster]:
    """Open a cluster; see `engines.open_engine`."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is raised here as well
    with ExitStack() as stack:
        folder = stack.enter_context(workspace(beside.with_name(f"{beside.name}.jobs")))
        folder.mkdir()
        cluster = address or stack.enter_context(_local_cluster(workers))
        try:
            client = Client(cluster, timeout=REACH, set_as_default=False)
        except OSError as error:
            raise InputError(f"--address {address}: no dask scheduler answers there: {error}") from error
        # The scheduler forgets the jobs of a client that leaves.
        stack.callback(client.close, timeout=CLOSE)
        yield Cluster(client, f"--address {address}" if address else "--engine dask", folder)


@contextmanager
def _local_cluster(workers: int) -> Iterator[LocalCluster]:
    with (
        TemporaryDirectory(prefix="labelwise-dask-") as folder,
        dask.config.set({"temporary-directory": folder}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None takes port 8787, and warns where that isn't free
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster

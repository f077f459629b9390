"""Jobs beside each other: their order, their window, their failures; and a real cluster, whose workers are checked."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import pairwise, repeat
from pathlib import Path
from threading import Event

import pytest
from distributed import LocalCluster

from labelwise.errors import InputError
from labelwise.parallel import WINDOW, map_in_order, measure_peak, open_workers
from tests.conftest import ROOT

MB = 2**20


class AtOnce(Executor):
    """Does each job when it is sent, but those after one that fails."""

    def __init__(self):
        self.futures = []

    def submit(self, function, job):
        self.futures.append(future := Future())
        if not any(other.done() and other.exception() for other in self.futures):
            try:
                future.set_result(function(job))
            except ArithmeticError as error:
                future.set_exception(error)
        return future


def test_results_are_in_order_and_the_window_follows_the_workers():
    made, workers = [], 2

    def jobs():
        for number in range(300):
            made.append(number)
            yield number

    results = map_in_order(AtOnce(), lambda: workers, lambda number: number * 2, jobs())
    assert next(results) == 0
    assert len(made) == WINDOW * 2, "jobs are made when there is room for them"
    workers = 5
    assert next(results) == 2
    assert len(made) == WINDOW * 5 + 1
    workers = 0  # all have gone, and will be replaced
    assert list(results) == [number * 2 for number in range(2, 300)]


def test_jobs_that_end_out_of_order_are_yielded_in_order():
    second = Event()

    def do(job):
        if job == 0:
            assert second.wait(10), "a slow job stops no other"
        second.set()
        return job

    with ThreadPoolExecutor(2) as executor:
        assert list(map_in_order(executor, lambda: 2, do, range(9))) == [*range(9)]


def test_what_waits_is_cancelled_when_a_job_fails():
    executor = AtOnce()
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(executor, lambda: 1, lambda number: 1 // number, [1, 0, 1, 1]))
    assert [future.cancelled() for future in executor.futures] == [False, False, True, True]


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error_that_says_so(tmp_path):
    with pytest.raises(InputError, match="a worker was killed"), open_workers(2, "", tmp_path / "out") as map_jobs:
        list(map_jobs(kill_itself, range(9)))


def test_a_scheduler_that_does_not_answer_is_named(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with (
        pytest.raises(InputError, match=f"--address {address}: no Dask scheduler answers there"),
        open_workers(1, address, tmp_path / "out"),
    ):
        pass


# A real cluster.


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as started:
        yield started


@pytest.mark.long
def test_jobs_are_done_by_the_workers_one_at_a_time_in_each(cluster, tmp_path):
    with open_workers(1, cluster.scheduler_address, tmp_path / "out") as map_jobs:
        spans = list(map_jobs(span_of, range(8)))
    assert {pid for pid, _, _ in spans} != {os.getpid()}
    ordered = sorted((begun, ended) for _, begun, ended in spans)
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(ordered))
    assert list(tmp_path.iterdir()) == []


def span_of(job: int) -> tuple[int, float, float]:
    begun = time.monotonic()
    time.sleep(0.05)
    return os.getpid(), begun, time.monotonic()


@pytest.mark.long
def test_a_killed_worker_of_a_cluster_is_an_error_that_names_the_job(cluster, tmp_path):
    with (
        pytest.raises(InputError, match=r"^7: a worker was killed"),
        open_workers(1, cluster.scheduler_address, tmp_path / "out") as map_jobs,
    ):
        list(map_jobs(kill_itself, [7]))


@pytest.mark.long
def test_a_worker_with_other_code_refuses_jobs_however_late_it_came(cluster, tmp_path):
    older = tmp_path / "older"
    shutil.copytree(ROOT / "labelwise", older / "labelwise")
    with (older / "labelwise/merge/rules/splits.py").open("a") as file:
        file.write("# edited\n")
    command = [Path(sys.executable).with_name("dask"), "worker", cluster.scheduler_address, "--no-dashboard"]
    with open_workers(1, cluster.scheduler_address, tmp_path / "out") as map_jobs:
        results = map_jobs(time.sleep, repeat(0.05, 2000))
        next(results)
        worker = subprocess.Popen(command, cwd=older, env={**os.environ, "PYTHONPATH": str(older)})
        try:
            refused = r"this worker has labelwise \w+ instead of \w+; install the same there, and restart it"
            with pytest.raises(InputError, match=refused):
                deque(results)
        finally:
            worker.terminate()
            worker.wait()


def test_the_peak_is_that_of_the_whole_tree():
    code = "import time; x = bytearray(b'x') * (200 * 2**20); print(flush=True); time.sleep(60)"
    with measure_peak() as peak:
        before = peak.bytes
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        deadline = time.monotonic() + 20
        while peak.bytes < before + 200 * MB and time.monotonic() < deadline:
            time.sleep(0.05)
        child.kill()
        child.communicate()
    assert 200 * MB <= peak.bytes - before < 300 * MB

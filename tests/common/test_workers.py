"""Where work is done: order, back-pressure, failures, a cluster."""

import errno
import os
import signal
from concurrent.futures import Executor, Future

import pytest

from labelwise.common.errors import InputError
from labelwise.common.workers import open_executor, run_in_order
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_datasets
from labelwise.sources.declarations import load_datasets
from tests.merge.test_run import random_datasets


class Late(Executor):
    """Does a job when its result is asked for, and notes how many wait."""

    def __init__(self):
        self.waiting = self.most = 0
        self.cancelled = 0

    def submit(self, function, *args):
        executor = self

        class Waiting(Future):
            def result(self):
                executor.waiting -= 1
                return function(*args)

            def cancel(self):
                executor.cancelled += 1

        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return Waiting()


def test_results_are_in_order_and_few_jobs_wait():
    asked = []

    def jobs():
        for number in range(50):
            asked.append(number)
            yield number

    executor = Late()
    results = run_in_order(executor, lambda number: number * 2, jobs(), ahead=3)
    assert next(results) == (0, 0)
    assert len(asked) == 4, "jobs are made when there is room for them"
    assert list(results) == [(number, number * 2) for number in range(1, 50)]
    assert executor.most == 4


def test_what_waits_is_cancelled_when_one_fails():
    executor = Late()
    with pytest.raises(ZeroDivisionError):
        list(run_in_order(executor, lambda number: 1 // number, [1, 0, 1, 1, 1], ahead=2))
    assert executor.cancelled == executor.waiting == 2


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error_that_says_so():
    with open_executor("processes", 2) as executor, pytest.raises(InputError, match="a worker was killed"):
        list(run_in_order(executor, kill_itself, range(9), ahead=4))


def test_one_worker_is_this_process():
    with open_executor("processes", 1) as executor:
        assert list(run_in_order(executor, lambda _: os.getpid(), [0], ahead=1)) == [(0, os.getpid())]


def test_an_address_is_a_clusters():
    with pytest.raises(InputError, match="add --engine dask"), open_executor("processes", 2, "tcp://box:8786"):
        pass


@pytest.mark.slow
@pytest.mark.long
def test_a_cluster_gives_the_same_bytes_and_the_same_errors(merging):
    random_datasets(merging, 1)
    merging.run("alone", docs_per_partition=7)
    datasets = load_datasets([merging.root / "tasks" / "datasets.yml"])
    with open_executor("dask", 2) as executor:
        pids = {pid for _, pid in run_in_order(executor, lambda _: os.getpid(), range(20), ahead=20)}
        merge_datasets(datasets, merging.root / "cluster", Settings(docs_per_partition=7), executor=executor)
        with pytest.raises(InputError, match=r"rows or spans can't be used, the first in"):
            merge_datasets(datasets, merging.root / "strict", Settings(), executor=executor, strict=True)
        datasets[0].files[0].unlink()
        with pytest.raises(FileNotFoundError, match=r"a\.jsonl"):
            merge_datasets(datasets, merging.root / "gone", Settings(), executor=executor)
    assert len(pids - {os.getpid()}) == 2
    assert merging.files("alone") == merging.files("cluster")


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    no_scheduler = pytest.raises(InputError, match=r"--address tcp://127\.0\.0\.1:9: no dask scheduler")
    with no_scheduler, open_executor("dask", 2, "tcp://127.0.0.1:9"):
        pass


def test_without_shared_memory_it_is_said_what_is_missing(monkeypatch):
    """As where /dev/shm isn't mounted."""

    def fail(*given):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr("multiprocessing.synchronize._multiprocessing.SemLock", fail)
    missing = r"--workers 2: .*shared memory, and /dev/shm .*: No such file.*; mount it .*, or give --workers 1"
    with pytest.raises(InputError, match=missing), open_executor("processes", 2):
        pass
    with open_executor("processes", 1) as executor:
        assert executor is None

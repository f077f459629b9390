"""Where work is done: order, back-pressure, failures."""

import errno
import multiprocessing
import os
import signal
import time
from concurrent.futures import Future

import pytest

from labelwise.common.engine import SideBySide
from labelwise.common.engines import open_engine
from labelwise.common.errors import InputError


class Late(SideBySide):
    """Does a job when its result is asked for, and notes how many wait."""

    def __init__(self, slots):
        self.now = slots
        self.waiting = self.most = self.cancelled = 0

    def slots(self):
        return self.now

    def submit(self, function, job):
        engine = self

        class Waiting(Future):
            def result(self, timeout=None):
                engine.waiting -= 1
                return function(job)

            def cancel(self):
                engine.cancelled += 1

        self.waiting += 1
        self.most = max(self.most, self.waiting)
        future = Waiting()
        future.set_result(None)
        return future

    def result(self, future):
        return future.result()


def test_results_are_in_order_and_few_jobs_wait():
    asked = []

    def jobs():
        for number in range(50):
            asked.append(number)
            yield number

    engine = Late(slots=2)
    results = engine.map(lambda number: number * 2, jobs())
    assert next(results) == (0, 0)
    assert len(asked) == 4, "jobs are made when there is room for them"
    engine.now = 5
    assert next(results) == (1, 2)
    assert engine.most == 10, "what is in flight follows from the slots"
    engine.now = 0
    assert list(results) == [(number, number * 2) for number in range(2, 50)]


def test_what_waits_is_cancelled_when_one_fails():
    engine = Late(slots=1)
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda number: 1 // number, [1, 0, 1, 1, 1]))
    assert engine.cancelled == 2


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail_or_sleep(job: int) -> None:
    if job == 0:
        raise InputError("no")
    time.sleep(60)


def test_a_killed_worker_is_an_error_that_says_so(tmp_path):
    with (
        pytest.raises(InputError, match="a worker was killed"),
        open_engine("processes", 2, "", tmp_path / "out") as engine,
    ):
        list(engine.map(kill_itself, range(9)))


def test_after_an_error_no_job_is_waited_for(tmp_path):
    before = time.monotonic()
    with pytest.raises(InputError, match="no"), open_engine("processes", 2, "", tmp_path / "out") as engine:
        list(engine.map(fail_or_sleep, range(3)))
    assert time.monotonic() - before < 20
    assert multiprocessing.active_children() == []


def test_one_worker_is_this_process(tmp_path):
    with open_engine("processes", 1, "", tmp_path / "out") as engine:
        assert list(engine.map(lambda _: os.getpid(), [0])) == [(0, os.getpid())]


def test_an_address_is_a_clusters(tmp_path):
    with (
        pytest.raises(InputError, match="add --engine dask"),
        open_engine("processes", 2, "tcp://box:8786", tmp_path / "out"),
    ):
        pass


def test_without_shared_memory_it_is_said_what_is_missing(tmp_path, monkeypatch):
    """As where /dev/shm isn't mounted."""

    def fail(*given):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr("multiprocessing.synchronize._multiprocessing.SemLock", fail)
    missing = r"--workers 2: .*shared memory, and /dev/shm .*: No such file.*; mount it .*, or give --workers 1"
    with pytest.raises(InputError, match=missing), open_engine("processes", 2, "", tmp_path / "out"):
        pass
    with open_engine("processes", 1, "", tmp_path / "out"):
        pass

"""Where work is done: order, back-pressure, failures."""

import errno
import multiprocessing
import os
import signal
import time
from concurrent.futures import Future

import pytest

from labelwise.common import engine as engine_module
from labelwise.common.engine import WINDOW, SideBySide
from labelwise.common.engines import open_engine
from labelwise.common.errors import InputError


class Stepwise(SideBySide):
    """Does a job each time that its slots are counted: the oldest; of slow ones, none before it is told to."""

    def __init__(self, slots, slow=()):
        self.now, self.slow = slots, set(slow)
        self.begun = []
        self.most = self.calls = 0

    def slots(self):
        self.calls += 1
        assert self.calls < 1000, "it waits for ever"
        doing = [(function, job, future) for function, job, future in self.begun if not future.done()]
        self.most = max(self.most, len(doing))
        for function, job, future in doing:
            if job not in self.slow:
                try:
                    future.set_result(function(job))
                except ArithmeticError as error:
                    future.set_exception(error)
                break
        return self.now

    def submit(self, function, job):
        self.begun.append((function, job, Future()))
        return self.begun[-1][-1]

    def result(self, future):
        return future.result()


@pytest.fixture
def stepwise(monkeypatch):
    monkeypatch.setattr(engine_module, "LOOK", 0)
    return Stepwise


def test_results_are_in_order_and_few_jobs_wait(stepwise):
    asked = []

    def jobs():
        for number in range(50):
            asked.append(number)
            yield number

    engine = stepwise(slots=2)
    results = engine.map(lambda number: number * 2, jobs())
    assert next(results) == 0
    assert (engine.most, len(asked)) == (4, 5), "jobs are made when there is room for them"
    engine.now = 5
    assert next(results) == 2
    engine.now = 0
    assert list(results) == [number * 2 for number in range(2, 50)]
    assert engine.most == 10, "what is in flight follows from the slots"


def test_a_slow_job_stops_no_other_until_many_results_wait(stepwise):
    engine = stepwise(slots=2, slow=[0])
    results = engine.map(lambda number: number * 2, range(60))

    def look(count=engine.slots):
        if engine.calls == WINDOW * 3:
            engine.slow.clear()
        return count()

    engine.slots = look
    assert next(results) == 0
    assert len(engine.begun) == WINDOW * 2, "what waits is bounded"
    assert list(results) == [number * 2 for number in range(1, 60)]
    assert engine.most == 4


def test_what_waits_is_cancelled_when_one_fails(stepwise):
    engine = stepwise(slots=1)
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda number: 1 // number, [1, 0, 1, 1, 1]))
    assert [future.cancelled() for *_, future in engine.begun] == [False, False, True, True]


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
        assert list(engine.map(lambda _: os.getpid(), [0])) == [os.getpid()]


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

"""Jobs beside each other: their order, their window, their failures; and the memory that they take."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from labelwise.errors import InputError
from labelwise.parallel import WINDOW, map_in_order, open_workers, tree_pss

MB = 2**20


def test_results_are_in_order_and_jobs_are_made_when_there_is_room_for_them():
    made = []

    def jobs():
        for number in range(300):
            made.append(number)
            yield number

    with ThreadPoolExecutor(2) as executor:
        results = map_in_order(executor, 2, lambda number: number * 2, jobs())
        assert next(results) == 0
        assert len(made) == WINDOW * 2
        assert next(results) == 2
        assert len(made) == WINDOW * 2 + 1
        assert list(results) == [number * 2 for number in range(2, 300)]


def test_jobs_that_end_out_of_order_are_yielded_in_order():
    second = Event()

    def do(job):
        if job == 0:
            assert second.wait(10), "a slow job stops no other"
        second.set()
        return job

    with ThreadPoolExecutor(2) as executor:
        assert list(map_in_order(executor, 2, do, range(9))) == [*range(9)]


def test_what_waits_is_cancelled_when_a_job_fails():
    begun, failed = [], Event()

    def do(job):
        begun.append(job)
        if job == 0:
            raise ArithmeticError
        failed.wait(10)

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ArithmeticError):
            list(map_in_order(executor, 1, do, [0, 1, 2, 3]))
        failed.set()
    assert begun in ([0], [0, 1]), "the second may have begun before the first one's error was seen"


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error_that_says_so():
    with pytest.raises(InputError, match="a worker was killed"), open_workers(2) as map_jobs:
        list(map_jobs(kill_itself, range(9)))


def test_memory_is_that_of_the_whole_tree():
    code = "x = bytearray(b'x') * (200 * 2**20); print(flush=True); input()"
    before = tree_pss(os.getpid())
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        grown = tree_pss(os.getpid()) - before
        child.kill()
    assert 200 * MB <= grown < 300 * MB

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from labelwise.base import parallel
from labelwise.base.errors import InputError
from labelwise.base.jobs import WINDOW, map_in_order
from labelwise.base.parallel import count_cores, open_workers, tree_memory
from tests.conftest import task

MB = 2**20


def test_results_are_in_order_and_jobs_are_made_when_there_is_room_for_them():
    started = []

    def jobs():
        for number in range(300):
            started.append(number)
            yield number

    with ThreadPoolExecutor(2) as executor:
        results = map_in_order(executor.submit, lambda: 2, lambda number: number * 2, jobs())
        assert next(results) == 0
        assert len(started) == WINDOW * 2
        assert next(results) == 2
        assert len(started) == WINDOW * 2 + 1
        assert list(results) == [number * 2 for number in range(2, 300)]


@pytest.mark.guarantee("same-bytes")
def test_jobs_that_end_out_of_order_are_yielded_in_order():
    second = Event()

    def do(job):
        if job == 0:
            assert second.wait(10), "a slow job stops no other"
        second.set()
        return job

    with ThreadPoolExecutor(2) as executor:
        assert list(map_in_order(executor.submit, lambda: 2, do, range(9))) == [*range(9)]


def test_what_waits_is_cancelled_when_a_job_fails():
    begun, failed = [], Event()

    def do(job):
        begun.append(job)
        if job == 0:
            raise ArithmeticError
        failed.wait(10)

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ArithmeticError):
            list(map_in_order(executor.submit, lambda: 1, do, [0, 1, 2, 3]))
        failed.set()
    assert begun in ([0], [0, 1]), "the second may have begun before the first one's error was seen"


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        (None, {}, 8),
        ("0::/", {}, 8),
        ("0::/a/b", {"a/b/cpu.max": "max 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "250000 100000", "a/cpu.max": "600000 100000"}, 3),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "20000 100000"}, 1),
        ("0::/a", {"a/cpu.max": "1600000 100000"}, 8),
        ("4:memory:/m\n3:cpuacct,cpu:/c", {"cpu/c/cpu.cfs_quota_us": "-1", "cpu/c/cpu.cfs_period_us": "9"}, 8),
        # in a container, the path is that on the host
        ("3:cpu:/docker/1f", {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2),
    ],
)
def test_cores_are_those_that_the_process_may_use(tmp_path, monkeypatch, groups, files, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8))
    for name, content in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{key}": files[key] for key in files}}.items():
        if content:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{content}\n")
    assert count_cores(tmp_path) == cores


def test_on_one_core_a_merge_has_no_other_process(merging):
    merging.add("a", ["A"], [task("one cat")])
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(parallel, "ProcessPoolExecutor")
            assert merging.run(workers=0).rows == {"merged": 1}
    finally:
        os.sched_setaffinity(0, allowed)


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error_that_says_so():
    with pytest.raises(InputError, match="a worker was killed"), open_workers(2, None) as map_jobs:
        list(map_jobs(kill_itself, range(9)))


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        (SimpleNamespace(pss=1, uss=2, rss=3), (2, "PSS")),
        (SimpleNamespace(uss=2, rss=3), (4, "USS")),
        (psutil.AccessDenied(), (6, "RSS")),
    ],
)
def test_where_there_is_no_pss_memory_is_uss_or_rss_and_says_so(monkeypatch, full, expected):
    process = Mock(memory_info=Mock(return_value=SimpleNamespace(rss=3)))
    process.memory_full_info.side_effect = [full, full]
    process.children.return_value = [process]
    monkeypatch.setattr(psutil, "Process", Mock(return_value=process))
    assert tree_memory(1) == expected


def test_memory_is_that_of_the_whole_tree():
    code = "x = bytearray(b'x') * (200 * 2**20); print(flush=True); input()"
    before = tree_memory(os.getpid())[0]
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        grown = tree_memory(os.getpid())[0] - before
        child.kill()
    assert 200 * MB <= grown < 300 * MB

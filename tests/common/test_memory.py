"""Memory: sizes, and what is measured."""

import subprocess
import sys
import time

import pytest

from labelwise.common import memory
from labelwise.common.errors import InputError
from labelwise.common.memory import measure_peak, parse_size, plan_workers

MB = 2**20


@pytest.mark.parametrize(
    ("size", "number"),
    [("256MB", 256 * MB), ("1.5 GB", 1536 * MB), ("2g", 2**31), ("300 MiB", 300 * MB), ("8KB", 8192)],
)
def test_sizes(size, number):
    assert parse_size(size) == number


@pytest.mark.parametrize("size", ["", "much", "400", "-5MB", "5 TB", "1,5GB"])
def test_what_is_no_size(size):
    with pytest.raises(InputError, match="write a size such as 400MB"):
        parse_size(size)


@pytest.mark.parametrize(("more", "most", "workers"), [(60, 8, 1), (149, 8, 1), (150, 8, 2), (375, 8, 5), (375, 2, 2)])
def test_workers_are_as_many_as_fit(more, most, workers, monkeypatch):
    monkeypatch.setattr(memory, "tree_pss", lambda pid: 100 * MB)
    assert plan_workers(f"{100 + more}MB", most, 60 * MB, 75 * MB) == workers


def test_the_least_is_named(monkeypatch):
    monkeypatch.setattr(memory, "tree_pss", lambda pid: 100 * MB)
    with pytest.raises(InputError, match="memory 50MB: the least possible is 160MB"):
        plan_workers("50MB", 2, 60 * MB, 75 * MB)


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

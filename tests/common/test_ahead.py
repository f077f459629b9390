"""What another process makes ahead."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelwise.common.ahead import made_ahead
from labelwise.common.errors import InputError


def numbers(until: int, folder: Path, failure: Exception | None = None) -> Iterator[int]:
    """Count, and leave a file for each; it shows who did."""
    (folder / "pid").write_text(f"{os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES')!r}")
    for number in range(until):
        (folder / f"{number}").touch()
        yield number
    if failure:
        raise failure


def test_all_comes_in_its_order_from_a_process_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with made_ahead(numbers, 100, tmp_path) as items:
        assert list(items) == list(range(100))
    pid, devices = (tmp_path / "pid").read_text().split()
    assert int(pid) != os.getpid()
    assert (devices, os.environ["CUDA_VISIBLE_DEVICES"]) == ("''", "3")


def test_it_waits_until_what_is_ready_is_taken(tmp_path):
    with made_ahead(numbers, 100, tmp_path, most=2) as items:
        assert next(items) == 0
        time.sleep(1)
        assert len(list(tmp_path.iterdir())) <= 1 + 5
        pid = int((tmp_path / "pid").read_text().split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (InputError("a.spacy: damaged"), InputError, "^a.spacy: damaged$"),
        (ValueError("oh"), RuntimeError, "in the process that prepares batches:\n(?s:.*)ValueError: oh"),
    ],
)
def test_what_goes_wrong_there_goes_wrong_here(tmp_path, failure, kind, said):
    with made_ahead(numbers, 2, tmp_path, failure) as items:
        assert [next(items), next(items)] == [0, 1]
        with pytest.raises(kind, match=said):
            next(items)


def test_a_process_that_is_killed_is_named(tmp_path):
    with made_ahead(numbers, 10_000, tmp_path, most=1) as items:
        next(items)
        os.kill(int((tmp_path / "pid").read_text().split()[0]), signal.SIGKILL)
        with pytest.raises(InputError, match="prepares batches was killed, perhaps for lack of memory"):
            list(items)


class Ending:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> tuple:
        return os._exit, (1,)


def test_a_process_that_ends_before_it_has_read_what_it_is_given_is_not_waited_for():
    with (
        made_ahead(numbers, Ending(), b"more than a pipe holds" * 10**5) as items,
        pytest.raises(InputError, match="was killed"),
    ):
        next(items)

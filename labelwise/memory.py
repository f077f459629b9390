"""The memory that processes take, as the proportional set size: pages that several share are counted once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psutil

from labelwise.errors import InputError

INTERVAL = 0.2  # seconds between two looks
# Bytes that a merge takes beyond what this process has when it begins: by itself, and for each worker. Measured by
# `make bench`, and a tenth more.
ALONE, PER_WORKER = 60 * 2**20, 75 * 2**20
UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def tree_pss(pid: int) -> int:
    """Sum the proportional set sizes of a process and all below it, in bytes; 0 for those that have ended."""
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def parse_size(size: str) -> int:
    """Read a number of bytes such as 256MB or 1.5 GB; a unit is 1024 times the one before.

    RAISES (InputError): it isn't one.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG])I?B?\s*", size.upper())
    if not match:
        raise InputError(f"--memory {size!r}: write a size such as 400MB or 1.5GB")
    return int(float(match[1]) * UNITS[match[2] + "B"])


def plan_workers(budget: int, most: int) -> int:
    """Choose how many workers, `most` at most, a merge can have within so many bytes; 1 is this process alone.

    RAISES (InputError): not even that fits.
    """
    now = tree_pss(psutil.Process().pid)
    if now + ALONE > budget:
        least = (now + ALONE) / 2**20
        raise InputError(f"--memory {budget / 2**20:.0f}MB: the least possible is {least:.0f}MB")
    return max(1, min(most, (budget - now) // PER_WORKER))


class Peak:
    """The most memory that was seen, in bytes."""

    bytes = 0

    def look(self) -> None:
        """Look at this process and all below it."""
        self.bytes = max(self.bytes, tree_pss(psutil.Process().pid))


@contextmanager
def measure_peak() -> Iterator[Peak]:
    """Look at the memory of this process and all below it, again and again while the block runs.

    YIELDS (Peak): its `bytes` are final when the block has ended.
    """
    peak = Peak()
    ended = Event()

    def look() -> None:
        while not ended.wait(INTERVAL):
            peak.look()

    thread = Thread(target=look, daemon=True)
    peak.look()
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()

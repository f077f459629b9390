"""The memory that processes use, as the proportional set size: pages that several share are counted once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psutil

from labelwise.common.errors import InputError

INTERVAL = 0.2  # seconds between two samples
UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def tree_pss(pid: int) -> int:
    """Sum the proportional set sizes of a process and its descendants, in bytes; 0 for those that have ended."""
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
    """Parse a size such as 256MB or 1.5 GB into bytes; each unit is 1024 times the one before.

    RAISES (InputError): it isn't a size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG])I?B?\s*", size.upper())
    if not match:
        raise InputError(f"--memory {size!r}: write a size such as 400MB or 1.5GB")
    return int(float(match[1]) * UNITS[match[2] + "B"])


class Peak:
    """The most memory that was seen, in bytes."""

    bytes = 0

    def look(self) -> None:
        """Take a sample of this process and its descendants."""
        self.bytes = max(self.bytes, tree_pss(psutil.Process().pid))


@contextmanager
def measure_peak() -> Iterator[Peak]:
    """Sample the memory of this process and its descendants while the block runs.

    YIELDS (Peak): its `bytes` are final when the block has ended.
    """
    peak = Peak()
    ended = Event()

    def look() -> None:
        """Look again and again, until all is done."""
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

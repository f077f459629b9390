"""The memory that processes use, as the proportional set size: pages that several share are counted once.

And how to keep it from growing: glibc's malloc gives memory back to the system only from the end of its heap. Where
blocks of many sizes come and go, as the tensors of a transformer do with texts of many lengths, freed ones lie between
others, too small for the next, and the heap grows by steps: in training MiniLM on the CPU to three times and more of
what is in use. `malloc_trim` gives back all free pages, wherever they are.
"""

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psutil

from labelwise.common.errors import InputError

INTERVAL = 0.2  # seconds between two samples
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it


def give_back() -> None:
    """Give freed memory back to the system, wherever it lies, if the C library can."""
    if TRIM:
        TRIM(0)


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
        raise InputError(f"memory {size!r}: write a size such as 400MB or 1.5GB")
    return int(float(match[1]) * 2 ** (10 * " KMG".index(match[2])))


def check_workers(workers: int, gpu_id: int) -> None:
    """Check a number of processes that predict or train.

    RAISES (InputError): it is less than 1, or more on a GPU.
    """
    if workers < 1 or (workers > 1 and gpu_id >= 0):
        raise InputError(f"--workers {workers}: give 1 or more, and 1 on a GPU, which processes would contend for")


def plan_workers(memory: str, most: int, alone: int, each: int) -> int:
    """Choose how many workers, at most `most`, some work can have; 1 is this process alone.

    memory (str): that all processes may take, such as "256MB"; empty for no limit.
    alone, each (int): bytes that the work takes beyond what this process has now: by itself, and for each worker.
    RAISES (InputError): not even that of this process alone fits.
    """
    if not memory:
        return most
    budget = parse_size(memory)
    now = tree_pss(os.getpid())
    if now + alone > budget:
        least = (now + alone) / 2**20
        raise InputError(f"memory {budget / 2**20:.0f}MB: the least possible is {least:.0f}MB")
    return max(1, min(most, (budget - now) // each))


class Peak:
    """The most memory that was seen, in bytes."""

    bytes = 0


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
            peak.bytes = max(peak.bytes, tree_pss(os.getpid()))

    thread = Thread(target=look, daemon=True)
    peak.bytes = tree_pss(os.getpid())
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()

"""Run a command and measure it from outside: wall time, and the memory of its whole process tree."""

import subprocess
import sys
import time
from typing import NamedTuple

from labelwise.common.memory import tree_pss

INTERVAL = 0.1  # seconds between two samples


class Measured(NamedTuple):
    """What a command took; memory is the proportional set size, in bytes: shared pages are counted once.

    samples (list): seconds from the start, and the memory then.
    """

    seconds: float
    peak_pss: int
    samples: list[tuple[float, int]] = []


def measure(*arguments: str) -> Measured:
    """Run `python -m arguments`, its output going where ours goes.

    RAISES (subprocess.CalledProcessError): it failed.
    """
    command = [sys.executable, "-m", *arguments]
    samples = []
    start = time.perf_counter()
    process = subprocess.Popen(command)
    while process.poll() is None:
        samples.append((time.perf_counter() - start, tree_pss(process.pid)))
        time.sleep(INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(seconds, max(pss for _, pss in samples), samples)

"""Run a command and measure it from outside: wall time, and the peak memory of its whole process tree."""

import subprocess
import sys
import time
from typing import NamedTuple

from labelwise.memory import tree_pss

INTERVAL = 0.1  # seconds between two looks


class Measured(NamedTuple):
    """What a command took; memory is the proportional set size, in bytes: shared pages are counted once."""

    seconds: float
    peak_pss: int


def measure(*arguments: str) -> Measured:
    """Run `python -m arguments`, its output going where ours goes.

    RAISES (subprocess.CalledProcessError): it failed.
    """
    command = [sys.executable, "-m", *arguments]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_pss(process.pid))
        time.sleep(INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(seconds, peak)

"""Processes that work for another one: they end with it, and no interrupt reaches them."""

import ctypes
import signal
import sys
from multiprocessing.process import BaseProcess


def begin_worker() -> None:
    """Have the system end this process when the one that made it is killed; only Linux can do that (prctl(2)).

    The one that made it is who decides what follows from signals: an interrupt reaches all processes of a terminal.
    PyTorch's threads aren't forked, and it would wait for them forever: a worker computes in a single thread.
    """
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def start_uninterrupted(process: BaseProcess) -> None:
    """Start a process that an interrupt doesn't reach, as it does all of a terminal: whoever started it ends it."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, handler)

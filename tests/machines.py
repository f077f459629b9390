"""A Dask cluster for tests: a scheduler, and workers, as processes of this machine."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT

BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Machines:
    """A scheduler, and workers beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.started: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", port, "--dashboard-address", ":0")
        wait_until(lambda: "Scheduler at" in self.printed(self.scheduler))

    def start(self, *command: str, cwd: Path = ROOT, **environment: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{len(self.started)}.log").open("wb")
        process = subprocess.Popen(
            [BIN / "dask", *command],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(cwd), **environment},
            stdout=log,
            stderr=log,
        )
        self.started.append(process)
        return process

    def printed(self, process: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"{self.started.index(process)}.log").read_text()

    def worker(self, *options: str, code: Path = ROOT) -> subprocess.Popen[bytes]:
        given = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder), *options)
        worker = self.start("worker", self.address, *given, cwd=code)
        wait_until(lambda: "Registered to" in self.printed(worker))
        return worker

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)

"""A cluster: a real scheduler, and workers as processes of this machine; what goes wrong is named, and in time."""

import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from labelwise.common import cluster
from labelwise.common.engine import AHEAD, LOOK
from labelwise.common.engines import open_engine
from labelwise.common.errors import InputError
from tests.conftest import ROOT, write_jsonl
from tests.machines import Machines, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def machines(tmp_path) -> Iterator[Machines]:
    (tmp_path / "logs").mkdir()
    started = Machines(tmp_path / "logs")
    yield started
    started.close()


def run(machines: Machines, folder: Path, function: Callable, jobs: Iterable, events: Mapping = {}) -> list:
    """Do jobs on a cluster; after some of them, by number, something happens."""
    results = []
    with open_engine("dask", 1, machines.address, folder / "out") as engine:
        for number, result in enumerate(engine.map(function, jobs)):
            results.append(result)
            if number in events:
                events[number]()
    return results


def pid_of(job: int) -> int:
    return os.getpid()


def sleep(job: object) -> object:
    time.sleep(0.5)
    return job


def read(file: Path) -> str:
    return file.read_text()


def die(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(job: int) -> None:
    raise InputError("not this one")


def older_code(folder: Path, edited: str = "merge/rules/splits.py") -> Path:
    shutil.copytree(ROOT / "labelwise", folder / "older" / "labelwise")
    with (folder / "older" / "labelwise" / edited).open("a") as file:
        file.write("# edited\n")
    return folder / "older"


HOST = rf"{socket.gethostname()} \(tcp://127\S+\)"


@pytest.mark.long
def test_jobs_are_numbers_and_as_many_in_flight_as_slots_ask_for(machines, tmp_path, monkeypatch):
    machines.worker()
    sizes = []
    with open_engine("dask", 1, machines.address, tmp_path / "out") as engine:
        submit = engine._executor.submit

        def measured(*given, **where):
            sizes.append(len(pickle.dumps(given)))
            return submit(*given, **where)

        monkeypatch.setattr(engine._executor, "submit", measured)
        results = engine.map(sleep, ["a long job " * 1000] * 40)
        next(results)
        assert sum(not future.done() for future in engine._sent) == AHEAD * 1
        machines.worker()
        time.sleep(LOOK)
        next(results), next(results)
        assert sum(not future.done() for future in engine._sent) == AHEAD * 2
        results.close()
    assert max(sizes) < 400
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.long
def test_other_code_on_a_worker_is_refused_before_any_work(machines, tmp_path):
    machines.worker()
    machines.worker(code=older_code(tmp_path))
    with pytest.raises(InputError, match=rf"^{HOST}: this worker .*: its labelwise is another \(\w+, not"):
        run(machines, tmp_path, read, [tmp_path / "never"])


@pytest.mark.long
def test_a_worker_without_this_code_is_named(machines, tmp_path):
    (tmp_path / "older" / "labelwise").mkdir(parents=True)
    (tmp_path / "older" / "labelwise" / "__init__.py").touch()
    machines.worker(code=tmp_path / "older")
    with pytest.raises(InputError, match=r"^tcp://127\S+: .* its labelwise can't answer: .*No module named"):
        run(machines, tmp_path, read, [tmp_path / "never"])


@pytest.mark.long
def test_a_worker_that_joins_later_is_checked_too(machines, tmp_path):
    older = older_code(tmp_path)
    machines.worker()
    with pytest.raises(InputError, match=rf"^{HOST}.* its labelwise is another"):
        run(machines, tmp_path, sleep, range(100), {0: lambda: machines.worker(code=older)})


@pytest.mark.long
def test_a_worker_with_several_threads_is_refused(machines, tmp_path):
    machines.worker("--nthreads", "2")
    with pytest.raises(InputError, match=rf"^{HOST}: .*start it with --nthreads 1"):
        run(machines, tmp_path, sleep, [0])


@pytest.mark.long
def test_a_worker_that_does_not_see_the_folder_is_named(machines, tmp_path, monkeypatch):
    """It looks for the file in a folder that isn't there, as on another disk."""
    machines.worker()
    monkeypatch.setattr(cluster, "SHARED", 2)
    monkeypatch.setattr(cluster.secrets, "token_hex", lambda size: "elsewhere/mark")
    monkeypatch.setattr(cluster.Path, "touch", lambda self: None)
    with pytest.raises(InputError, match=rf"^{HOST}: this worker doesn't see {tmp_path}/\S*jobs; put"):
        run(machines, tmp_path, sleep, [0])


@pytest.mark.long
def test_a_job_whose_file_is_missing_is_tried_elsewhere_and_named(machines, tmp_path):
    machines.worker(), machines.worker()
    missing = tmp_path / "missing"
    with pytest.raises(InputError, match=f"^{HOST} and {HOST}: {missing}: .*No such file"):
        run(machines, tmp_path, read, [missing])


@pytest.mark.long
def test_a_job_that_kills_its_workers_is_named_with_their_hosts(machines, tmp_path):
    workers = [machines.worker() for _ in range(3)]
    with pytest.raises(InputError, match=rf"^7: workers were killed .*: tcp://\S+ on {socket.gethostname()}, tcp"):
        run(machines, tmp_path, die, [7])
    assert sum(worker.poll() is None for worker in workers) >= 1, "the third one may have got it, no other"


@pytest.mark.long
def test_an_error_of_the_users_comes_back_as_it_is(machines, tmp_path):
    machines.worker()
    with pytest.raises(InputError, match=r"^not this one$"):
        run(machines, tmp_path, fail, range(9))


@pytest.mark.long
def test_a_scheduler_that_is_killed_is_an_error_within_seconds(machines, tmp_path):
    machines.worker()
    killed = []

    def kill() -> None:
        machines.scheduler.kill()
        killed.append(time.monotonic())

    with pytest.raises(InputError, match="the scheduler is lost"):
        run(machines, tmp_path, sleep, range(200), {1: kill})
    assert time.monotonic() - killed[0] < 10


@pytest.mark.long
def test_without_workers_it_waits_says_so_and_gives_up(machines, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("LABELWISE_WAIT", "5")
    monkeypatch.setattr(cluster, "TELL", 2)
    with pytest.raises(InputError, match=r"no worker for 5 seconds; .*LABELWISE_WAIT=600"):
        run(machines, tmp_path, sleep, range(200), {1: machines.worker().kill})
    assert len(re.findall(r"no worker for \d of 5 seconds", caplog.text)) >= 2


@pytest.mark.long
def test_work_goes_on_when_a_worker_comes(machines, tmp_path):
    worker = machines.worker()
    assert len(set(run(machines, tmp_path, pid_of, range(20), {0: lambda: (worker.kill(), machines.worker())}))) == 2


@pytest.mark.long
@pytest.mark.parametrize(("number", "says"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "Interrupted")])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_signal_ends_a_command_within_seconds(machines, tmp_path, number, says, sent):
    """With all workers gone, or stopped: nothing is waited for."""
    for label in range(20):
        write_jsonl(tmp_path / "tasks" / f"{label}.jsonl", [{"text": "a", "spans": [], "answer": "accept"}])
    declared = [{"name": f"{n}", "path": f"{n}.jsonl", "labels": [f"L{n}"]} for n in range(20)]
    (tmp_path / "tasks" / "datasets.yml").write_text(json.dumps(declared))
    worker = machines.worker()
    command = [sys.executable, "-m", "scripts.merge", "tasks/datasets.yml", "corpus"]
    environment = {"LABELWISE_ENGINE": "dask", "LABELWISE_ADDRESS": machines.address, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as merge:
        wait_until((tmp_path / ".corpus.jobs.labelwise.tmp" / "corpus.jobs").is_dir)
        worker.send_signal(sent)
        time.sleep(5)
        assert merge.poll() is None
        before = time.monotonic()
        merge.send_signal(number)
        printed = merge.communicate()[0].decode()
    assert time.monotonic() - before < 5
    assert merge.returncode == 128 + number
    assert f"{says}; what was there before is unchanged" in printed
    assert "Traceback" not in printed
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("corpus", "logs", "tasks")) == []


def test_a_cluster_that_is_not_there_is_named(tmp_path):
    no_scheduler = pytest.raises(InputError, match=r"--address tcp://127\.0\.0\.1:9: no dask scheduler")
    with no_scheduler, open_engine("dask", 2, "tcp://127.0.0.1:9", tmp_path / "out"):
        pass


def test_seconds_to_wait_are_a_number(monkeypatch):
    monkeypatch.setenv("LABELWISE_WAIT", "long")
    with pytest.raises(InputError, match="LABELWISE_WAIT=long: give a number of seconds"):
        cluster.read_patience()

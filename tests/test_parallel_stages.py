"""Parallel stages give one process's bytes with two (forked or spawned), and with a cluster's workers.

The cluster's workers run in another folder, and paths are relative to the test's.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from labelwise.base import cluster
from labelwise.base.cluster import do_on_worker, fingerprint
from labelwise.base.device import use_gpu
from labelwise.base.errors import InputError
from labelwise.base.parallel import open_workers
from labelwise.check.check_corpus import check
from labelwise.check.folds import Folds
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.evaluate.predict import predict_texts
from labelwise.evaluate.predict_files import predict_files
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT, TINY, run_python, save_ruler, task, write_jsonl
from tests.merge.test_merge_data import random_datasets

Stage = Callable[[Path, int], Any]
LISTENS, FILE = "--host 127.0.0.1 --no-dashboard", "scheduler.json"


@contextmanager
def started(folder: Path, *command: object, code: Path = ROOT) -> Iterator[Path]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{code}:{os.environ.get('PYTHONPATH', '')}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment |= {"KILL_WHERE": str(folder / "where"), "PYTHONDONTWRITEBYTECODE": "1"}
    # Else each process looks a hundred times a second at what it is doing, and ten times at its memory.
    worker, admin = "DASK_DISTRIBUTED__WORKER", "DASK_DISTRIBUTED__ADMIN"
    environment |= {f"{worker}__PROFILE__ENABLED": "False", f"{worker}__MEMORY__MONITOR_INTERVAL": "10s"}
    environment |= {f"{admin}__SYSTEM_MONITOR__INTERVAL": "10s"}
    command_line = [sys.executable, "-m", "dask", *map(str, command)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command_line, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield folder
    finally:
        process.terminate()
        process.wait(20)


def scheduler(folder: Path, code: Path = ROOT) -> AbstractContextManager[Path]:
    return started(folder, "scheduler", *LISTENS.split(), "--port", 0, "--scheduler-file", folder / FILE, code=code)


def worker(folder: Path, *options: object, code: Path = ROOT) -> AbstractContextManager[Path]:
    return started(folder, "worker", *LISTENS.split(), "--scheduler-file", folder / FILE, *options, code=code)


def address(folder: Path) -> str:
    for _ in range(300):
        with suppress(OSError, ValueError):
            return json.loads((folder / FILE).read_text())["address"]
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())


@pytest.fixture(scope="module")
def workers(tmp_path_factory) -> Iterator[Path]:
    pytest.importorskip("distributed")
    folder, preload = tmp_path_factory.mktemp("cluster"), ROOT / "tests/killing.py"
    with scheduler(folder), worker(folder, "--nworkers", 2, "--nthreads", 2, "--preload", preload):
        yield folder


@pytest.fixture
def there(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_merge(merging, there) -> Stage:
    random_datasets(merging, 1)
    rows = [task(f"{n} the  big cat  sat", (2, 5), label="A") for n in range(9)]
    spaced = [task(f"{n} the big cat sat", (2, 5), label="A") for n in range(9)]
    merging.add("spaces", ["A"], [*rows, *spaced])
    return lambda out, workers: merge_data(
        [Path("tasks/datasets.yml")], out / "corpus", Settings(docs_per_partition=7), workers=workers
    )


@pytest.fixture
def stage(request, there, merging, demo_corpus, ruler) -> Stage:
    corpus = Path(os.path.relpath(demo_corpus, there))
    if request.param == "merge":
        return make_merge(merging, there)
    if request.param == "evaluate":
        return lambda out, workers: evaluate_pipeline(
            ruler, corpus / "train", out / "scores.json", tables=out / "tables", workers=workers
        )
    if request.param.startswith("predict"):
        write_texts(there)
        predict = {"predict": predict_texts, "predict-files": predict_files}[request.param]
        return lambda out, workers: [*predict(Path("model"), [Path("texts")], out / "found", workers=workers)]
    small = {**TINY, "training.max_steps": 2, "training.eval_frequency": 2}
    recipe = TrainingConfig(ROOT / "configs/cpu.cfg", corpus, seed=1, overrides=small)
    return lambda out, workers: check(corpus, out / "check", Folds(recipe, 2, workers))


def write_texts(there: Path) -> None:
    save_ruler(there / "model", ("NAME", [{"IS_TITLE": True}]))
    (there / "texts/deep").mkdir(parents=True)
    for number in range(1100):
        (there / f"texts/deep/{number}.txt").write_text(f"Text {number} of Bob")
    for name in ("a", "b", "c"):
        write_jsonl(there / f"texts/{name}.jsonl", [{"text": f"Eve {name} {number}"} for number in range(40)])


def files(folder: Path) -> dict[str, bytes]:
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items()}


def do(stage: Stage, name: str, workers: int = 1) -> dict[str, bytes]:
    out = Path(name)
    out.mkdir()
    stage(out, workers)
    outputs = files(out)
    assert not [path for path in out.rglob("*") if path.name.startswith(("job-", ".labelwise"))]
    assert not [path for path in outputs if path.startswith(".") or "/." in path], "nothing is left of jobs"
    return outputs


WAYS = (*["fork"] * (sys.platform == "linux"), "spawn", "cluster")  # forking is unsafe elsewhere
STAGES = ("merge", "evaluate", "predict", "predict-files", "check")
SPAWNED = "merge"  # a cluster's workers share nothing, either, and have the jobs of all stages


@pytest.fixture
def start_by(request, monkeypatch) -> Callable[[str], None]:
    """Return a function that sets how workers start."""

    def start(way: str) -> None:
        if way == "cluster":
            monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(request.getfixturevalue("workers")))
        else:
            monkeypatch.setenv("LABELWISE_START_METHOD", way)

    return start


@pytest.mark.guarantee("same-bytes")
@pytest.mark.parametrize("stage", STAGES, indirect=True)
def test_bytes_are_those_of_one_process(stage, start_by, request):
    alone = do(stage, "alone")
    assert alone
    for way in (way for way in WAYS if way != "spawn" or request.node.callspec.params["stage"] == SPAWNED):
        start_by(way)
        assert do(stage, way, 2) == alone, way


NAME_OPS = "type(__import__('thinc.api').api.get_current_ops()).__name__"  # imports nothing of labelwise


@pytest.mark.parametrize("way", WAYS)
def test_workers_multiply_as_one_process_does(way, there, start_by):
    """thinc's ops multiply by BLIS, with other rounding: of 200,000 texts, one had another score."""
    use_gpu(-1)
    start_by(way)
    with open_workers(2, there) as map_jobs:
        assert {*map_jobs(eval, [NAME_OPS] * 4)} == {eval(NAME_OPS)} == {"CpuOps"}


KILLED = [
    ("merge", "labelwise.merge.buckets:BucketWriter.flush"),
    ("merge", "labelwise.merge.read:read_source"),
    ("merge", "labelwise.merge.same_texts:find_same"),
    ("merge", "labelwise.merge.same_texts:move_tasks"),
    ("merge", "labelwise.merge.near_duplicates:sign_range"),
    ("merge", "labelwise.corpus.docbin_writer:DocWriter.write"),
    ("merge", "labelwise.merge.partition:merge_range"),
    ("evaluate", "labelwise.evaluate.rows:evaluate_part"),
    ("predict", "labelwise.evaluate.predict:all_found"),
    ("predict-files", "labelwise.evaluate.predict:all_found"),
    ("predict-files", "labelwise.evaluate.predict_files:predict_file"),
    ("check", "labelwise.check.folds:train_fold"),
]


@pytest.mark.long
@pytest.mark.parametrize(("stage", "where"), KILLED, indirect=["stage"])
def test_what_a_killed_worker_had_begun_is_done_by_others(stage, where, workers, monkeypatch):
    alone = do(stage, "alone")
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(workers))
    (workers / "where").write_text(where)
    outputs = do(stage, "cluster")
    (workers / "killed").unlink()
    assert outputs == alone


def kill_itself(job: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_job_that_kills_every_worker_is_named(workers, there, monkeypatch):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(workers))
    with pytest.raises(InputError, match=r"^7: a worker was killed"), open_workers(1, there) as map_jobs:
        list(map_jobs(kill_itself, [7]))


def test_a_worker_that_comes_late_with_other_code_is_refused_by_name(workers, there, monkeypatch):
    older = there / "older"
    for name in ("labelwise", "spacy_per_label"):
        shutil.copytree(ROOT / name, older / name)
    with (older / "labelwise/merge/rules/splits.py").open("a") as file:
        file.write("# edited\n")
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(workers))
    refused = rf"^{socket.gethostname()}: this worker has labelwise \w+ instead of \w+; install the same there"
    with open_workers(1, there) as map_jobs:
        results = map_jobs(time.sleep, repeat(0.05, 1000))
        next(results)
        with worker(workers, code=older), pytest.raises(InputError, match=refused):
            deque(results)


def test_a_worker_without_labelwise_is_refused(there, monkeypatch):
    pytest.importorskip("distributed")
    with scheduler(there, code=there), worker(there, code=there):
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(there))
        with pytest.raises(InputError, match="No module named 'labelwise'"), open_workers(1, there) as map_jobs:
            list(map_jobs(abs, [1]))


def test_a_folder_that_a_worker_does_not_see_is_named(there):
    with pytest.raises(
        InputError, match=f"doesn't see {there}/elsewhere as it is here; put inputs and outputs on a disk"
    ):
        do_on_worker(fingerprint(), there, f"{there}/elsewhere/mark", b"")
    with pytest.raises(InputError, match="doesn't see"):  # another disk at the same path
        do_on_worker(fingerprint(), there, f"{there}/mark", b"")


def test_a_scheduler_that_does_not_answer_is_named(there, monkeypatch):
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        named = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", named)
    monkeypatch.setattr(cluster, "MAX_WAIT_SECONDS", 1)
    with pytest.raises(InputError, match=f"DASK_SCHEDULER_ADDRESS={named}: no Dask scheduler"), open_workers(1, there):
        pass
    with open_workers(1, None) as map_jobs:  # on a GPU, none is asked for
        assert map_jobs is map


def test_a_command_says_that_it_waits_for_a_scheduler_or_a_worker(there, monkeypatch, capsys):
    """Workers may come because jobs wait, as in an adaptive cluster."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "SILENCE", 0.1)

    def printed(waits: str) -> bool:
        return f"Waiting for {waits}" in " ".join(capsys.readouterr().out.split())

    with scheduler(there):
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address(there))
        wait_for = f"a Dask worker: dask worker {address(there)}"
        with ExitStack() as last, open_workers(1, there) as map_jobs:
            done = ThreadPoolExecutor(1).submit(list, map_jobs(abs, [-1]))
            time.sleep(1)
            assert printed(wait_for)
            assert not done.done()
            last.enter_context(worker(there))
            assert done.result(30) == [1]
            capsys.readouterr()
            time.sleep(0.5)
            assert not printed(wait_for)
            last.close()
            time.sleep(1)
            assert printed(wait_for)
    monkeypatch.setattr(cluster, "MAX_WAIT_SECONDS", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers"), open_workers(1, there):
        pass
    assert printed("the Dask scheduler at tcp://")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS has these kernels for x86-64 alone")
def test_a_processor_that_rounds_differently_is_told_by_its_digest():
    code = "from labelwise.base.cluster import digest_rounding; print(digest_rounding())"
    cores = ("Nehalem", "Nehalem", "Haswell")
    one, same, other = (run_python("-c", code, OPENBLAS_CORETYPE=core, OPENBLAS_NUM_THREADS="1") for core in cores)
    assert one == same != other

"""What each text, task, partition and range costs a merge: CPU time of small merges that differ in one thing each."""

import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.at_size import make_tasks
from labelwise.common.engine import Engine, Job, Result
from labelwise.merge import read_sources
from labelwise.merge.cache import Cache
from labelwise.merge.jobs import MergeJob
from labelwise.merge.plan import BLOCK, TaskFile, plan_merging
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_datasets
from labelwise.merge.task_store import read_index
from labelwise.sources.declarations import load_datasets

OUT = Path("benchmarks/out/paper")
ROUNDS = 3
ALL = ("texts", "tasks", "partitions", "ranges")
# By stage, on what the time of its jobs depends, and of the process that gives them out.
IN_JOBS = {"read": ("tasks", "files"), "compare": ALL, "merge": ALL}
ALONE = {
    "read": ("files",),
    "compare": ("partitions", "ranges"),
    "near-duplicates": ("texts", "partitions"),
    "merge": ("partitions", "ranges"),
}


class Small(NamedTuple):
    """A merge to measure: texts, labels, texts in a partition, and bytes of tasks in a task file."""

    texts: int
    labels: int
    docs_per_partition: int = 200
    buffer: int = read_sources.BUFFER_BYTES


SMALL = (Small(2000, 5), Small(2000, 20), Small(6000, 5), Small(2000, 5, 20), Small(2000, 5, buffer=2**15))


class Amounts(NamedTuple):
    """What a merge has; files are task files, and a range is what one has of a partition."""

    texts: float
    tasks: float
    partitions: float
    ranges: float
    files: float


class Timed(Engine):
    """Does each job at once, sent as to another process; sums CPU time, by stage: of jobs, and of all else."""

    def __init__(self) -> None:
        """Begin before the first stage."""
        self.jobs, self.each, self.ranges = 0.0, list[float](), 0
        self.begun = time.process_time()
        self.spent: dict[str, tuple[float, float]] = {}

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of jobs."""
        for job in jobs:
            self.ranges += len(job.ranges) if isinstance(job, MergeJob) else 0
            sent = pickle.dumps(job)  # as it would be to another process
            begun = time.process_time()
            result = function(pickle.loads(sent))  # noqa: S301  of our own making
            self.each.append(time.process_time() - begun)
            self.jobs += self.each[-1]
            yield result

    def note(self, stage: str) -> None:
        """End a stage."""
        now = time.process_time()
        self.spent[stage] = (self.jobs, now - self.begun - self.jobs)
        self.jobs, self.begun = 0.0, now

    @contextmanager
    def progress(self, stage: str, total: int) -> Iterator[Callable[[int, int], None]]:
        """Note a stage of the merge, and what came before it."""
        self.note({"merge": "near-duplicates"}.get(stage, f"before {stage}"))
        self.each, self.ranges = [], 0
        yield lambda done, rows: None
        self.note(stage)


class Costs(NamedTuple):
    """Seconds of CPU time.

    jobs, alone (dict): by stage, for each of `Amounts`: of jobs, and of the process that gives them out.
    call (float): of the plan, for a block and a task file.
    spread (list): of the merge's jobs, as parts of their mean.
    line, task, text (float): bytes of a task in a source and in a task file, and of a text.
    """

    jobs: dict[str, Amounts]
    alone: dict[str, Amounts]
    call: float
    spread: list[float]
    line: float
    task: float
    text: float


def measure_costs() -> Costs:
    """Merge small corpora, and find what each text, task, partition and range adds."""
    shutil.rmtree(OUT, ignore_errors=True)
    for texts, labels in {(one.texts, one.labels) for one in SMALL}:
        make_tasks(texts, labels, OUT / f"{texts}-{labels}")
    runs = [[merge(one) for one in SMALL] for _ in range(ROUNDS)]
    amounts = [amounts for amounts, _ in runs[0]]

    def fitted(part: int, stages: dict[str, tuple[str, ...]]) -> dict[str, Amounts]:
        """Fit the medians of the rounds."""
        seconds = {
            stage: [median(run[i][1].spent[stage][part] for run in runs) for i in range(len(SMALL))] for stage in stages
        }
        return {stage: fit(amounts, seconds[stage], names) for stage, names in stages.items()}

    last = SMALL[-1]
    files = [path.with_suffix("") for path in (OUT / "corpus" / ".cache").rglob("*.index")]
    sources = [*(OUT / f"{last.texts}-{last.labels}").glob("*.jsonl")]
    indexes = np.concatenate([read_index(path) for path in files])
    return Costs(
        fitted(0, IN_JOBS),
        fitted(1, ALONE),
        median(time_call(files) for _ in range(ROUNDS)),
        [seconds / (sum(run[0][1].each) / len(run[0][1].each)) for run in runs for seconds in run[0][1].each],
        sum(path.stat().st_size for path in sources) / len(indexes),
        float((indexes["task"].astype(int) + indexes["text"]).mean()),
        float(indexes["text"].mean()),
    )


def merge(small: Small) -> tuple[Amounts, Timed]:
    """Merge a small corpus from nothing."""
    shutil.rmtree(OUT / "corpus", ignore_errors=True)
    timed = Timed()
    datasets = load_datasets([OUT / f"{small.texts}-{small.labels}" / "datasets.yml"], OUT / "fetched")
    settings = Settings(docs_per_partition=small.docs_per_partition)
    with patch.object(read_sources, "BUFFER_BYTES", small.buffer):
        merge_datasets(datasets, OUT / "corpus", settings, engine=timed, progress=timed.progress)
    tasks = small.texts * small.labels
    files = len(list((OUT / "corpus" / ".cache").rglob("*.index")))
    return Amounts(small.texts, tasks, len(timed.each), timed.ranges, files), timed


def fit(amounts: list[Amounts], seconds: list[float], names: tuple[str, ...]) -> Amounts:
    """Find the costs of some amounts, none less than 0, that explain the seconds; each merge counts the same."""
    used = list(names)
    while True:
        table = np.array([[getattr(one, name) for name in used] for one in amounts]) / np.array(seconds)[:, None]
        found = np.linalg.lstsq(table, np.ones(len(table)), rcond=None)[0].tolist()
        if min(found) >= 0:
            return Amounts(**dict.fromkeys(Amounts._fields, 0.0) | dict(zip(used, found, strict=True)))
        used.pop(found.index(min(found)))


def time_call(paths: list[Path]) -> float:
    """Time the plan of the first of very many partitions, for a block and a task file."""
    files = [TaskFile(path, 0, 0, len(read_index(path)), 0) for path in paths]
    blocks, begun = 8, time.process_time()
    planned = plan_merging(files, 2**19, range(2**19), [], [], Settings(), Cache(OUT, OUT, OUT))
    next(islice(planned, blocks * BLOCK - 1, None))
    return (time.process_time() - begun) / blocks / len(files)

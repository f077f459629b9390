"""What would a hundred million texts take on fifty machines? Computed, from costs that are measured here.

    python -m benchmarks.paper --texts 1e8 --labels 200 --machines 50     # two minutes of work

Numbers of files and bytes come from the merge's own functions. Costs are CPU time of small merges that differ in one
thing each, medians of three rounds. A job's part is shared by all slots, the rest is done by one process. What a shared
disk takes isn't known here. The last table lets the engine fill a thousand slots, with jobs that sleep.
"""

import random
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil, expm1
from typing import Annotated, Any, NamedTuple, cast
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.measure import write_result
from benchmarks.paper_costs import OUT, Amounts, Costs, measure_costs
from labelwise.common import engine
from labelwise.corpus.manifest import MANIFEST, SPLITS, write_manifest
from labelwise.merge import plan, read_sources
from labelwise.merge.cache import Cache
from labelwise.merge.jobs import ReadJob, Source
from labelwise.merge.key_ranges import CELL
from labelwise.merge.near_duplicates import SIGNED
from labelwise.merge.plan import BLOCK, count_partitions, plan_reading
from labelwise.merge.rules.settings import Settings
from labelwise.merge.task_store import TASK_OVERHEAD
from labelwise.sources.declarations import load_datasets

PROCESSES = 20  # of a machine
ORDER = (
    "read, jobs",
    "read, alone",
    "plan, alone",
    "compare, jobs",
    "compare, alone",
    "near-duplicates, alone",
    "merge, jobs",
    "merge, alone",
)


class Sizes(NamedTuple):
    """Numbers of things and bytes of a merge."""

    amounts: Amounts
    slices: int
    files: int
    blocks: int
    manifest: float
    block: float
    signatures: float


def size_up(texts: int, labels: int, costs: Costs) -> Sizes:
    """Ask the merge's functions what they would make of a data set for each label."""
    tasks = texts * labels
    sources, folder = OUT / "sources", OUT / "sized"
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir()
    with (sources / "a.jsonl").open("wb") as file:
        file.write(b'{"text":"a"}\n')
        file.truncate(int(texts * costs.line))  # takes no disk
    dataset = load_datasets([OUT / "2000-5" / "datasets.yml"], OUT / "fetched")[0]
    cache = Cache(OUT, OUT, OUT)
    jobs: list[ReadJob] = plan_reading([Source(dataset, sources / "a.jsonl")], cache, Settings())
    of_slice = jobs[0].size / costs.line * (costs.task + TASK_OVERHEAD) / read_sources.BUFFER_BYTES
    files = ceil(of_slice) * len(jobs) * labels
    with patch.object(plan, "count_texts", return_value=(texts, texts * int(costs.text))):
        partitions = count_partitions([], Settings())
    written = []
    for count in (0, 1000):
        folder.mkdir(exist_ok=True)
        last = range(partitions - count, partitions)
        listed = {f"{split}/part-{number:05d}.spacy": "0" * 64 for split in SPLITS for number in last}
        write_manifest(folder, settings={}, labels=[], datasets={}, splits={}, partitions=listed)
        written.append((folder / MANIFEST).stat().st_size)
    ranges = -partitions * files * expm1(-tasks / files / partitions)
    blocks = ceil(partitions / BLOCK)
    return Sizes(
        Amounts(texts, tasks, partitions, ranges, files),
        len(jobs) * labels,
        files,
        blocks,
        (written[1] - written[0]) / 1000 * partitions,
        CELL.itemsize * ranges / blocks,
        SIGNED.itemsize * texts,
    )


def stage_hours(sizes: Sizes, costs: Costs, slots: int) -> dict[str, float]:
    """Tell the hours of each stage: of its jobs, shared by all slots, and of the one process, which plans twice."""
    hours = {f"{stage}, jobs": float(np.dot(one, sizes.amounts)) / slots / 3600 for stage, one in costs.jobs.items()}
    hours |= {f"{stage}, alone": float(np.dot(one, sizes.amounts)) / 3600 for stage, one in costs.alone.items()}
    hours["plan, alone"] = 2 * sizes.blocks * sizes.files * costs.call / 3600
    return dict(sorted(hours.items(), key=lambda item: ORDER.index(item[0])))


class Sleepers(ThreadPoolExecutor):
    """Slots of the engine whose jobs sleep."""

    def __init__(self, slots: int) -> None:
        """Begin with all awake."""
        super().__init__(slots)
        self.count, self.times = slots, list[tuple[float, float]]()

    def slots(self) -> int:
        """Count them."""
        return self.count

    def result(self, future: Future[Any]) -> Any:
        """Take nothing."""
        return future.result()

    def nap(self, seconds: float) -> None:
        """Be busy."""
        begun = time.monotonic()
        time.sleep(seconds)
        self.times.append((begun, time.monotonic()))


def busy(spread: list[float], mean: float, slots: int, window: int, slow: float) -> float:
    """Let sleeping jobs fill slots through the engine; return the share of the time that slots were busy.

    spread (list[float]): seconds of jobs, as parts of their mean.
    window (int): the most jobs for each slot that are in flight or wait for one before them.
    slow (float): one job in a thousand takes so many times the mean.
    Until the last job begins: with millions of jobs, the end doesn't count.
    """
    rng = random.Random(0)
    jobs = [
        mean * (slow if slow and rng.random() < 0.001 else rng.choice(spread)) for _ in range(3 * engine.WINDOW * slots)
    ]
    with Sleepers(slots) as sleepers, patch.object(engine, "WINDOW", window):
        for _ in engine.SideBySide.map(cast(engine.SideBySide, sleepers), sleepers.nap, jobs):
            pass
    first, last = min(sleepers.times)[0], max(sleepers.times)[0]
    return sum(min(end, last) - begun for begun, end in sleepers.times) / (slots * (last - first))


def main(
    texts: Annotated[float, typer.Option(help="Texts of the largest corpus; a tenth and a hundredth are shown, too")],
    labels: Annotated[int, typer.Option(help="Labels, each a data set of all texts; a tenth is shown, too")],
    machines: Annotated[int, typer.Option(help=f"Machines, each of {PROCESSES} processes")],
    mean: Annotated[float, typer.Option(help="Seconds of a job that sleeps, on average")] = 2,
) -> None:
    """Measure the costs, compute the tables, and simulate the engine."""
    costs = measure_costs()
    slots = machines * PROCESSES
    sizes, hours = [], []
    for count in (int(texts / 100), int(texts / 10), int(texts)):
        for of in (labels // 10, labels):
            size = size_up(count, of, costs)
            amounts = size.amounts
            each = amounts.ranges / amounts.partitions
            made = size.slices, size.files, amounts.partitions, size.blocks, each
            sizes.append((count, of, *made, size.manifest / 1e6, size.block / 1e6, size.signatures / 1e9))
            found = stage_hours(size, costs, slots)
            hours.append((count, of, *found.values()))
    columns = dict.fromkeys(("texts", "labels", "slices", "task files", "partitions", "blocks"), ",")
    bytes_of = {"manifest, MB": ",.0f", "a block's plan, MB": ",.0f", "signatures, GB": ",.1f"}
    write_result("paper_sizes", columns | {"ranges of a partition": ",.0f"} | bytes_of, sizes)
    write_result("paper_hours", {"texts": ",", "labels": ","} | dict.fromkeys(ORDER, ",.2f"), hours)
    simulated = [
        (slots, window, slow or None, busy(costs.spread, mean, slots, window, slow))
        for window, slow in [(engine.AHEAD, 0), (engine.WINDOW, 0), (engine.AHEAD, 10), (engine.WINDOW, 10)]
    ]
    columns = {"slots": ",", "jobs in the window of each": ",", "one in 1,000 is slower, times": ",", "busy": ".1%"}
    write_result("paper_engine", columns, simulated)


if __name__ == "__main__":
    typer.run(main)

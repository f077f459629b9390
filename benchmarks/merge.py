"""Time and memory of the merge, against reading alone.

    python -m benchmarks.merge                # 6,000 texts x 20 labels, 2.3 GB; a quarter of an hour

Reading and merging alternate: on a shared machine, ratios of adjacent runs mean more than times. `merge_memory` merges
many more texts.
"""

import shutil
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks.measure import Measured, measure, write_result

OUT = Path("benchmarks/out")
MEMORY_LIMIT = 400  # MB that the merge may use


class Line(NamedTuple):
    """A line of the table; `ratio` is of its seconds, or memory, to another's."""

    what: str
    seconds: float
    megabytes: float
    ratio: float | None = None
    of: str = ""


def merge(folder: Path, out: Path) -> Measured:
    """Merge a folder's datasets by two processes."""
    shutil.rmtree(out, ignore_errors=True)
    declared = str(folder / "datasets.yml")
    return measure("scripts.merge", declared, str(out), "--project", "project.yml", "--workers", "2")


def make_workload(folder: Path, docs: int) -> None:
    """Make datasets of 20 labels over `docs` texts, unless they exist."""
    if not (folder / "datasets.yml").exists():
        measure("scripts.make_demo", str(folder), *f"--format prodigy --docs {docs} --labels 20 --words 300".split())


def main(
    workload: Annotated[Path, typer.Option(help="6,000 texts; made if it isn't there")] = OUT / "workload" / "prodigy",
    rounds: Annotated[int, typer.Option(help="How often reading and merging are repeated")] = 3,
) -> None:
    """Measure, write the table; fail if a limit is exceeded."""
    make_workload(workload, 6000)
    out = OUT / "merge"
    reads, merges = [], []
    for _ in range(rounds):
        reads.append(measure("benchmarks.read_lines", str(workload)))
        merges.append(merge(workload, out))
    ratio = median(ours.seconds / theirs.seconds for ours, theirs in zip(merges, reads, strict=True))
    lines = [
        line("orjson.loads of every line, one process", *reads),
        line("merge, 2 workers", *merges, ratio=ratio, of=f"reading's seconds, median of {rounds}"),
    ]
    columns = {"what": "", "seconds": ",.1f", "memory, MB": ",.0f", "ratio": ".2f", "of": ""}
    write_result("merge", columns, lines)
    if lines[1].megabytes > MEMORY_LIMIT:
        raise SystemExit(f"merge: {lines[1].megabytes:.0f} MB")


def line(what: str, *measured: Measured, ratio: float | None = None, of: str = "") -> Line:
    """Make a line from medians."""
    return Line(what, median(run.seconds for run in measured), median(run.megabytes for run in measured), ratio, of)


if __name__ == "__main__":
    typer.run(main)

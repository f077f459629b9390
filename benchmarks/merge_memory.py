"""Memory of the merge: a million texts should take little more than those that fill all tables of bounded size.

    python -m benchmarks.merge_memory                                # needs 20 GB of disk, and an hour on two cores
    python -m benchmarks.merge_memory --texts 200000 --labels 4      # a quarter of an hour

Memory is the peak of all processes, PSS. A process holds up to 30,000 words, which 50,000 short texts have.
"""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.at_size import make_tasks
from benchmarks.measure import Cell, measure, write_result

OUT = Path("benchmarks/out/merge_memory")
FULL = 50_000  # texts
FLAT_LIMIT = 1.3  # all texts may take this many times the memory


def main(
    texts: Annotated[int, typer.Option(help=f"Texts, in place of {FULL:,}")] = 1_000_000,
    labels: Annotated[int, typer.Option(help="Data sets, each of a label")] = 20,
) -> None:
    """Measure; fail if the memory isn't flat."""
    rows: list[list[Cell]] = []
    peaks: list[float] = []
    for count in (FULL, texts):
        shutil.rmtree(OUT, ignore_errors=True)
        declared = make_tasks(count, labels, OUT / "tasks")
        taken = measure("scripts.merge", str(declared), str(OUT / "corpus"), "--workers", "2")
        peaks.append(taken.megabytes)
        rows.append([count, labels, taken.seconds, peaks[-1], peaks[-1] / peaks[0] if len(peaks) > 1 else None])
    columns = {"texts": ",", "labels": "", "seconds": ",.0f", "memory, MB": ",.0f", f"of {FULL:,} texts'": ".2f"}
    write_result("merge_memory", columns, rows)
    if peaks[1] > FLAT_LIMIT * peaks[0]:
        raise SystemExit(f"{texts:,} texts take {peaks[1] / peaks[0]:.2f} times the memory of {FULL:,}")


if __name__ == "__main__":
    typer.run(main)

"""Each stage in one process, in two, and on a Dask cluster with two workers, in turn.

    python -m benchmarks.engines

Makes its data first. Memory is the peak of all processes, PSS: of a cluster those of scheduler and workers, too.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from distributed import LocalCluster

from benchmarks.measure import Cell, Measured, measure, project_with, write_result

OUT = Path("benchmarks/out/engines")
WAYS = {
    "1 process": ["--workers", "1"],
    "2 processes": ["--workers", "2"],
    "Dask, 2 workers": [],
}

ON_CLUSTER = "on-cluster"


def main(
    docs: Annotated[int, typer.Option(help="Texts to convert and to merge, of 20 labels")] = 6000,
    texts: Annotated[int, typer.Option(help="Texts to predict, and about as many to evaluate, of 5 labels")] = 2000,
    rounds: Annotated[int, typer.Option(help="How often each is done, in turn")] = 3,
) -> None:
    """Measure, and write the table."""
    stages = prepare(docs, texts)
    taken: dict[tuple[str, str], list[Measured]] = {}
    for _ in range(rounds):
        for stage, (out, command) in stages.items():
            for way, options in WAYS.items():
                for old in (out, out.with_name(f"{out.name}.json")):
                    shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
                before = [] if options else ["benchmarks.engines", ON_CLUSTER]
                taken.setdefault((stage, way), []).append(measure(*before, *command, *options))
    rows: list[list[Cell]] = [[stage, way, *summed_up(found)] for (stage, way), found in taken.items()]
    write_result("engines", {"stage": "", "way": "", "seconds": ",.1f", "memory, MB": ",.0f"}, rows)


def prepare(docs: int, texts: int) -> dict[str, tuple[Path, list[str]]]:
    """Make brat folders, and a pipeline; return the output of each stage, and its command."""
    large, small, model = OUT / "large", OUT / "small", OUT / "model"
    if not model.exists():
        for folder, count, labels in ((large, docs, 20), (small, texts, 5)):
            measure("scripts.make_demo", str(folder), "--docs", str(count), "--labels", str(labels), "--words", "300")
            measure("scripts.convert_brat", str(folder), str(OUT / f"{folder.name}-tasks"))
        ratios = project_with(OUT, near_duplicates="off", dev_ratio=0.02, test_ratio=0.9)
        measure("scripts.merge", str(OUT / "small-tasks" / "datasets.yml"), str(OUT / "small-corpus"), *ratios)
        steps = ["--curve", str(OUT / "curve.tsv"), "--max-steps", "100"]
        measure("scripts.train", "configs/cpu.cfg", str(OUT / "small-corpus"), str(model), *steps)
    out, metrics = OUT / "out", OUT / "out.json"
    tested = [str(model), str(OUT / "small-corpus" / "test"), str(metrics), "--details", str(out)]
    return {
        "convert": (out, ["scripts.convert_brat", str(large), str(out)]),
        "merge": (out, ["scripts.merge", str(OUT / "large-tasks"), str(out), "--project", "project.yml"]),
        "evaluate": (out, ["scripts.evaluate", *tested]),
        "predict": (out, ["scripts.predict", str(model), str(small), "--out", str(out)]),
    }


def summed_up(found: list[Measured]) -> tuple[Cell, Cell]:
    """Return the median of the seconds, with the least and the most, and the median of the memory."""
    seconds = [one.seconds for one in found]
    return (median(seconds), min(seconds), max(seconds)), median(one.megabytes for one in found)


def run_on_cluster(command: list[str]) -> None:
    """Start a cluster of two workers, and run a command on it."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        subprocess.run([sys.executable, "-m", *command, "--address", cluster.scheduler_address], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [ON_CLUSTER]:
        run_on_cluster(sys.argv[2:])
    else:
        typer.run(main)

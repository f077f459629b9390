"""How good is a pipeline after how much time? F on dev against the wall time since the command was started.

    python -m benchmarks.time_to_f CORPUS --seconds 180     # merged, such as benchmarks/out/wnut2020_wlp/corpus

Trained in turn, seed after seed: `spacy train` with the config that `spacy init config --optimize efficiency` makes,
`spacy train` with configs/cpu.cfg, and labelwise with one process and with two. Each is ended after so many seconds.
A training's time is what a user waits: loading, reading, evaluations and all. Times and scores are those of the table
that each one prints, as they arrive.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean
from threading import Timer
from typing import Annotated, NamedTuple

import typer
from spacy.cli.init_config import init_config

from benchmarks.measure import write_result
from benchmarks.training import stock_config

OUT = Path("benchmarks/out/time_to_f")
CONFIG = Path("configs/cpu.cfg")
SHARES = (0.9, 0.95, 0.98)  # of the F that `spacy train` reaches with its own config in all the time


class Point(NamedTuple):
    """An evaluation: seconds since the command was started, the step, and F on dev in percent."""

    seconds: float
    step: int
    f: float


def watch(command: list[str], limit: float) -> list[Point]:
    """Run a training for at most `limit` seconds, and read its table."""
    points: list[Point] = []
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    names: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        timer = Timer(limit, process.kill)
        timer.start()
        for line in process.stdout or ():
            cells = re.split(r"\s{2,}", line.strip())
            if "ENTS_F" in cells:
                names = cells
            elif names and len(cells) == len(names) and cells[0].isdigit():
                row = dict(zip(names, cells, strict=True))
                points.append(Point(time.perf_counter() - start, int(row["#"]), float(row["ENTS_F"])))
        timer.cancel()
    return points


def commands(corpus: Path, seed: int) -> dict[str, list[str]]:
    """Make the command of each training."""
    OUT.mkdir(parents=True, exist_ok=True)
    stock = init_config(lang="en", pipeline=["ner"], optimize="efficiency", silent=True)
    stock["paths"] |= {"train": str(corpus / "train"), "dev": str(corpus / "dev")}
    stock.to_disk(OUT / "efficiency.cfg")
    own = stock_config(CONFIG, corpus)
    own.to_disk(OUT / "own.cfg")
    python = [sys.executable, "-m"]
    found = {}
    for name, config in (("spacy train, its own config", "efficiency"), ("spacy train, configs/cpu.cfg", "own")):
        code = ["--code", "benchmarks/stock.py", "--output", str(OUT / "stock"), "--system.seed", str(seed)]
        found[name] = [*python, "spacy", "train", str(OUT / f"{config}.cfg"), *code]
    for recognizer, workers in (("ner", 1), ("ner", 2), ("per-label", 1), ("per-label", 2)):
        options = f"--recognizer {recognizer} --workers {workers} --seed {seed} --curve {OUT / 'curve.tsv'}".split()
        name = f"labelwise, {recognizer}, {workers} process{'es' if workers > 1 else ''}"
        found[name] = [*python, "scripts.train", str(CONFIG), str(corpus), str(OUT / "model"), *options]
    return found


def first(points: list[Point], f: float) -> float | None:
    """Find when an F was reached; None if it wasn't."""
    return next((point.seconds for point in points if point.f >= f), None)


def spread(values: list[float | None]) -> tuple[float, float, float] | None:
    """Compute the mean and what it lies between; None if some training didn't get there."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return mean(known), min(known), max(known)


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")],
    seconds: Annotated[float, typer.Option(help="How long each is trained")] = 180,
    seeds: Annotated[int, typer.Option(help="Trainings of each, with the seeds 0, 1, ...")] = 3,
    go_on: Annotated[bool, typer.Option("--go-on", help="Take what runs.json has; train what it lacks")] = False,
) -> None:
    """Train in turn, and write when which F was reached, and the curves of the first seed."""
    file = OUT / "runs.json"
    runs: dict[str, list[list[Point]]] = {}
    if go_on:
        told = json.loads(file.read_text())
        runs = {name: [[Point(*point) for point in points] for points in found] for name, found in told.items()}
    for seed in range(seeds):
        for name, command in commands(corpus, seed).items():
            found = runs.setdefault(name, [])
            found += [[]] * (seed + 1 - len(found))
            if not found[seed]:
                found[seed] = watch(command, seconds)
                print(name, seed, found[seed][-1:], flush=True)
                file.write_text(json.dumps(runs))
    stock, *_ = runs.values()
    best = [max(point.f for point in points) for points in stock]
    steps = min(points[-1].step for name, found in runs.items() if name != next(iter(runs)) for points in found)
    shares = {f"seconds to F {share * mean(best):.0f} ({share:.0%})": ".0f" for share in SHARES}
    rows = []
    for number, (name, found) in enumerate(runs.items()):
        ends = spread([max(point.f for point in points) for points in found])
        at_step = spread([next((p.f for p in points if p.step == steps), None) for points in found])
        times = [spread([first(points, share * f) for points, f in zip(found, best, strict=True)]) for share in SHARES]
        rows.append((name, ends, at_step if number else None, *times))
    columns = {"training": "", "F at the end": ".1f", f"F at step {steps}": ".1f", **shares}
    curves = {name: [(round(one.seconds, 1), one.f) for one in found[0]] for name, found in runs.items()}
    write_result("time_to_f", columns, rows, curves=curves)


if __name__ == "__main__":
    typer.run(main)

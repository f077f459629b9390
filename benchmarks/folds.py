"""Are folds trained faster side by side, one process each, or one after the other, by two processes each?

    python -m benchmarks.folds CORPUS     # merged, such as benchmarks/out/wnut2020_wlp/corpus

In turn, round after round, as the check trains them; memory is the peak of all processes, PSS.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.measure import Measured, measure, write_result
from labelwise.check.folds import fold_recipes, train_folds
from labelwise.train.recipe import Recipe
from labelwise.train.side_by_side import train_one

OUT = Path("benchmarks/out/folds")
WAYS = ("side by side, 1 process each", "one after the other, 2 processes each")
WORKERS = 2


def train(corpus: Path, steps: int, folds: int, way: str) -> None:
    """Train all folds."""
    recipe = Recipe(
        Path("configs/cpu.cfg"), corpus, max_steps=steps, overrides={"training.eval_frequency": steps}
    ).absolute()
    if way == WAYS[0]:
        list(train_folds(recipe, OUT.absolute(), folds, WORKERS))
    else:
        for fold in range(folds):
            train_one(fold_recipes(replace(recipe, workers=WORKERS), folds), OUT.absolute(), fold)


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 60,
    folds: Annotated[int, typer.Option(help="Pipelines")] = 4,
    rounds: Annotated[int, typer.Option(help="How often all are trained")] = 2,
    way: Annotated[str, typer.Option(help="Only train, this way; without, measure all ways")] = "",
) -> None:
    """Train in turn, and write medians."""
    if way:
        train(corpus, steps, folds, way)
        return
    given = ("--steps", str(steps), "--folds", str(folds))
    runs: dict[str, list[tuple[Measured, float]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, taken in runs.items():
            shutil.rmtree(OUT, ignore_errors=True)
            OUT.mkdir(parents=True)
            before = os.times()
            measured = measure("benchmarks.folds", str(corpus), *given, "--way", name)
            after = os.times()
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            taken.append((measured, spent))
    rows = []
    for name, taken in runs.items():
        seconds = [one.seconds for one, _ in taken]
        memory = median(one.megabytes for one, _ in taken)
        cpu = median(spent for _, spent in taken)
        rows.append((name, folds, (median(seconds), min(seconds), max(seconds)), cpu, memory))
    forms = {"seconds": ",.0f", "CPU seconds": ",.0f", "memory, MB": ",.0f"}
    write_result("folds", {"trained": "", "folds": ",", **forms}, rows)


if __name__ == "__main__":
    typer.run(main)

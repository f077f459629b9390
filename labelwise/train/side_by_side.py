"""Trainings side by side, each by one process, so that all are the same whatever the number of processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from labelwise.parallel import open_workers
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline


def train_side_by_side(recipes: Sequence[Recipe], out: Path, workers: int, address: str = "") -> Iterator[Path]:
    """Train a pipeline by each recipe, and yield their folders, in order.

    out (Path): the folder for them.
    workers, address: see `parallel.open_workers`; each process trains one pipeline at a time.
    """
    with open_workers(min(workers, len(recipes)), address, out) as map_jobs:
        yield from map_jobs(partial(train_one, recipes, out), range(len(recipes)))


def train_one(recipes: Sequence[Recipe], out: Path, number: int) -> Path:
    """Train by one of the recipes; the first shows its progress for all.

    RETURNS (Path): the folder of the pipeline. Beside it is its curve, `.tsv`.
    """
    model = out / f"pipeline-{number}"
    with unseen() if number else nullcontext():
        train_pipeline(recipes[number], model, model.with_suffix(".tsv"))
    return model


@contextmanager
def unseen() -> Iterator[None]:
    """Make a block that prints nothing: of trainings side by side, one shows its progress for all."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield

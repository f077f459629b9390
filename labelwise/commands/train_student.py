"""Train one pipeline that also learns what another thinks of raw texts, and say what that changes."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.commands.console import figure, msg, print_table, user_errors
from labelwise.commands.train import print_summary
from labelwise.common.portable import obey
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.recipe import Recipe
from labelwise.train.student import train_student

Option = typer.Option


def train_student_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the pipeline; beside it is its curve, OUT.tsv")],
    teacher: Annotated[Path, Option(help="Pipeline whose probabilities are learned, such as a committee")],
    raw: Annotated[Path, Option(help="File or folder of texts that nobody has annotated")],
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for what the config says")] = 0,
    workers: Annotated[int, Option(help="Processes that share each batch, and that predict")] = 1,
) -> None:
    """Train one pipeline that also learns what another thinks of raw texts."""
    with user_errors("Nothing was trained"):
        obey(config)
        recipe = Recipe(config, corpus, seed=seed, max_steps=max_steps, workers=workers)
        trained = train_student(recipe, out, out.with_suffix(".tsv"), teacher=teacher, raw=raw, tell=msg.info)
        if trained:
            print_summary(trained)
        before, after = (
            evaluate_pipeline(model, corpus / "test", workers=workers).metrics.all_gold for model in (teacher, out)
        )
    rows = [[label, figure(before.labels[label].f), figure(after.labels[label].f)] for label in sorted(after.labels)]
    print_table(["F in test", "teacher", "student"], [["all", figure(before.f), figure(after.f)], *rows])
    msg.good(f"The student is in {out}")

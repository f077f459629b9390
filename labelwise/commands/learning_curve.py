"""Train on growing shares of the texts, and say of which labels more annotation is likely to help."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.check.learning_curve import measure_curve
from labelwise.commands.console import AddressOption, MemoryOption, figure, msg, print_table, user_errors
from labelwise.common.portable import obey
from labelwise.evaluate.scores import LearningCurve, Line
from labelwise.train.recipe import Recipe, Recognizer

Option = typer.Option


def learning_curve_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(metavar="OUT.json", help="JSON file for the curves")],
    max_steps: Annotated[int, Option(help="Updates of each training; 0 for what the config says")] = 0,
    recognizer: Annotated[Recognizer, Option(help="A head for each label, or spaCy's ner")] = "per-label",
    seed: Annotated[int, Option(help="Random seed")] = 0,
    workers: Annotated[int, Option(help="Processes that each train a pipeline")] = 1,
    memory: MemoryOption = "",
    address: AddressOption = "",
) -> None:
    """Train on growing shares of the texts, and say of which labels more annotation is likely to help."""
    with user_errors("No learning curve was measured"):
        obey(config)
        recipe = Recipe(config, corpus, seed=seed, max_steps=max_steps, recognizer=recognizer)
        curve = measure_curve(recipe, out, workers=workers, memory=memory, address=address, tell=msg.info)
    print_curve(curve)
    msg.good(f"{out} has the curves; report shows them (weasel run report)")


def print_curve(curve: LearningCurve) -> None:
    """Print F by the number of texts, the labels that are likely to gain the most first."""
    header = ["F by texts", *(f"{n:,}" for n in curve.texts), f"{curve.more} more", "95%"]
    order = sorted(curve.labels.items(), key=lambda item: (item[1].gain is None, -(item[1].gain or 0.0), item[0]))
    print_table(header, [_row(name, line) for name, line in [*order, ("all", curve.total)]])


def _row(name: str, line: Line) -> list[str]:
    f = list(map(figure, line.f))
    if line.gain is None:
        return [name, *f, "", ""]
    return [name, *f, f"{line.gain:+.3f}", f"{line.low:+.3f} to {line.high:+.3f}"]

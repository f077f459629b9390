"""Add the corpus's labels that a pipeline lacks, and say what that changes."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from labelwise.commands.console import msg, print_table, user_errors
from labelwise.commands.train import print_summary
from labelwise.common.portable import obey
from labelwise.common.wording import counted
from labelwise.evaluate.displaced import Displaced, find_displaced
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.evaluate.scores import Scores
from labelwise.train.extend import extend
from labelwise.train.recipe import Recipe

Option = typer.Option


def add_label_cli(
    config: Annotated[Path, typer.Argument(help="spaCy config")],
    corpus: Annotated[Path, typer.Argument(help="Folder that the merge wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the pipeline; beside it are its curve, and the one before")],
    init_from: Annotated[str, Option(help="Name or folder of the pipeline; model-best beside OUT if not given")] = "",
    seed: Annotated[int, Option(help="Random seed")] = 0,
    max_steps: Annotated[int, Option(help="Number of updates; 0 for what the config says")] = 0,
    workers: Annotated[int, Option(help="Processes that share each batch, and that predict")] = 1,
) -> None:
    """Train heads for the corpus's labels that a pipeline lacks, and nothing else."""
    with user_errors("No label was added"):
        obey(config)
        recipe = Recipe(
            config, corpus, seed=seed, max_steps=max_steps, init_from=init_from, workers=workers, resume=True
        )
        base, added, trained = extend(recipe, out, msg.info)
        if trained is None:
            msg.good(f"Nothing to add: the pipeline has all labels of {corpus}; {out} is a copy of it")
            return
        print_summary(trained)
        with TemporaryDirectory() as folder:
            files = Path(folder) / "before.jsonl", Path(folder) / "after.jsonl"
            before, after = (
                evaluate_pipeline(
                    model, corpus / "test", predictions=file, workers=workers, other_tokens=True
                ).metrics.all_gold
                for model, file in zip((base, out), files, strict=True)
            )
            displaced = find_displaced(*files, added)
    print_effect(before.labels, after.labels, added, displaced)
    if displaced.spans:
        differ = counted(displaced.spans, "span")
        msg.warn(f"{differ} of other labels differ in doc.spans: the corpus has other tokens than the pipeline had")
    lost = counted(displaced.entities.total(), "entity", "entities")
    msg.good(f"{out} finds {', '.join(added)}, too; in test, that takes the place of {lost} of other labels")


def print_effect(
    before: dict[str, Scores], after: dict[str, Scores], added: Collection[str], displaced: Displaced
) -> None:
    """Print F of each label before and after, those that were added first."""
    rows = [
        [
            label,
            "" if label in added else _figure(before[label]),
            _figure(after[label]),
            f"{displaced.entities[label] or ''}",
        ]
        for label in sorted(after, key=lambda label: (label not in added, label))
    ]
    print_table(["F of doc.ents in test", "Before", "After", "Displaced"], rows)


def _figure(scores: Scores) -> str:
    f = scores.shown().f
    return "" if f is None else f"{f:.3f}"

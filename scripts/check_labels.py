"""Find annotations that contradict the others, for the report."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, progress, run, user_errors
from labelwise.base.sections import CheckSection
from labelwise.base.settings import read_section
from labelwise.base.text import counted
from labelwise.base.workers import choose_workers
from labelwise.check.check_corpus import check
from labelwise.check.folds import Folds
from labelwise.train.training_config import TrainingConfig

Option = typer.Option


def check_labels_cli(
    corpus: Annotated[Path, typer.Argument(help="Folder of the merged corpus")],
    out: Annotated[Path, Option(help="Folder for the findings")],
    config: Annotated[
        Path | None, Option(help="spaCy config of the pipelines to train; without one, only words are counted")
    ] = None,
    project: Annotated[Path | None, Option(help="YAML file with a section `check`")] = None,
    seed: Annotated[int, Option(help="Random seed")] = 0,
    workers: Annotated[int, Option(help="Pipelines to train at the same time")] = 1,
) -> None:
    """Find annotations that contradict the others, for the report."""
    with user_errors("Nothing was checked"):
        folds = None
        if config:
            section = read_section(project, "check", CheckSection)
            recipe = TrainingConfig(config, corpus, seed=seed, max_steps=section.steps, resume=True)
            folds = Folds(recipe, section.folds, choose_workers(workers))
        texts, findings = check(corpus, out, folds, tell=msg.info, progress=progress)
    msg.good(f"{counted(len(findings), 'suspected error')} in {counted(texts, 'text')}; review them in the report")


if __name__ == "__main__":
    run(check_labels_cli)

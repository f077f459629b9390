"""Put the decisions that a report's page has saved where the merge reads them."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.console import msg, print_counts, run, user_errors
from labelwise.errors import InputError
from labelwise.sources.decisions import DECISIONS, add_decisions
from labelwise.text import counted

FOLDER = Path("assets") / "decisions"


def decide_cli(
    file: Annotated[Path, typer.Argument(help="The decisions.jsonl that a report's page has saved")],
    project_root: Annotated[Path, typer.Option(help="Folder of the project")] = Path(),
) -> None:
    """Put the decisions that a report's page has saved where the merge reads them."""
    with user_errors("Nothing was decided"):
        if not (project_root / "project.yml").is_file():
            raise InputError(f"{project_root}: there is no project.yml; give the project's folder as --project-root")
        added = add_decisions(file, project_root / FOLDER)
    for row in added.problems:
        msg.warn(f"{file}:{row.line}: {row.problem}")
    print_counts("Decisions", added.counts)
    msg.good(f"{project_root / FOLDER / DECISIONS} has {counted(added.total, 'decision')}")
    msg.info("`weasel run all` merges them")


if __name__ == "__main__":
    run(decide_cli)

"""Import the decisions saved by a report's page, for the next merge."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, print_counts, run, user_errors
from labelwise.base.errors import InputError
from labelwise.base.text import counted
from labelwise.datasets.decisions import DECISIONS, add_decisions

FOLDER = Path("assets") / "decisions"


def import_decisions_cli(
    file: Annotated[
        Path, typer.Argument(help="decisions.jsonl, saved by a report's page, for example in your downloads")
    ],
    project_root: Annotated[Path, typer.Option(help="Folder of the project")] = Path(),
) -> None:
    """Import the decisions saved by a report's page, for the next merge."""
    with user_errors("No decision was imported"):
        if not (project_root / "project.yml").is_file():
            raise InputError(f"{project_root}: there is no project.yml; give the project's folder as --project-root")
        added = add_decisions(file, project_root / FOLDER, project_root / "corpus")
    for row in added.problems:
        msg.warn(f"{file}:{row.line}: {row.problem}")
    print_counts("Rows", added.counts)
    target, cases = project_root / FOLDER / DECISIONS, counted(added.cases, "decided case")
    msg.good(f"{target} has {cases}, in {counted(added.total, 'row')}")
    msg.info("`weasel run all` merges them")


if __name__ == "__main__":
    run(import_decisions_cli)

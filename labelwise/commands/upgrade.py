"""Bring a project to the installed version of labelwise, or decide what a merge of a clone left undecided."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise import __version__
from labelwise.commands.console import msg, user_errors
from labelwise.project.lock import LOCK
from labelwise.project.upgrade import upgrade, upgrade_clone


def upgrade_cli(
    project: Annotated[Path, typer.Argument(help="Folder of the project, or of a clone whose merge stopped")] = Path(),
) -> None:
    """Bring a project to the installed version of labelwise, or decide what a merge of a clone left undecided."""
    with user_errors("Nothing was upgraded"):
        if (project / LOCK).exists():
            done = upgrade(project)
            for name in done.changed:
                msg.info(name)
            conflicts = done.conflicts
            msg.good(f"{project} was of labelwise {done.before}, and is of {__version__}")
        else:
            conflicts = upgrade_clone(project)
            msg.good("project.yml has your values, and dvc.yaml is made from it: git commit --all")
    for name in conflicts:
        msg.warn(
            f"{project / name} has both sides of what can't be decided",
            f"{name.removesuffix('.conflict')} has the new one: put there what you want of yours, and delete the other",
        )
    if conflicts:
        raise typer.Exit(1)

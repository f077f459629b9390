"""Write a new project into a folder, which runs with the installed labelwise."""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.project.new import init


def init_cli(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that isn't there, or is empty")],
) -> None:
    """Write a new project into a folder, which runs with the installed labelwise."""
    with user_errors("No project was written"):
        init(out)
    msg.good(f"{out} is a project: put your data into {out / 'assets'}, or try it with the demo corpus as it is")
    msg.info(f"cd {out} && weasel run all")


if __name__ == "__main__":
    run(init_cli)

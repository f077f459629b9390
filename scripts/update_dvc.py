"""Write dvc.yaml from project.yml, so that DVC runs the very commands that weasel runs.

Before that, project.yml itself is written as DVC writes it, so that `dvc exp run -S` changes one line of it.
"""

from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.environment import command_line
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.settings import decode_yaml
from labelwise.project.stages import as_dvc_writes, dvc_yaml


def update_dvc_cli(
    project: Annotated[Path, typer.Argument(help="What to read")] = Path("project.yml"),
    dvc: Annotated[Path, typer.Argument(help="What to write")] = Path("dvc.yaml"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if there is something to write")] = False,
) -> None:
    """Write dvc.yaml from project.yml."""
    with user_errors(f"{dvc} isn't up to date"):
        decode_yaml(project.read_bytes(), dict, str(project), "write it as weasel reads it")
        contents = {project: as_dvc_writes(project), dvc: dvc_yaml(project)}
        if check and any(content != file.read_text(encoding="utf8") for file, content in contents.items()):
            raise InputError(f"{project} has changed: run `{command_line('update_dvc')}`")
        for path, content in contents.items() if not check else ():
            with atomic(path) as file:
                file.write_text(content, encoding="utf8")
    msg.good(f"{dvc} matches {project}")


if __name__ == "__main__":
    run(update_dvc_cli)

"""The data whose changes neither weasel nor DVC sees, by the commands of project.yml."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from labelwise.corpus.manifest import MANIFEST
from labelwise.settings import decode_yaml


class _Command(msgspec.Struct):
    name: str = ""
    deps: list[str] = []
    outputs: list[str] = []


class _Project(msgspec.Struct):
    commands: list[_Command] | None = None


def find_untracked(paths: Iterable[Path], out: Path, project: Path) -> list[Path]:
    """List the paths that no dependency of a merge covers, so that neither weasel nor DVC sees when they change.

    out (Path): the corpus; no path is listed if no command of the project has its manifest as an output.
    project (Path): the file with the commands, whose paths are relative to it.
    RAISES (InputError): the project can't be read.
    """
    root = project.parent.absolute()
    made = Path(os.path.normpath(out.absolute() / MANIFEST))
    content = decode_yaml(project.read_bytes(), _Project, str(project), "see its section `commands`")
    for command in content.commands or ():
        if any(root / output == made for output in command.outputs):
            tracked = [root / path for path in command.deps]
            normal = {path: Path(os.path.normpath(path.absolute())) for path in paths}
            return [path for path, one in normal.items() if not any(map(one.is_relative_to, tracked))]
    return []

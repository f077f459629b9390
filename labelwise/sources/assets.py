"""What project.yml says of data: checksums of fetched corpora, and the folders whose changes weasel and DVC see."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from weasel.util import get_checksum

from labelwise.corpus.manifest import MANIFEST
from labelwise.errors import InputError
from labelwise.settings import decode_yaml


class _Asset(msgspec.Struct):
    dest: str
    checksum: str | None = None


class _Command(msgspec.Struct):
    name: str = ""
    deps: list[str] = []
    outputs: list[str] = []


class _Project(msgspec.Struct):
    assets: list[_Asset] | None = None
    commands: list[_Command] | None = None


def verify_assets(folder: Path, project: Path = Path("project.yml")) -> None:
    """Check every asset of the project that is inside a folder, or that the folder is inside.

    weasel only prints a cross where a checksum differs.

    folder (Path): the source about to be read.
    project (Path): the file that declares the assets, whose paths are relative to it. Without it there are none.
    RAISES (InputError): an asset's checksum isn't the project's, or the project can't be read.
    """
    if not project.is_file():
        return
    folder = folder.resolve()
    for asset in _read_project(project).assets or ():
        path = (project.parent / asset.dest).resolve()
        concerned = path.is_relative_to(folder) or folder.is_relative_to(path)
        if concerned and asset.checksum and path.exists():
            found = get_checksum(path)
            if found != asset.checksum:
                raise InputError(
                    f"{asset.dest}: checksum {found}, but {project} says {asset.checksum}; delete the folder and "
                    f"fetch it again with `weasel assets --extra`, or correct {project} if the change is intended"
                )


def find_untracked(paths: Iterable[Path], out: Path, project: Path) -> list[Path]:
    """List the paths that no dependency of a merge covers, so that neither weasel nor DVC sees when they change.

    out (Path): the corpus; no path is listed if no command of the project has its manifest as an output.
    project (Path): the file with the commands, whose paths are relative to it.
    RAISES (InputError): the project can't be read.
    """
    root = project.parent.absolute()
    made = Path(os.path.normpath(out.absolute() / MANIFEST))
    for command in _read_project(project).commands or ():
        if any(root / output == made for output in command.outputs):
            tracked = [root / path for path in command.deps]
            normal = {path: Path(os.path.normpath(path.absolute())) for path in paths}
            return [path for path, one in normal.items() if not any(map(one.is_relative_to, tracked))]
    return []


def _read_project(project: Path) -> _Project:
    return decode_yaml(project.read_bytes(), _Project, str(project), "see its sections `assets` and `commands`")

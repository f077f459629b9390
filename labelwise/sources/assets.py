"""Check fetched corpora against the checksums in project.yml: weasel only prints a cross when one differs."""

from pathlib import Path

import msgspec
from weasel.util import get_checksum

from labelwise.errors import InputError
from labelwise.settings import decode_yaml


class _Asset(msgspec.Struct):
    dest: str
    checksum: str | None = None


class _Project(msgspec.Struct):
    assets: list[_Asset] | None = None


def verify_assets(folder: Path, project: Path = Path("project.yml")) -> list[str]:
    """Check every asset of the project that is inside a folder, or that the folder is inside.

    folder (Path): the source about to be read, or the project's folder for all assets.
    project (Path): the file that declares the assets, whose paths are relative to it. Without it there are none.
    RETURNS (list[str]): the assets that are there and match.
    RAISES (InputError): an asset's checksum isn't the project's, or the project can't be read.
    """
    if not project.is_file():
        return []
    folder = folder.resolve()
    right = []
    declared = decode_yaml(project.read_bytes(), _Project, str(project), "see its section `assets`")
    for asset in declared.assets or ():
        path = (project.parent / asset.dest).resolve()
        concerned = path.is_relative_to(folder) or folder.is_relative_to(path)
        if concerned and asset.checksum and path.exists():
            found = get_checksum(path)
            if found != asset.checksum:
                raise InputError(
                    f"{asset.dest}: checksum {found}, but {project} says {asset.checksum}; delete the folder and "
                    f"fetch it again with `weasel assets --extra`, or correct {project} if the change is intended"
                )
            right.append(asset.dest)
    return right

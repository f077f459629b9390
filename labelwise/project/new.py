"""Write a new project: a folder without a copy of the code."""

from contextlib import suppress
from pathlib import Path

from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.project.files import make_files
from labelwise.project.git import git
from labelwise.project.lock import LOCK

ORIGINALS = ".labelwise"  # the files as they were written, with which an upgrade compares those that are there
GENERATED = ("dvc.yaml", LOCK)  # from project.yml, and from the code


def init(out: Path) -> None:
    """Write a project, as a git repository of its own unless the folder is in one.

    out (Path): a folder that isn't there, or is empty.
    RAISES (InputError): it has something in it, this is a clone, or there is no git.
    """
    files = make_files()
    if out.is_dir() and any(".labelwise." not in path.name for path in out.iterdir()):
        raise InputError(f"{out}: the folder isn't empty; give a new one, or `labelwise upgrade` a project")
    made = not out.is_dir()
    out.mkdir(parents=True, exist_ok=True)
    try:
        with staged(out, folder=True) as folder:
            write(folder, files)
            if git(out, "rev-parse", "--is-inside-work-tree").returncode:
                git(folder, "init", "-q", "-b", "main")
    except BaseException:
        if made:
            with suppress(OSError):
                out.rmdir()
        raise


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files, and beside them the originals."""
    originals = {f"{ORIGINALS}/{name}": content for name, content in files.items() if name not in GENERATED}
    for name, content in {**files, **originals}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

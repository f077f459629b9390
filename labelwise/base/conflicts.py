"""Find git's conflict markers, left by an unresolved merge, rebase or stash.

People edit their own files. Of the files that commands write, one side is taken whole, and `dvc repro` runs the rest:
mixed lines of two runs are the results of neither.
"""

import re
import subprocess
from pathlib import Path

from labelwise.base.errors import InputError

MARKER = re.compile(rb"(?m)^(<{7}|>{7}) ")
WRITTEN = ("dvc.lock", "metrics", "plots")  # the paths of a project that commands write, and git tracks


def check_edited(content: bytes, name: str) -> None:
    """Refuse a file that people write, such as project.yml, with conflict markers."""
    if line := find_marker(content):
        raise InputError(
            f"{name}:{line}: a git conflict; edit the file: keep one side, or join both, without git's markers"
        )


def check_written(content: bytes, name: str, root: Path | None) -> None:
    """Refuse a file that commands write, such as dvc.lock, with conflict markers.

    root (Path | None): project folder; None for a file of a git revision.
    RAISES (InputError): if it has some; the last line is the command that resolves the conflict.
    """
    if not (line := find_marker(content)):
        return
    problem = f"{name}:{line}: a git conflict"
    if root is None:
        raise InputError(f"{problem} was committed there; give another revision")
    raise InputError(f"{problem}; resolve those in project.yml and configs first, then run:\n  {write_remedy(root)}")


def find_marker(content: bytes) -> int:
    """Return the number of the first line with a conflict marker; 0 without."""
    match = MARKER.search(content)
    return content.count(b"\n", 0, match.start()) + 1 if match else 0


def write_remedy(root: Path) -> str:
    """Return the command that takes a branch's version of the WRITTEN files, and runs the rest.

    In a rebase, git calls the branch's own version "theirs". A file that the branch deleted has none, and is deleted.
    If the markers were added or committed, git has no sides: the newest commit without markers stands in.
    """
    sides = [line.split("\t") for line in git(root, "ls-files", "--unmerged", *WRITTEN).decode().splitlines()]
    deleted: set[str] = set()
    if sides:
        rebase = git(root, "rev-parse", "--git-path", "rebase-merge", "--git-path", "rebase-apply").decode().split()
        version, stage = ("--theirs", "3") if any((root / path).exists() for path in rebase) else ("--ours", "2")
        deleted = {name for _, name in sides} - {name for info, name in sides if info.endswith(stage)}
        files = {*git(root, "ls-files", *WRITTEN).decode().splitlines()} - deleted
        paths = [path for path in WRITTEN if any(name.partition("/")[0] == path for name in files)]
    else:
        commits = git(root, "log", "--format=%h", "--", *WRITTEN).decode().split()
        find_markers = ("grep", "-lE", MARKER.pattern.decode().removeprefix("(?m)"))
        version = next((commit for commit in commits if not git(root, *find_markers, commit, "--", *WRITTEN)), "HEAD")
        paths = git(root, "ls-tree", "--name-only", version, *WRITTEN).decode().split()
    steps = [("git rm", sorted(deleted)), (f"git checkout {version}", paths)]
    return " && ".join([*(f"{command} {' '.join(names)}" for command, names in steps if names), "dvc repro"])


def git(root: Path, *command: str) -> bytes:
    """Return a git command's output in a folder; empty if it fails."""
    done = subprocess.run(["git", *command], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    return done.stdout

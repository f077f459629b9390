"""Bring a project to another version of labelwise: its settings, configs and data stay, all else is the new version's.

1. A file that the user left as it was written is the new version's; one that the version left is the user's.
2. A file that both changed is merged three ways (`three_ways`), against the original in `.labelwise`.
3. A file that the user deleted stays deleted; one that the new version doesn't have any more stays.
4. dvc.yaml is made from project.yml, and the lock from the code.

A clone is upgraded by git, which merges the code; of project.yml, it can't decide what both sides changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from labelwise import __version__
from labelwise.common.errors import InputError
from labelwise.common.files import staged_together
from labelwise.project.files import make_files, write_project
from labelwise.project.git import git
from labelwise.project.lock import LOCK, read_lock
from labelwise.project.new import GENERATED, ORIGINALS
from labelwise.project.three_ways import Merged, merge_lines, merge_project

PROJECT = "project.yml"
CONFLICT = ".conflict"  # suffix of the file with both sides


class Upgrade(NamedTuple):
    """What an upgrade did.

    before (str): the version that the project had.
    changed (list[str]): files that are others now.
    conflicts (list[str]): files with both sides of what couldn't be decided, beside those that they are of.
    """

    before: str
    changed: list[str]
    conflicts: list[str]


def upgrade(project: Path) -> Upgrade:
    """Upgrade a project to the labelwise that is installed; on failure, it is as it was.

    RAISES (InputError): it isn't one that `init` wrote, or a file of it can't be read.
    """
    before = read_lock(project)
    new = make_files()
    names = [name for name in new if name not in GENERATED]
    originals, conflicts = [f"{ORIGINALS}/{name}" for name in names], [name + CONFLICT for name in names]
    # All that could be written, so that the next run finishes what a killed one has begun to move.
    with _writing(project, [LOCK, "dvc.yaml", *names, *originals, *conflicts]) as write:
        changed = [name for name, content in _upgraded(project, new) if write(name, content)]
    shown = sorted(set(changed) - set(originals))
    return Upgrade(
        before["version"],
        [name for name in shown if name not in conflicts],
        [name for name in shown if name in conflicts],
    )


def _upgraded(project: Path, new: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an upgraded project, but for those that stay."""
    yield LOCK, new[LOCK]
    for name, theirs in new.items():
        if name in GENERATED:
            continue
        base, ours = (_read(folder / name) for folder in (project / ORIGINALS, project))
        yield f"{ORIGINALS}/{name}", theirs
        if merged := _merge(name, base, ours, theirs):
            written = write_project(merged.content) if name == PROJECT else {name: merged.content.encode()}
            yield from written.items()
            if merged.conflict:
                yield name + CONFLICT, merged.conflict.encode()


def upgrade_clone(clone: Path) -> list[str]:
    """Decide what git, merging a new version into a clone, left undecided of project.yml and dvc.yaml.

    RETURNS (list[str]): the file with both sides of what can't be decided either, if there is one.
    RAISES (InputError): nothing is to be decided there.
    """
    sides = [git(clone, "show", f":{number}:./{PROJECT}") for number in (1, 2, 3)]
    if any(side.returncode for side in sides):
        raise InputError(f"{clone}: no {LOCK}, and no merge in which {PROJECT} is in conflict: nothing to upgrade")
    base, ours, theirs = (side.stdout.decode() for side in sides)
    merged = merge_project(base, ours, theirs, __version__)
    with _writing(clone, [PROJECT, "dvc.yaml", PROJECT + CONFLICT]) as write:
        for name, content in write_project(merged.content).items():
            write(name, content)
        if merged.conflict:
            write(PROJECT + CONFLICT, merged.conflict.encode())
    return [PROJECT + CONFLICT] if merged.conflict else []


def _merge(name: str, base: bytes | None, ours: bytes | None, theirs: bytes) -> Merged | None:
    """Merge a file; None is one that isn't there, and as a result one that stays.

    RAISES (InputError): the user's isn't UTF-8, or what `three_ways` raises.
    """
    if ours == base or (ours is None and base is None):
        return Merged(theirs.decode())
    if ours is None or (theirs == base and name != PROJECT):  # which dvc.yaml is made from, perhaps otherwise now
        return None
    try:
        own = ours.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: it isn't UTF-8: {error}; take it from git again") from error
    merge = merge_project if name == PROJECT else merge_lines
    return merge((base or b"").decode(), own, theirs.decode(), __version__)


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


@contextmanager
def _writing(project: Path, names: Sequence[str]) -> Iterator[Callable[[str, bytes], bool]]:
    """Yield what writes some of these files into a project, unless they are so already: all of them, or none."""
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
    with staged_together(*(project / name for name in names)) as paths:
        places = dict(zip(names, paths, strict=True))

        def write(name: str, content: bytes) -> bool:
            """Write a file, and tell whether it is another now."""
            differs = _read(project / name) != content
            if differs:
                places[name].write_bytes(content)
            return differs

        yield write

"""Refuse data that weasel and DVC don't track: changes they don't see, and files that a clone lacks."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.conflicts import check_written
from labelwise.base.errors import InputError
from labelwise.base.settings import decode_yaml
from labelwise.base.text import counted
from labelwise.sources.files import data_in, find_files, printable


class _Command(msgspec.Struct):
    name: str = ""
    deps: list[str] = []
    outputs: list[str] = []


class _Project(msgspec.Struct):
    vars: dict[str, Any] | None = None
    commands: list[_Command] | None = None


class _Dependency(msgspec.Struct):
    path: str
    nfiles: int = 0


class _Stage(msgspec.Struct):
    deps: list[_Dependency] = []


class _Lock(msgspec.Struct):
    stages: dict[str, _Stage] = {}


def check_kept(folder: Path, root: Path = Path()) -> None:
    """Refuse an empty folder of a clone or an experiment, if the project's dvc.lock knows its files."""
    lock = root / "dvc.lock"
    if not lock.is_file():
        return
    check_written(lock.read_bytes(), str(lock), root)
    content = decode_yaml(lock.read_bytes(), _Lock, str(lock), "DVC writes it; take git's: git checkout dvc.lock")
    deps = [dep for stage in content.stages.values() for dep in stage.deps if Path(dep.path) == folder]
    before = max((dep.nfiles for dep in deps), default=0)
    now = len(find_files(root / folder, ("",))) if (root / folder).is_dir() else 0
    # A folder with some data has all that its owner left there.
    if now < before and not (now and data_in(root / folder)):
        raise InputError(
            f"{folder}: {lock} knows {counted(before, 'file')} in it, and {now:,} {'is' if now == 1 else 'are'} here. "
            f"Fetch them: `dvc pull`. If DVC doesn't track them yet, run `dvc add {folder}/NAME` where they are, and "
            "commit; clones and experiments have what git or DVC track"
        )


def check_tracked(files: Iterable[Path], made: Path, project: Path, given: Iterable[Path] = ()) -> None:
    """Refuse files that a project's command reads, and no dependency of it covers.

    made (Path): an output of the command; files are accepted if it isn't the project's.
    given (Iterable[Path]): dependencies named on the command line instead of by variables.
    """
    root, output = Path(os.path.realpath(project.parent)), os.path.realpath(made)
    content = decode_yaml(project.read_bytes(), _Project, str(project), "see its section `commands`")
    for command in content.commands or ():
        if output not in (os.path.realpath(root / name) for name in command.outputs):
            continue
        deps = [root / _substitute(dep, content.vars or {}) for dep in command.deps]
        if unseen := _find_unseen(files, [*given, *deps]):
            lines = [printable(path.relative_to(root) if path.is_relative_to(root) else path) for path in unseen]
            raise InputError(
                f"{lines[0]}: neither weasel nor DVC would see a change here, and both would skip {command.name!r}. "
                "Put the data, or a link to each file, into a folder that the command depends on (they don't follow "
                f"links to folders), or add to its `deps` in {project}, and of its stage in dvc.yaml:\n"
                + "\n".join(f"  - {line}" for line in lines)
            )


def _substitute(dependency: str, variables: dict[str, Any]) -> str:
    return re.sub(r"\$\{vars\.(\w+)\}", lambda match: str(variables.get(match[1], "")), dependency)


def _find_unseen(files: Iterable[Path], dependencies: Iterable[Path]) -> list[Path]:
    """List the files outside all dependencies and their links; several files as their folder."""
    roots = {Path(os.path.realpath(path)) for path in dependencies}
    outside = [
        Path(os.path.realpath(file))
        for folder, inside in _by_folder(files).items()
        if not any(map(Path(os.path.realpath(folder)).is_relative_to, roots))
        for file in inside
    ]
    seen = roots | set(_follow_links(roots)) if outside else set()
    unseen = _by_folder(set(outside) - seen)
    return sorted(folder if len(inside) > 1 else inside[0] for folder, inside in unseen.items())


def _by_folder(files: Iterable[Path]) -> dict[Path, list[Path]]:
    grouped = defaultdict(list)
    for file in files:
        grouped[file.parent].append(file)
    return grouped


def _follow_links(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        for folder, _, names in os.walk(root):
            links = (Path(folder, name) for name in names if Path(folder, name).is_symlink())
            yield from (Path(os.path.realpath(link)) for link in links)

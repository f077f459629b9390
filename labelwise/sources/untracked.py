"""The data whose changes neither weasel nor DVC sees, by the commands of project.yml."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from labelwise.errors import InputError
from labelwise.settings import decode_yaml
from labelwise.sources.files import printable


class _Command(msgspec.Struct):
    name: str = ""
    deps: list[str] = []
    outputs: list[str] = []


class _Project(msgspec.Struct):
    vars: dict[str, Any] | None = None
    commands: list[_Command] | None = None


def check_tracked(files: Iterable[Path], made: Path, project: Path, given: Iterable[Path] = ()) -> None:
    """Check that weasel and DVC see when files change that a command of a project reads.

    made (Path): what the command makes; if this is no output in the project, nothing is checked.
    project (Path): the file with the commands, whose paths are relative to it.
    given (Iterable[Path]): dependencies that the command line names in the place of variables.
    RAISES (InputError): no dependency covers some of them, or the project can't be read.
    """
    root, output = Path(os.path.realpath(project.parent)), os.path.realpath(made)
    content = decode_yaml(project.read_bytes(), _Project, str(project), "see its section `commands`")
    for command in content.commands or ():
        if output not in (os.path.realpath(root / name) for name in command.outputs):
            continue
        deps = [_substitute(dep, content.vars or {}) for dep in command.deps]
        seen = {file for path in (*given, *(root / dep for dep in deps)) for file in _list_seen(path)}
        unseen = defaultdict(list)
        for file in {Path(os.path.realpath(file)): None for file in files}:
            if file not in seen:
                unseen[file.parent].append(file)
        if unseen:
            paths = [found[0] if len(found) == 1 else folder for folder, found in unseen.items()]
            lines = [printable(path.relative_to(root) if path.is_relative_to(root) else path) for path in paths]
            raise InputError(
                f"{lines[0]}: neither weasel nor DVC would see a change here, and both would skip {command.name!r}. "
                "Put the data, or a link to each file, into a folder that the command depends on (they don't follow "
                f"links to folders), or add to its `deps` in {project}, and run update_dvc:\n"
                + "\n".join(f"  - {line}" for line in lines)
            )


def _substitute(dependency: str, variables: dict[str, Any]) -> str:
    return re.sub(r"\$\{vars\.(\w+)\}", lambda found: str(variables.get(found[1], "")), dependency)


def _list_seen(dependency: Path) -> Iterator[Path]:
    """Yield the files that weasel and DVC read of a dependency: those that links lead to, but not in linked folders."""
    real = os.path.realpath(dependency)
    yield Path(real)
    for folder, _, names in os.walk(real):
        yield from (Path(os.path.realpath(Path(folder, name))) for name in names)

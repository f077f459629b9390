"""Environments with some installed packages and their requirements."""

import os
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.conftest import run_command


def bare_environment(folder: Path, *names: str) -> Path:
    """Link installed packages into a new environment; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    seen: set[str] = set()
    for top in sorted(set().union(*(required_files(name, seen) for name in names))):
        (site / top.name).symlink_to(top)
    return folder / "bin" / "python"


def in_bare(python: Path, *arguments: object, cwd: Path | None = None) -> str:
    """Run Python there, without this project; return its output."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return run_command([python, *arguments], cwd or python.parent, clean).stdout


def required_files(name: str, seen: set[str]) -> set[Path]:
    """Return the files in site-packages of a distribution and its requirements."""
    if name.lower() in seen:
        return set()
    seen.add(name.lower())
    try:
        package = distribution(name)
    except PackageNotFoundError:  # for another platform or Python
        return set()
    root = Path(package.locate_file(""))
    tops = {Path(file).parts[0] for file in package.files or ()} - {"..", "__pycache__"}
    files = {root / top for top in tops if (root / top).exists()}
    for line in package.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            files |= required_files(requirement.name, seen)
    return files

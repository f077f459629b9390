"""labelwise as its wheel installs it, beside the packages of this environment, and projects that run with it."""

import os
import subprocess
import sys
from pathlib import Path

from labelwise.package.wheel import build_recognizer
from tests.clone import IDENTITY, tracked
from tests.conftest import ROOT, run_command

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


class Installed:
    """A folder with the installed package and its command.

    site (Path): with the package and `bin/labelwise`.
    """

    def __init__(self, site: Path) -> None:
        self.site = site
        path = os.pathsep.join([str(site / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, **IDENTITY, "PYTHONPATH": str(site), "PATH": path, "COLUMNS": "200"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(self, *command: object, cwd: Path, status: int = 0) -> str:
        """Run a command in a folder, and return what it prints."""
        done = run_command(command, cwd, self.environment, status)
        return done.stdout + done.stderr


def build(source: Path, folder: Path) -> Path:
    """Build the wheel of a clone's files."""
    for name in tracked():
        if not name.startswith(("tests/", "benchmarks/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return run_build(source, folder)


def run_build(source: Path, folder: Path) -> Path:
    """Build a wheel, without a warning."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", BUILD, folder], cwd=source, check=True, capture_output=True, text=True)
    assert "Warning" not in done.stderr, done.stderr
    (made,) = folder.iterdir()
    return made


def install(wheel: Path, site: Path) -> Installed:
    """Install a wheel with the recognizer's, without what else it requires."""
    build_recognizer(wheel.parent)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", site, *wheel.parent.glob("*.whl")], check=True, capture_output=True)
    return Installed(site)

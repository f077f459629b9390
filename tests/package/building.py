"""The wheel of labelwise, built of the files of a clone."""

import subprocess
import sys
from pathlib import Path

from tests.clone import tracked
from tests.conftest import ROOT

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


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

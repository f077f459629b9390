import subprocess
import sys
from pathlib import Path

from tests.clone import tracked
from tests.conftest import ROOT

BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def copy_clone(source: Path) -> None:
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())


def build(source: Path, folder: Path) -> Path:
    copy_clone(source)
    return run_build(source, folder)


def run_build(source: Path, folder: Path, kind: str = "wheel") -> Path:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, f"build_{kind}", folder]
    done = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    assert "Warning" not in done.stderr, done.stderr
    (wheel,) = folder.iterdir()
    return wheel

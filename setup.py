"""Build from what pyproject.toml lists alone, and add the commit to the version between two releases."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import setup

ROOT = Path(__file__).parent
COMMIT = ["git", "describe", "--always", "--exclude=*", "--abbrev=8", "--dirty=.dirty"]


def find_commit() -> str:
    """Name a clone's commit, such as 1a2b3c4d, or 1a2b3c4d.dirty with changes; empty elsewhere, and without git."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        return subprocess.run(COMMIT, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    except FileNotFoundError:
        return ""


development = re.search(r'(?m)^__version__ = ".+\.dev\d+"', (ROOT / "labelwise/__init__.py").read_text("utf8"))
commit = find_commit() if development else ""
# setuptools would ship what an earlier build left: the files in build/lib, and those that SOURCES.txt lists.
(ROOT / "labelwise.egg-info/SOURCES.txt").unlink(missing_ok=True)
with TemporaryDirectory() as build_base:
    setup(
        options={
            "build": {"build_base": build_base},
            # In an sdist, setup.cfg has it from setuptools, and that counts.
            "egg_info": {"tag_build": f"+g{commit}" if commit else ""},
        },
    )

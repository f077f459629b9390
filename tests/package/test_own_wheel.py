"""The wheel of labelwise itself has all its files."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

import labelwise
from tests.clone import IDENTITY
from tests.conftest import ROOT
from tests.project.installed import build, run_build


def tracked() -> list[str]:
    return subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).splitlines()


def test_the_wheel_has_all_files(tmp_path):
    wheel = build(tmp_path / "source", tmp_path / "wheels")
    assert wheel.name == f"labelwise-{labelwise.__version__}-py3-none-any.whl"  # without git, without a commit
    ours = {
        name.replace("scripts/", "labelwise/scripts/")
        for name in tracked()
        if name.startswith(("labelwise/", "scripts/", "spacy_per_label/")) and (ROOT / name).is_file()
    }
    # project/test_new.py has the files of a clone.
    assert {name for name in code_in(wheel) if not name.startswith("labelwise/project/clone/")} == ours


def git(folder: Path, *command: str) -> str:
    return subprocess.check_output(["git", *command], cwd=folder, env={**os.environ, **IDENTITY}, text=True)


def code_in(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist() if ".dist-info/" not in name}


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone with one commit, from which a wheel was built before it was one."""
    build(tmp_path / "clone", tmp_path / "wheels")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        git(tmp_path / "clone", *command)
    return tmp_path / "clone"


def test_builds_of_two_commits_differ_in_their_version_alone(clone, tmp_path):
    found = {}
    for folder, comment in {"one": "", "two": "", "three": "# edited"}.items():
        commit = git(clone, "rev-parse", "--short=8", "HEAD").strip()
        if comment:
            with (clone / "Makefile").open("a") as file:
                file.write(comment)
        wheel = run_build(clone, tmp_path / folder)
        dirty = ".dirty" if comment else ""
        assert wheel.name == f"labelwise-{labelwise.__version__}+g{commit}{dirty}-py3-none-any.whl"
        found[wheel.name] = code_in(wheel)
        git(clone, "commit", "-q", "--allow-empty", "-m", "again")
    assert len(found) == 3
    first, *others = found.values()
    assert others == [first, first]

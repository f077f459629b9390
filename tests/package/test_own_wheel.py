"""The wheel of labelwise itself has all its files."""

import os
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import labelwise
from tests.bare import bare_environment
from tests.clone import IDENTITY
from tests.conftest import ROOT
from tests.project.installed import build, run_build
from tests.report.report_inputs import make_docs, write_results

REPORT = """
from pathlib import Path
import labelwise
from labelwise.report.page import write_report
assert "site-packages" in labelwise.__file__
write_report(Path(), "cpu", Path("report.html"))
"""


def tracked() -> list[str]:
    return subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).splitlines()


def test_a_report_is_made_where_the_wheel_alone_is_installed(tmp_path):
    wheel = build(tmp_path / "source", tmp_path / "wheels")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    needed = [Requirement(line).name for line in project["dependencies"]]
    python = bare_environment(tmp_path / "env", *needed)
    assert wheel.name == f"labelwise-{labelwise.__version__}-py3-none-any.whl"  # without git, without a commit
    with zipfile.ZipFile(wheel) as file:
        ours = {
            name.replace("scripts/", "labelwise/scripts/")
            for name in tracked()
            if name.startswith(("labelwise/", "scripts/", "spacy_per_label/")) and (ROOT / name).is_file()
        }
        parts = (".dist-info/", "labelwise/project/clone/")  # project/test_new.py has the second
        assert {name for name in file.namelist() if not any(part in name for part in parts)} == ours
        file.extractall(next((tmp_path / "env").glob("lib/python*/site-packages")))
    write_results(tmp_path / "project", make_docs())
    done = subprocess.run(
        [python, "-c", REPORT], cwd=tmp_path / "project", env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "CPU pipeline" in Path(tmp_path / "project/report.html").read_text(encoding="utf8")


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

"""The wheel of labelwise itself has all its files."""

import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.bare import bare_environment
from tests.conftest import ROOT
from tests.project.installed import build
from tests.report.report_inputs import make_docs, write_results

PROJECT_FILES = (
    *(
        ".dvc/.gitignore",
        ".dvc/config",
        ".dvcignore",
        ".gitignore",
        "configs/cpu.cfg",
        "configs/gpu.cfg",
        "project.yml",
    ),
    *("assets/README.md", "assets/prodigy/datasets.yml.example"),
    *(f"assets/{name}/.gitkeep" for name in ("brat", "decisions", "prodigy", "raw")),
)
REPORT = """
from pathlib import Path
import labelwise
from labelwise.report.page import write_report
assert "site-packages" in labelwise.__file__
write_report(Path(), "cpu", Path("report.html"))
"""


def tracked() -> list[str]:
    return subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).splitlines()


@pytest.mark.slow
def test_a_report_is_made_where_the_wheel_alone_is_installed(tmp_path):
    wheel = build(tmp_path / "source", tmp_path / "wheels")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    needed = [Requirement(line).name for line in project["dependencies"]]
    python = bare_environment(tmp_path / "env", *needed)
    with zipfile.ZipFile(wheel) as file:
        clones = tuple(f"labelwise/project/clone/{name}" for name in PROJECT_FILES)
        ours = {name for name in tracked() if name.startswith("labelwise/") and (ROOT / name).is_file()}
        assert {name for name in file.namelist() if ".dist-info/" not in name} == {*ours, *clones}
        file.extractall(next((tmp_path / "env").glob("lib/python*/site-packages")))
    write_results(tmp_path / "project", make_docs())
    done = subprocess.run(
        [python, "-c", REPORT], cwd=tmp_path / "project", env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "<h1>The CPU pipeline</h1>" in Path(tmp_path / "project/report.html").read_text(encoding="utf8")

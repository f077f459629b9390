"""The wheel of labelwise itself has all its files."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.bare import bare_environment
from tests.conftest import ROOT
from tests.report.report_inputs import make_docs, write_results

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
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
    source = tmp_path / "source"
    ours = [name for name in tracked() if name.startswith("labelwise/") and (ROOT / name).is_file()]
    for name in ("pyproject.toml", "README.md", "LICENSE", *ours):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    needed = [Requirement(line).name for line in project["dependencies"]]
    python = bare_environment(tmp_path / "env", *needed)
    with zipfile.ZipFile(wheel) as file:
        assert {name for name in file.namelist() if name.startswith("labelwise/")} == set(ours)
        file.extractall(next((tmp_path / "env").glob("lib/python*/site-packages")))
    write_results(tmp_path / "project", make_docs())
    done = subprocess.run(
        [python, "-c", REPORT], cwd=tmp_path / "project", env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "<h1>The CPU pipeline</h1>" in Path(tmp_path / "project/report.html").read_text(encoding="utf8")

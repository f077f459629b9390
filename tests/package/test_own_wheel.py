"""The wheel and the sdist of labelwise itself have its code and templates, and nothing of the clone around it."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import labelwise
from tests.clone import IDENTITY, tracked
from tests.package.building import build, run_build


def code_in(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_all_files_and_between_releases_names_its_commit(tmp_path):
    clone, environment = tmp_path / "clone", {**os.environ, **IDENTITY}
    wheel = build(clone, tmp_path / "wheels")
    assert wheel.name == f"labelwise-{labelwise.__version__}-py3-none-any.whl"  # without git, without a commit
    code = code_in(wheel)
    # Code and the templates alone: no project.yml, configs, data, nor DVC's settings.
    assert {*code} == {name for name in tracked() if name.startswith("labelwise/")}
    assert {Path(name).suffix for name in code} <= {".py", ".jinja", ".css", ".js", ".md", ".svg", ".html"}, code.keys()
    for command in ("init -q", "add -A", "commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=clone, env=environment, check=True)
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=clone, text=True).strip()
    for folder, edited in (("clean", ""), ("dirty", "# edited")):
        with (clone / "Makefile").open("a") as file:
            file.write(edited)
        wheel = run_build(clone, tmp_path / folder)
        local = f"+g{commit}{'.dirty' * bool(edited)}" if ".dev" in labelwise.__version__ else ""
        assert wheel.name == f"labelwise-{labelwise.__version__}{local}-py3-none-any.whl"
        assert code_in(wheel) == code


def test_the_sdist_has_the_code_and_what_builds_it(tmp_path):
    clone = tmp_path / "clone"
    build(clone, tmp_path / "wheels")
    (clone / ".dvc/config.local").write_text("[remote]")
    made = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", made, tmp_path], cwd=clone, check=True, capture_output=True)
    [file] = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    ours = {name for name in tracked() if name.startswith("labelwise/")}
    others = {name for name in names - ours if ".egg-info/" not in name}
    assert ours <= names
    assert others == {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "setup.py"}

"""The wheel of labelwise itself has all its files."""

import os
import subprocess
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
    ours = {
        name.replace("scripts/", "labelwise/scripts/")
        for name in tracked()
        if name.startswith(("labelwise/", "scripts/"))
    }
    # project/test_new.py has the files of a clone.
    assert {name for name in code if not name.startswith("labelwise/project/clone/")} == ours
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

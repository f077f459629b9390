"""The console command `labelwise`, and the process that commands run in."""

import os
import shutil
import subprocess
import sys

import pytest

from labelwise import __version__
from labelwise.__main__ import commands
from tests.conftest import ROOT

MAIN = "import sys; from labelwise.__main__ import main; main()"


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def labelwise(*arguments: str) -> subprocess.CompletedProcess:
    return run("-c", MAIN, *arguments)


@pytest.mark.parametrize("name", ["make-demo", "make_demo"])
def test_a_command_is_the_same_by_either_name(name):
    ours, clones = labelwise(name, "--help"), run("-m", "scripts.make_demo", "--help")
    assert ours.returncode == clones.returncode == 0
    assert ours.stdout.replace(f"labelwise {name}", "python -m scripts.make_demo").split() == clones.stdout.split()


def test_what_is_wrong_has_the_same_status():
    assert labelwise("merge").returncode == 2
    assert labelwise("merge", "nothing.yml", "corpus").returncode == 1


def test_all_commands_are_listed_with_a_sentence_each():
    listed = labelwise("--help")
    assert listed.returncode == 0
    lines = [line for line in listed.stdout.splitlines() if line.startswith("  ")]
    assert len(lines) == len(commands())
    assert "  make-demo        Write a demo corpus, to try everything without your own data." in lines


def test_the_version_is_printed():
    done = labelwise("--version")
    assert (done.returncode, done.stdout) == (0, f"labelwise {__version__}\n")


def test_no_such_command():
    done = labelwise("marge")
    assert done.returncode == 1
    assert done.stderr == "labelwise marge: there is no such command\n"
    assert "  merge " in done.stdout


def test_a_clone_deletes_the_bytecode_that_others_left_in_the_folders_that_stages_depend_on(tmp_path):
    """Such as a notebook that loaded a pipeline; weasel's checksum of a folder covers it."""
    for name in ("labelwise", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folders = [tmp_path / "labelwise" / name / "__pycache__" for name in ("demo", "merge/rules")]
    for code, left in (("import labelwise.demo, labelwise.merge.rules", True), ("import scripts", False)):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
        assert [folder.exists() for folder in folders] == [left, left]

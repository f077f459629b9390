"""Upgrading a project: settings and data stay, and on failure everything does."""

import json
import os
import subprocess
import sys

import pytest
import srsly

from labelwise.common import outputs
from labelwise.common.errors import InputError
from labelwise.project import upgrade as upgrades
from labelwise.project.files import derive, write_project
from labelwise.project.lock import LOCK, check_lock
from labelwise.project.new import write
from tests.conftest import ROOT, write_jsonl
from tests.project.installed import PROJECT, edit

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def files(folder) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def mine(installed, tmp_path):
    """A project with settings and data of its own."""
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    project = tmp_path / "mine"
    edit(project / "project.yml", "  alignment: drop ", "  alignment: expand ")
    edit(project / "project.yml", "  - 8-?\\)\n", "  - mine\n")
    edit(project / "configs/cpu.cfg", "max_steps = 1500", "max_steps = 77")
    (project / "configs/own.cfg").write_text("[nlp]\n")
    (project / "assets/raw/.gitkeep").unlink()
    write_jsonl(project / "assets/prodigy/person.jsonl", [{"text": "Ann"}])
    return project


LATER = {
    PROJECT: ("  alignment: drop             # drop", "  alignment: drop             # or later: drop"),
    "project/clone/.gitignore": ("/build/\n", "/build/\n/built/\n"),
    "project/clone/configs/cpu.cfg": ("[initialize]\n", "# later\n[initialize]\n"),
}


def test_settings_configs_and_data_stay_and_all_else_is_new(installed, mine, tmp_path):
    before = files(mine)
    later = installed.next(tmp_path / "later", **LATER)
    printed = later.run("labelwise", "upgrade", "mine", cwd=tmp_path)
    assert "mine was of labelwise 0." in printed
    after = files(mine)
    project = srsly.read_yaml(mine / "project.yml")
    assert project["vars"]["alignment"] == "expand"
    assert project["tokenizer"]["no_exceptions"][-1] == "mine"
    assert b"  alignment: expand           # or later: drop" in after["project.yml"]
    assert b"max_steps = 77" in after["configs/cpu.cfg"]
    assert b"# later" in after["configs/cpu.cfg"]
    assert b"/built/" in after[".gitignore"]
    changed = {name for name in after if after[name] != before.get(name)}
    own = {"project.yml", ".gitignore", "configs/cpu.cfg"}
    assert changed == {*own, *(f".labelwise/{name}" for name in own), "labelwise.lock"}
    assert before.keys() == after.keys()
    later.run("labelwise", "update-dvc", "--check", cwd=mine)
    assert later.run("labelwise", "upgrade", "mine", cwd=tmp_path)
    assert files(mine) == after


def test_what_cannot_be_decided_is_written_beside_with_both_sides(installed, mine, tmp_path):
    later = installed.next(
        tmp_path / "later", **{"project/clone/configs/cpu.cfg": ("max_steps = 1500", "max_steps = 1600")}
    )
    printed = later.run("labelwise", "upgrade", ".", cwd=mine, status=1)
    assert "configs/cpu.cfg.conflict has both sides of what can't be decided" in printed
    assert "max_steps = 1600" in (mine / "configs/cpu.cfg").read_text()
    both = (mine / "configs/cpu.cfg.conflict").read_text()
    assert "max_steps = 77\n||||||| as it was\nmax_steps = 1500\n=======\nmax_steps = 1600\n" in both
    later.run("labelwise", "update-dvc", "--check", cwd=mine)


@pytest.mark.parametrize("broken", ["project.yml", "configs/cpu.cfg", "labelwise.lock"])
def test_nothing_changes_where_something_cannot_be_read(installed, mine, tmp_path, broken):
    (mine / broken).write_bytes(b"a: [\xff")
    before = files(mine)
    printed = installed.next(tmp_path / "later", **LATER).run("labelwise", "upgrade", ".", cwd=mine, status=1)
    assert broken in printed
    assert "Traceback" not in printed
    assert files(mine) == before


@pytest.mark.parametrize("moves", [0, 1, 3])
def test_an_upgrade_that_is_killed_while_it_moves_files_is_refused_and_then_finished(tmp_path, monkeypatch, moves):
    """As if power failed: nothing cleans up."""
    contents = {
        version: {**write_project(derive((ROOT / "project.yml").read_text(encoding="utf8"))), "a.txt": version.encode()}
        for version in ("1", "2")
    }
    for version, made in contents.items():
        made[LOCK] = json.dumps({"version": version, "code": version}).encode()
    for folder in ("killed", "whole"):
        write(tmp_path / folder, contents["1"])
    monkeypatch.setattr(upgrades, "make_files", lambda: contents["2"])
    upgrades.upgrade(tmp_path / "whole")
    move, left = outputs._move, [None] * moves

    def killed(output: outputs.Output) -> None:
        if not left:
            os._exit(9)
        left.pop()
        move(output)

    child = os.fork()
    if not child:
        outputs._move = killed
        upgrades.upgrade(tmp_path / "killed")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with pytest.raises(
        InputError, match="labelwise upgrade is replacing this together with other files, or was killed"
    ):
        check_lock(tmp_path / "killed")
    upgrades.upgrade(tmp_path / "killed")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_a_folder_that_is_no_project_is_an_error(installed, tmp_path):
    printed = installed.run("labelwise", "upgrade", ".", cwd=tmp_path, status=1)
    assert "no labelwise.lock" in printed
    assert list(tmp_path.iterdir()) == []


def test_a_clone_whose_merge_stopped_gets_its_own_values(tmp_path):
    """As in `git merge` of a tag: both sides have changed lines beside each other."""

    def git(*arguments: str, status: int = 0) -> str:
        done = subprocess.run(["git", *IDENTITY, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    for name in ("project.yml", "dvc.yaml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "start")
    git("checkout", "-qb", "later")
    edit(tmp_path / "project.yml", "  coverage: by-label          #", "  coverage: by-label          # later:")
    git("commit", "-qam", "later")
    git("checkout", "-q", "main")
    edit(tmp_path / "project.yml", "  alignment: drop             #", "  alignment: expand           #")
    git("commit", "-qam", "mine")
    git("merge", "later", status=1)
    command = [sys.executable, "-m", "scripts.upgrade", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    text = (tmp_path / "project.yml").read_text(encoding="utf8")
    assert "  alignment: expand           #" in text
    assert "  coverage: by-label          # later:" in text
    git("commit", "-qam", "merged")
    assert git("status", "--porcelain") == ""

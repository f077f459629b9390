import re
import shlex
import shutil
import subprocess
from copy import copy

import pytest

from scripts.compare import compare_cli
from scripts.import_decisions import import_decisions_cli
from scripts.merge import merge_cli
from scripts.report import report_cli
from scripts.train import train_cli
from tests.compare.test_revisions import Repository
from tests.conftest import call, task, write_jsonl

SIDES = "<<<<<<< HEAD\n{}=======\n{}>>>>>>> main\n"
EDIT = "a git conflict; edit the file"


def conflict(file, before=""):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before + SIDES.format("one\n", "other\n"))
    return before.count("\n") + 1


@pytest.mark.parametrize("file", ["project.yml", "datasets.yml", "configs/tokenizer.yml", "decisions/decisions.jsonl"])
def test_a_merge_names_the_line_of_a_file_that_people_write(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "a.jsonl", [task("Ann left", (0, 3))])
    (tmp_path / "datasets.yml").write_text("- name: a\n  path: a.jsonl\n  labels: [A]\n")
    (tmp_path / "project.yml").write_text("merge:\n  lang: en\n")
    (tmp_path / "decisions").mkdir()
    line = conflict(tmp_path / file, "# a comment\n" if file.endswith("yml") else "")
    options = ("--project", "project.yml", "--decisions", "decisions")
    printed = " ".join(call(merge_cli, "datasets.yml", "corpus", *options, status=1).split())
    assert f"{file}:{line}: {EDIT}" in printed
    assert "checkout" not in printed
    assert not (tmp_path / "corpus/manifest.json").exists()


def test_a_training_names_the_line_of_its_config(demo_corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "configs/cpu.cfg"
    line = conflict(config, "[nlp]\n")
    printed = " ".join(call(train_cli, "cpu", status=1).split())
    assert f"configs/cpu.cfg:{line}: {EDIT}" in printed


def test_decide_keeps_a_file_of_decisions_with_a_conflict(tmp_path):
    (tmp_path / "project.yml").touch()
    file = tmp_path / "saved.jsonl"
    line = conflict(file)
    assert f"saved.jsonl:{line}: {EDIT}" in call(import_decisions_cli, file, "--project-root", tmp_path, status=1)


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("committed"))
    repository.evaluate(4)
    (repository.root / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    repository.commit("results")
    return repository


@pytest.fixture
def evaluated(committed, tmp_path, monkeypatch):
    repository = copy(committed)
    repository.root = shutil.copytree(committed.root, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return repository


def differ(made, file):
    """Change the end of a file on branches "main" and "mine"; return both versions."""
    versions = {}
    for branch in ("mine", "main"):
        made.run("git", "checkout", "-q", *["-b"] * (branch == "mine"), branch)
        text = (made.root / file).read_text()
        changed = {
            "dvc.lock": f"{text}# {branch}\n",
            "metrics/cpu.json": text.replace('"labelwise": ""', f'"labelwise": "{branch}"'),
            "plots/cpu.tsv": f"{text}{len(branch) + len(versions)}\t0.1\n",
        }
        versions[branch] = changed[file]
        (made.root / file).write_text(versions[branch])
        made.run("git", "commit", "-qam", branch)
    return versions


def commands(printed):
    return [line.strip() for line in printed.splitlines() if "git checkout" in line]


@pytest.mark.parametrize(
    ("way", "file"),
    [
        ("merge", "dvc.lock"),
        ("merge", "metrics/cpu.json"),
        ("rebase", "plots/cpu.tsv"),
        ("stash", "metrics/cpu.json"),
        ("added", "dvc.lock"),
        ("committed", "plots/cpu.tsv"),
    ],
)
def test_a_file_that_commands_write_is_named_with_a_line_that_takes_the_branchs_own(way, file, evaluated):
    versions = differ(evaluated, file)
    evaluated.run("git", "checkout", "-q", "mine")
    if way == "stash":
        evaluated.run("git", "reset", "-q", "--soft", "HEAD~1")
        evaluated.run("git", "stash", "-q")
        evaluated.run("git", "reset", "-q", "--hard", "main")
    begun = ("stash", "pop") if way == "stash" else (way if way == "rebase" else "merge", "main")
    with pytest.raises(subprocess.CalledProcessError):
        evaluated.run("git", *begun)
    if way in ("added", "committed"):
        evaluated.run("git", "add", "-A")
    if way == "committed":
        evaluated.run("git", "commit", "-qm", "merged")
    line = next(n for n, text in enumerate((evaluated.root / file).read_text().splitlines(), 1) if text[:4] == "<<<<")
    for command in ([compare_cli, "main"], [report_cli, "cpu"]):
        printed = call(*command, status=1)
        assert f"{file}:{line}: a git conflict" in printed
        assert "delete" not in printed
    [paste] = commands(printed)
    side = {"merge": "--ours", "rebase": "--theirs", "stash": "--ours"}.get(way)
    assert re.fullmatch(rf"git checkout {side or '[0-9a-f]+'} dvc.lock metrics( plots)? && dvc repro", paste)
    subprocess.run(shlex.split(paste.partition(" && ")[0]), check=True)
    assert (evaluated.root / file).read_text() in versions.values()
    if way != "committed":  # whichever branch has the newer commit
        assert (evaluated.root / file).read_text() == versions["main" if way == "stash" else "mine"]


@pytest.mark.parametrize(
    ("file", "way", "deleted"),
    [("metrics/merge.json", "merge", "mine"), ("plots/cpu.tsv", "merge", "main"), ("plots/cpu.tsv", "rebase", "mine")],
)
def test_a_file_that_a_branch_deleted_is_deleted_by_the_line(file, way, deleted, evaluated):
    (evaluated.root / "metrics/merge.json").write_text("{}\n")
    evaluated.commit("merge")
    versions = differ(evaluated, "dvc.lock")
    for branch in ("main", "mine"):
        evaluated.run("git", "checkout", "-q", branch)
        (evaluated.root / file).unlink() if branch == deleted else (evaluated.root / file).write_text("{ }\n")
        evaluated.run("git", "commit", "-qa", "--amend", "--no-edit")
    with pytest.raises(subprocess.CalledProcessError):
        evaluated.run("git", way, "main")
    printed = call(compare_cli, "main", status=1)
    *lines, last = commands(printed)[0].split(" && ")
    for line in lines:
        subprocess.run(shlex.split(line), check=True)
    assert last == "dvc repro"
    assert (evaluated.root / "dvc.lock").read_text() == versions["mine"]
    assert (evaluated.root / file).exists() == (deleted == "main")
    assert (file in printed) == (deleted == "mine")


def test_a_conflict_that_was_committed_costs_its_revision_alone(evaluated):
    conflict(evaluated.root / "dvc.lock")
    evaluated.commit("unresolved")
    message = "HEAD: dvc.lock:1: a git conflict was committed there; give another revision"
    assert message in call(compare_cli, "HEAD", "HEAD~1", status=1)


def test_a_repository_without_commits_has_no_revisions(tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    repository.evaluate(4)
    monkeypatch.chdir(tmp_path)
    for name in ("HEAD", "main"):
        printed = call(compare_cli, name, status=1)
        assert re.search(rf"{name}: .*; give committed revisions of this git repository, such as main", printed)


def test_a_merge_names_the_line_of_dvcs_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data/a.jsonl", [task("Ann left", (0, 3))])
    (tmp_path / "project.yml").write_text("merge:\n  lang: en\n")
    line = conflict(tmp_path / "dvc.lock", "schema: '2.0'\n")
    printed = call(merge_cli, "data", "corpus", "--project", "project.yml", status=1)
    assert f"dvc.lock:{line}: a git conflict" in printed

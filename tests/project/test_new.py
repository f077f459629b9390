"""A new project: which files it has, and where it may be written."""

import json
import subprocess

import pytest
import srsly

import labelwise
from labelwise.errors import InputError
from labelwise.project import new
from labelwise.project.new import derive
from tests.conftest import ROOT

CLONE = srsly.read_yaml(ROOT / "project.yml")


def test_its_project_is_the_clones_with_the_installed_commands_and_the_version():
    derived = srsly.yaml_loads(derive((ROOT / "project.yml").read_text(encoding="utf8")))
    assert [command["name"] for command in derived["commands"]] == [command["name"] for command in CLONE["commands"]]
    for ours, clones in zip(derived["commands"], CLONE["commands"], strict=True):
        (line,), (clones_line,) = ours["script"], clones["script"]
        name, *rest = clones_line.removeprefix("python -m scripts.").split()
        assert line.split() == ["labelwise", name.replace("_", "-"), *rest]
        data = [dep for dep in clones["deps"] if not dep.startswith(("labelwise/", "scripts/", "spacy_per_label"))]
        assert ours["deps"] == [*data, "labelwise.version"]
    assert {**derived, "commands": 0} == {**CLONE, "commands": 0}


def test_a_folder_is_a_project_with_a_repository(installed, tmp_path):
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    files = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=tmp_path / "mine", text=True
    ).splitlines()
    assets = {
        "README.md",
        "prodigy/datasets.yml.example",
        *(f"{name}/.gitkeep" for name in ("brat", "decisions", "prodigy", "raw")),
    }
    assert {*files} == {
        *("project.yml", "dvc.yaml", "labelwise.version", "README.md", "Makefile", ".gitignore", ".dvcignore"),
        *(".dvc/.gitignore", ".dvc/config", "configs/cpu.cfg", "configs/gpu.cfg"),
        "plots/gpu.tsv",
        *(f"assets/{name}" for name in assets),
    }
    assert (tmp_path / "mine/labelwise.version").read_text() == f"{labelwise.__version__}\n"
    for name in ("configs/cpu.cfg", ".gitignore", ".dvc/config"):
        assert (tmp_path / "mine" / name).read_bytes() == (ROOT / name).read_bytes()
    assert (tmp_path / "mine/README.md").read_text(encoding="utf8").count("\n") <= 20
    assert installed.run("labelwise", "update-dvc", "--check", cwd=tmp_path / "mine")
    assert "does nothing" not in installed.run("dvc", "status", "merge", cwd=tmp_path / "mine")


def test_it_may_be_the_folder_one_is_in_and_in_a_repository(installed, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "mine").mkdir()
    installed.run("labelwise", "init", ".", cwd=tmp_path / "mine")
    assert (tmp_path / "mine/project.yml").is_file()
    assert not (tmp_path / "mine/.git").exists()


def test_a_folder_that_is_not_empty_is_an_error_and_stays(installed, tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    printed = installed.run("labelwise", "init", ".", cwd=tmp_path, status=1)
    assert "the folder isn't empty" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_clone_is_no_installed_package(tmp_path):
    with pytest.raises(InputError, match="install labelwise"):
        new.init(tmp_path / "mine")


@pytest.mark.long
def test_projects_share_an_environment(installed, tmp_path):
    """And one another's results aren't touched."""
    commands = (
        "labelwise make-demo assets/demo --docs 6 --labels 2",
        "labelwise convert-brat assets/brat corpus/tasks --fallback assets/demo",
        "labelwise merge corpus/tasks/datasets.yml corpus --workers 1 --project project.yml",
    )
    made = {}
    for name, share in (("one", "0.1"), ("other", "0.5")):
        installed.run("labelwise", "init", name, cwd=tmp_path)
        project = tmp_path / name / "project.yml"
        project.write_text(project.read_text().replace("dev_ratio: 0.1", f"dev_ratio: {share}"))
        for command in commands:
            installed.run(*command.split(), cwd=tmp_path / name)
        made[name] = {path: path.read_bytes() for path in (tmp_path / name / "corpus").rglob("*") if path.is_file()}
    assert [
        json.loads((tmp_path / name / "corpus/manifest.json").read_text())["settings"]["dev_ratio"] for name in made
    ] == [0.1, 0.5]
    assert {path: path.read_bytes() for path in made["one"]} == made["one"]

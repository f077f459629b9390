"""A new project: which files it has, and where it may be written."""

import json
import subprocess

import pytest
import srsly

import labelwise
from labelwise.base.errors import InputError
from labelwise.project import new
from labelwise.project.new import derive
from tests.clone import SKIPPED, replace_once
from tests.conftest import ROOT
from tests.project.installed import Installed, build, install

CLONE = srsly.read_yaml(ROOT / "project.yml")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    return install(build(folder / "source", folder / "wheels"), folder / "site")


def test_its_project_is_the_clones_with_the_installed_commands_and_the_version(tmp_path):
    """Which a clone, that isn't installed, can't make."""
    derived = srsly.yaml_loads(derive((ROOT / "project.yml").read_text(encoding="utf8")))
    expected = [command for command in CLONE["commands"] if command["name"] != "check-gpu"]  # a benchmark
    assert [command["name"] for command in derived["commands"]] == [command["name"] for command in expected]
    for ours, clones in zip(derived["commands"], expected, strict=True):
        (line,), (clones_line,) = ours["script"], clones["script"]
        name, *rest = clones_line.removeprefix("python -m scripts.").split()
        assert line.split() == ["labelwise", name.replace("_", "-"), *rest]
        data = [dep for dep in clones["deps"] if not dep.startswith(("labelwise/", "scripts/", "spacy_per_label"))]
        assert ours["deps"] == [*data, "labelwise.version"]
    assert {**derived, "commands": 0} == {**CLONE, "commands": 0}
    with pytest.raises(InputError, match="install labelwise"):
        new.init(tmp_path / "mine")


def test_a_folder_is_a_project_with_a_repository(installed, tmp_path):
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    files = subprocess.check_output(listed, cwd=tmp_path / "mine", text=True).splitlines()
    assets = {
        "README.md",
        "prodigy/datasets.yml.example",
        *(f"{name}/.gitkeep" for name in ("brat", "decisions", "prodigy", "raw")),
    }
    assert {*files} == {
        *("project.yml", "dvc.yaml", "labelwise.version", "README.md", "Makefile", ".gitignore", ".dvcignore"),
        *(".dvc/.gitignore", ".dvc/config", "configs/cpu.cfg", "configs/gpu.cfg", "configs/small.cfg"),
        "corpus/README.md",
        *(f"assets/{name}" for name in assets),
    }
    assert (tmp_path / "mine/labelwise.version").read_text() == f"{labelwise.__version__}\n"
    assert installed.run("labelwise", "update-dvc", "--check", cwd=tmp_path / "mine")
    assert "does nothing" not in installed.run("dvc", "status", "merge", cwd=tmp_path / "mine")


def test_it_may_be_an_empty_folder_of_a_repository_and_no_other(installed, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "mine").mkdir()
    installed.run("labelwise", "init", ".", cwd=tmp_path / "mine")
    assert (tmp_path / "mine/project.yml").is_file()
    assert not (tmp_path / "mine/.git").exists()
    before = sorted(tmp_path.iterdir())
    assert "the folder isn't empty" in installed.run("labelwise", "init", ".", cwd=tmp_path, status=1)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.long
def test_it_goes_the_whole_way(installed, tmp_path):
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    project = tmp_path / "mine"
    replace_once(project / "project.yml", "  cpu_steps: 600", "  cpu_steps: 10")
    installed.run("weasel", "run", "all", cwd=project)
    assert "<h1><strong" in (project / "report/cpu.html").read_text(encoding="utf8")
    assert json.loads((project / "metrics/cpu.json").read_text())["labelwise"] == labelwise.__version__
    again = installed.run("weasel", "run", "all", cwd=project)
    assert again.count("Skipping") == SKIPPED

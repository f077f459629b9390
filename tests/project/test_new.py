"""A new project: which files it has, and that a failure leaves nothing."""

import json
import subprocess

import pytest
import srsly

from labelwise.common.errors import InputError
from labelwise.project import new
from labelwise.project.files import derive
from tests.conftest import ROOT

CLONE = srsly.read_yaml(ROOT / "project.yml")


def test_its_project_is_the_clones_with_the_installed_commands_and_the_lock():
    derived = srsly.yaml_loads(derive((ROOT / "project.yml").read_text(encoding="utf8")))
    assert [command["name"] for command in derived["commands"]] == [command["name"] for command in CLONE["commands"]]
    for ours, clones in zip(derived["commands"], CLONE["commands"], strict=True):
        (line,), (clones_line,) = ours["script"], clones["script"]
        name, *rest = clones_line.removeprefix("python -m scripts.").split()
        assert line.split() == ["labelwise", name.replace("_", "-"), *rest]
        data = [dep for dep in clones["deps"] if not dep.startswith("labelwise/")]
        assert ours["deps"] == [*data, "labelwise.lock"]
    assert {**derived, "commands": 0} == {**CLONE, "commands": 0}


def test_a_folder_is_a_project_with_a_repository(installed, tmp_path):
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    files = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=tmp_path / "mine", text=True
    ).splitlines()
    own = {name for name in files if not name.startswith(".labelwise/")}
    assets = {
        "README.md",
        "prodigy/datasets.yml.example",
        *(f"{name}/.gitkeep" for name in ("brat", "decisions", "prodigy", "raw")),
    }
    assert own == {
        *("project.yml", "dvc.yaml", "labelwise.lock", "README.md", "Makefile", ".gitignore", ".dvcignore"),
        *(".dvc/.gitignore", ".dvc/config", "configs/cpu.cfg", "configs/gpu.cfg"),
        *(f"assets/{name}" for name in assets),
    }
    assert {name.removeprefix(".labelwise/") for name in set(files) - own} == own - {"dvc.yaml", "labelwise.lock"}
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


@pytest.mark.parametrize("there", [True, False])
def test_one_that_fails_leaves_nothing(tmp_path, monkeypatch, there):
    monkeypatch.setattr(new, "make_files", lambda: {"a": b"1", "a/b": b"2"})  # a file and a folder of one name
    out = tmp_path / "mine"
    if there:
        out.mkdir()
    with pytest.raises(OSError, match="a"):
        new.init(out)
    assert out.exists() == there
    assert list(tmp_path.rglob("*")) == [out] * there


def test_a_clone_is_no_installed_package(tmp_path):
    with pytest.raises(InputError, match="install labelwise"):
        new.init(tmp_path / "mine")


def test_commands_stop_where_other_code_is_installed(installed, tmp_path):
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    project = tmp_path / "mine"
    command = ("labelwise", "make-demo", "assets/demo", "--docs", "2", "--labels", "1")
    installed.run(*command, cwd=project)
    version = json.loads((project / "labelwise.lock").read_text())["version"]
    later = installed.next(tmp_path / "later")
    printed = later.run(*command, cwd=project, status=1)
    assert (
        f"the project is of labelwise {version}, and labelwise 9.{version} is installed: run `labelwise upgrade .`"
        in printed
    )
    edited = installed.next(tmp_path / "edited", **{"__init__.py": ("__version__", "# edited\n__version__")})
    assert f"and another build of {version} is installed" in edited.run(*command, cwd=project, status=1)
    installed.run(*command, cwd=project)


def test_bytecode_is_no_code(installed, tmp_path):
    """Which Python writes when a module is loaded."""
    installed.run("labelwise", "init", "mine", cwd=tmp_path)
    (installed.site / "labelwise/merge/__pycache__").mkdir(exist_ok=True)
    (installed.site / "labelwise/merge/__pycache__/more.pyc").touch()
    installed.run("labelwise", "update-dvc", "--check", cwd=tmp_path / "mine")


@pytest.mark.slow
@pytest.mark.long
def test_projects_share_an_environment(installed, tmp_path):
    """And one another's results aren't touched."""
    commands = (
        "labelwise make-demo assets/demo --docs 6 --labels 2",
        "labelwise convert-brat assets/brat corpus/tasks --fallback assets/demo",
        "labelwise merge corpus/tasks/datasets.yml corpus --workers 1 --dev-ratio {}",
    )
    made = {}
    for name, share in (("one", "0.1"), ("other", "0.5")):
        installed.run("labelwise", "init", name, cwd=tmp_path)
        for command in commands:
            installed.run(*command.format(share).split(), cwd=tmp_path / name)
        made[name] = {path: path.read_bytes() for path in (tmp_path / name / "corpus").rglob("*") if path.is_file()}
    assert [
        json.loads((tmp_path / name / "corpus/manifest.json").read_text())["settings"]["dev_ratio"] for name in made
    ] == [0.1, 0.5]
    assert {path: path.read_bytes() for path in made["one"]} == made["one"]

"""project.yml as weasel, DVC and a shell read it."""

import subprocess
import sys
from pathlib import Path

import pytest
import srsly
import yaml
from dvc.repo import Repo
from dvc.utils.hydra import apply_overrides

from labelwise.base.errors import InputError
from labelwise.project.stages import as_dvc_writes, dvc_yaml
from tests.conftest import ROOT

PROJECT = srsly.read_yaml(ROOT / "project.yml")
WORKFLOWS = PROJECT["workflows"]


def write_stages(file: Path, *stages: str) -> None:
    srsly.write_yaml(file, {**PROJECT, "dvc": {"stages": " ".join(stages)}})


def test_the_table_of_commands_is_up_to_date(tmp_path):
    command = [Path(sys.executable).with_name("weasel"), "document", "--no-emoji", "--output", tmp_path / "README.md"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    generated = (tmp_path / "README.md").read_text(encoding="utf8").strip()
    assert generated in (ROOT / "docs" / "commands.md").read_text(encoding="utf8"), "see CONTRIBUTING.md"


def test_an_experiment_changes_its_lines_and_loses_neither_comments_nor_variables(tmp_path):
    """What `dvc exp run -S` does to the project."""
    file = tmp_path / "project.yml"
    text = (ROOT / "project.yml").read_text(encoding="utf8")
    assert as_dvc_writes(ROOT / "project.yml") == text
    file.write_text(text, encoding="utf8")
    apply_overrides(file, ["vars.seed=1", "merge.split_salt=x"])
    for line, changed in (
        ("  seed: 0  ", "  seed: 1  "),
        ("  split_salt: labelwise       # ", "  split_salt: x               # "),
    ):
        assert text.count(line) == 1
        text = text.replace(line, changed)
    assert file.read_text(encoding="utf8") == text


@pytest.mark.parametrize(
    ("named", "stages"),
    [
        (["all"], WORKFLOWS["all"]),
        (["all", "gpu"], [*WORKFLOWS["all"], "train-gpu", "evaluate-gpu", "report-gpu"]),
        (["package", "all"], [*WORKFLOWS["all"], "package"]),
        (["merge", "check-gpu", "compare"], ["merge"]),  # the others have no outputs
    ],
)
def test_the_stages_are_those_of_the_workflows_and_commands_that_are_named(tmp_path, named, stages):
    write_stages(tmp_path / "project.yml", *named)
    assert [*yaml.safe_load(dvc_yaml(tmp_path / "project.yml"))["stages"]] == stages


def test_a_stage_that_is_no_command_is_an_error(tmp_path):
    write_stages(tmp_path / "project.yml", "all", "train")
    with pytest.raises(InputError, match=r"dvc: stages: 'train' is neither a workflow nor a command; give .*all, gpu"):
        dvc_yaml(tmp_path / "project.yml")


def test_dvc_accepts_all_commands_together(tmp_path):
    """Such as that no two stages have one output."""
    write_stages(tmp_path / "project.yml", *(command["name"] for command in PROJECT["commands"]))
    Repo.init(tmp_path, no_scm=True)
    (tmp_path / "dvc.yaml").write_text(dvc_yaml(tmp_path / "project.yml"), encoding="utf8")
    with_outputs = [one["name"] for one in PROJECT["commands"] if {"outputs", "outputs_no_cache"} & one.keys()]
    repo = Repo(str(tmp_path))
    repo.check_graph(repo.index.stages)
    assert sorted(stage.name for stage in repo.index.stages) == sorted(with_outputs)

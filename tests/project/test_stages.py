"""project.yml as weasel, DVC and a shell read it."""

import subprocess
import sys
from pathlib import Path

from dvc.utils.hydra import apply_overrides

from labelwise.project.stages import as_dvc_writes
from tests.conftest import ROOT


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

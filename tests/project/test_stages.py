"""project.yml as weasel, DVC and a shell read it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dvc.utils.hydra import apply_overrides

from labelwise.errors import InputError
from labelwise.project.stages import as_dvc_writes, check_values
from tests.conftest import ROOT


def test_the_table_of_commands_is_up_to_date(tmp_path):
    command = [Path(sys.executable).with_name("weasel"), "document", "--no-emoji", "--output", tmp_path / "README.md"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    generated = (tmp_path / "README.md").read_text(encoding="utf8").strip()
    assert generated in (ROOT / "docs" / "commands.md").read_text(encoding="utf8"), "see CONTRIBUTING.md"


@pytest.mark.parametrize(
    ("override", "line", "changed"),
    [
        ("vars.seed=1", "  seed: 0  ", "  seed: 1  "),
        ("merge.split_salt=x", "  split_salt: labelwise       # ", "  split_salt: x               # "),
    ],
)
def test_an_experiment_changes_one_line_and_loses_neither_comments_nor_variables(tmp_path, override, line, changed):
    """What `dvc exp run -S` does to the project."""
    file = tmp_path / "project.yml"
    before = (ROOT / "project.yml").read_text(encoding="utf8")
    assert as_dvc_writes(ROOT / "project.yml") == before
    file.write_text(before, encoding="utf8")
    apply_overrides(file, [override])
    assert before.count(line) == 1
    assert file.read_text(encoding="utf8") == before.replace(line, changed)


def write_command(folder: Path, value: str, quotes: str) -> tuple[Path, str]:
    """Write a project of one command that prints a variable, and return the project and the command."""
    line = f"printf '<%s>' {quotes}${{vars.it}}{quotes} end"
    project = {"vars": {"it": value}, "commands": [{"name": "show", "script": [line], "outputs": ["x"]}]}
    (folder / "project.yml").write_text(yaml.safe_dump(project), encoding="utf8")
    return folder / "project.yml", line.replace("${vars.it}", value)


@pytest.mark.parametrize(
    ("value", "quotes", "printed"),
    [
        ("a b", "", "<a><b><end>"),
        *((value, "'", f"<{value}><end>") for value in ("", "a b", '$HOME `x` \\ "', "; exit 3", "é # x")),
    ],
)
def test_a_shell_gets_the_values_of_variables_as_they_are(tmp_path, value, quotes, printed):
    project, command = write_command(tmp_path, value, quotes)
    check_values(project)
    assert subprocess.check_output(["sh", "-c", command], cwd=tmp_path, text=True) == printed


@pytest.mark.parametrize(
    ("value", "quotes", "why"),
    [
        *((value, "", "it isn't in quotes") for value in ("", '$HOME `x` \\ "', "; exit 3", "#", "é # x")),
        ("it's", "'", "an apostrophe would end its quotes"),
    ],
)
def test_a_value_that_would_end_its_quotes_is_refused(tmp_path, value, quotes, why):
    project, _ = write_command(tmp_path, value, quotes)
    with pytest.raises(InputError, match=rf"project\.yml: it: .* can't be part of show: {why}"):
        check_values(project)

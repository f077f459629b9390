"""Data that no command of the merge depends on is listed."""

import shutil

import pytest

from labelwise.errors import InputError
from labelwise.sources.untracked import find_untracked
from tests.conftest import ROOT
from tests.sources.reading import write


def test_a_project_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"project\.yml: .*; see its section `commands`"):
        find_untracked([], tmp_path, write(tmp_path / "project.yml", "commands: [{name: [3]}]"))


def test_what_no_dependency_of_the_merge_covers_is_listed(tmp_path):
    """The project's own merge, whose corpus has outputs of another command in it, depends on these folders."""
    shutil.copy(ROOT / "project.yml", tmp_path / "project.yml")
    covered = ["corpus/tasks/datasets.yml", "assets/prodigy/a.jsonl", "assets/demo/prodigy/../prodigy/b.jsonl"]
    given = [tmp_path / name for name in (*covered, "assets/other/c.jsonl", "corpus-2/d.jsonl")]
    assert find_untracked(given, tmp_path / "corpus", tmp_path / "project.yml") == given[3:]
    assert find_untracked(given, tmp_path / "elsewhere", tmp_path / "project.yml") == []

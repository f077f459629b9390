"""Corpora that were fetched are what project.yml says, and data that no command depends on is listed."""

import hashlib
import shutil

import pytest
import yaml

from labelwise.errors import InputError
from labelwise.sources.assets import find_untracked, verify_assets
from labelwise.sources.convert_brat import convert_brat
from tests.conftest import ROOT
from tests.sources.reading import write

ANN, TXT = b"T1\tX 0 3\tcat\n", b"cat"


@pytest.fixture
def project(tmp_path):
    """A project with two fetched corpora, one of them right."""
    for name in ("good", "bad"):
        write(tmp_path / "assets" / name / "d.txt", TXT)
        write(tmp_path / "assets" / name / "d.ann", ANN)
    right = hashlib.md5(ANN + TXT).hexdigest()  # weasel's checksum, of all files, sorted by path
    checksums = {"good": right, "bad": "0" * 32, "absent": "1" * 32, "unchecked": ""}
    assets = [{"dest": f"assets/{name}", "checksum": checksum} for name, checksum in checksums.items()]
    return write(tmp_path / "project.yml", yaml.safe_dump({"assets": assets}))


@pytest.mark.parametrize("folder", ["bad", "bad/sub", ""])
def test_a_wrong_checksum_names_both_and_a_remedy_whatever_part_of_an_asset_is_read(project, folder):
    assets = project.parent / "assets"
    verify_assets(assets / "good", project)
    verify_assets(project.parent / "elsewhere", project)
    verify_assets(assets, project.parent / "no-project.yml")
    with pytest.raises(InputError, match=r"assets/bad: checksum [0-9a-f]{32}, but .* says 0{32}; delete the folder"):
        verify_assets(assets / folder, project)


@pytest.mark.parametrize("content", ["{assets: 3}", "assets: [{dest: 3}]"])
def test_a_project_that_cannot_be_read_is_an_error_that_names_it(tmp_path, content):
    with pytest.raises(InputError, match=r"project\.yml: .*; see its sections `assets` and `commands`"):
        verify_assets(tmp_path, write(tmp_path / "project.yml", content))


def test_nothing_is_converted_from_a_wrong_asset(project, monkeypatch):
    monkeypatch.chdir(project.parent)
    with pytest.raises(InputError, match="assets/bad"):
        convert_brat(project.parent / "assets" / "bad", project.parent / "out")
    assert not (project.parent / "out").exists()
    convert_brat(project.parent / "assets" / "good", project.parent / "out")


def test_what_no_dependency_of_the_merge_covers_is_listed(tmp_path):
    """The project's own merge, whose corpus has outputs of another command in it, depends on these folders."""
    shutil.copy(ROOT / "project.yml", tmp_path / "project.yml")
    covered = ["corpus/tasks/datasets.yml", "assets/prodigy/a.jsonl", "assets/demo/prodigy/../prodigy/b.jsonl"]
    given = [tmp_path / name for name in (*covered, "assets/other/c.jsonl", "corpus-2/d.jsonl")]
    assert find_untracked(given, tmp_path / "corpus", tmp_path / "project.yml") == given[3:]
    assert find_untracked(given, tmp_path / "elsewhere", tmp_path / "project.yml") == []

import shutil

import pytest
import yaml

from labelwise.errors import InputError
from labelwise.sources.assets import find_untracked, verify_assets
from labelwise.sources.convert_brat import convert_brat
from tests.conftest import ROOT


@pytest.fixture
def project(tmp_path):
    """A project with two fetched corpora, one of them right."""
    for name in ("good", "bad"):
        (tmp_path / "assets" / name).mkdir(parents=True)
        (tmp_path / "assets" / name / "d.txt").write_text("cat")
        (tmp_path / "assets" / name / "d.ann").write_text("T1\tX 0 3\tcat\n")
    content = "catT1\tX 0 3\tcat\n"  # weasel's checksum: MD5 of all files, sorted by path: .ann before .txt
    import hashlib

    right = hashlib.md5(content.removeprefix("cat").encode() + b"cat").hexdigest()
    assets = [
        {"dest": "assets/good", "checksum": right},
        {"dest": "assets/bad", "checksum": "0" * 32},
        {"dest": "assets/absent", "checksum": "1" * 32},
        {"dest": "assets/unchecked"},
    ]
    (tmp_path / "project.yml").write_text(yaml.safe_dump({"assets": assets}))
    return tmp_path / "project.yml"


def test_a_wrong_checksum_names_both_and_a_remedy(project):
    assets = project.parent / "assets"
    assert verify_assets(assets / "good", project) == ["assets/good"]
    with pytest.raises(InputError, match=r"assets/bad: checksum [0-9a-f]{32}, but .* says 0{32}; delete the folder"):
        verify_assets(assets / "bad", project)


@pytest.mark.parametrize("folder", ["bad", "bad/sub", ""])
def test_an_asset_is_checked_whatever_part_of_it_is_read(project, folder):
    with pytest.raises(InputError, match="assets/bad"):
        verify_assets(project.parent / "assets" / folder, project)


@pytest.mark.parametrize("content", ["{assets: 3}", "assets: [{dest: 3}]"])
def test_a_project_that_cannot_be_read_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "project.yml").write_text(content)
    with pytest.raises(InputError, match=r"project\.yml: .*; see its sections `assets` and `commands`"):
        verify_assets(tmp_path, tmp_path / "project.yml")


def test_other_folders_are_nobodys_business(project, tmp_path):
    assert verify_assets(tmp_path / "elsewhere", project) == []
    assert verify_assets(tmp_path, tmp_path / "no-project.yml") == []


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

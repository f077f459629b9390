"""Digests of the code that a result follows from."""

import pytest

from labelwise.common import code


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name in ("common/__init__.py", "common/errors.py", "merge/rules/answers.py", "report/charts.py"):
        (tmp_path / "labelwise" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "labelwise" / name).write_text(f"# {name}\n")
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "labelwise")
    return tmp_path / "labelwise"


def test_files_are_named_from_the_package_on_and_those_of_inner_folders_too(package):
    (package / "common" / "__pycache__").mkdir()
    (package / "common" / "__pycache__" / "errors.cpython-311.pyc").touch()
    files = code.digest_files(["common", "merge"])
    names = ["labelwise/common/__init__.py", "labelwise/common/errors.py", "labelwise/merge/rules/answers.py"]
    assert list(files) == names
    assert len(set(files.values())) == 3


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        ("report/charts.py", True),
        ("common/errors.py", False),
        ("merge/rules/answers.py", False),
        ("merge/new.py", False),
    ],
)
def test_an_edit_counts_in_the_folders_that_are_asked_for(package, edited, same):
    before = code.digest_code(["common", "merge"], ["spacy 3.8"])
    (package / edited).write_text("edited")
    assert (code.digest_code(["common", "merge"], ["spacy 3.8"]) == before) is same


def test_versions_count(package):
    assert code.digest_code(["common"], ["1"]) != code.digest_code(["common"], ["2"]) != code.digest_code(["common"])

import os
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.datasets.convert_brat import convert_brat
from labelwise.datasets.declarations import load_datasets
from labelwise.sources.brat import BratOptions, find_documents
from labelwise.sources.files import find_files, has_data
from labelwise.sources.formats import read_items
from labelwise.sources.raw_texts import read_raw_texts
from tests.conftest import read_jsonl, write_jsonl
from tests.sources.reading import write


def deny(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    scandir = os.scandir

    def denying(path="."):
        if not isinstance(path, int) and Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denying)


def document(folder: Path, name: str) -> None:
    write(folder / f"{name}.txt", f"{name} a cat")
    write(folder / f"{name}.ann", f"T1\tX 0 {len(name)}\t{name}\n")


def declare(root: Path, path: str) -> Path:
    return write(root / "datasets.yml", yaml.safe_dump([{"name": "a", "path": path, "labels": ["A"]}]))


@pytest.mark.guarantee("unreadable")
@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_folder_that_cannot_be_read_stops_a_conversion(tmp_path, monkeypatch, below):
    document(tmp_path / "brat", "one")
    document(tmp_path / f"brat/private{below}", "two")
    deny(monkeypatch, tmp_path / f"brat/private{below}")
    with pytest.raises(InputError, match=rf"private{below}: this folder can't be read, .*: Permission denied; make it"):
        convert_brat(tmp_path / "brat", tmp_path / "tasks")


@pytest.mark.guarantee("unreadable")
def test_a_folder_that_cannot_be_read_stops_a_merge(tmp_path, monkeypatch):
    write(tmp_path / "spacy/one.spacy", b"")
    (tmp_path / "spacy/private").mkdir()
    deny(monkeypatch, tmp_path / "spacy/private")
    with pytest.raises(InputError, match=r"spacy/private: this folder can't be read, .*: Permission denied; make it"):
        load_datasets([declare(tmp_path, "spacy")])


def test_links_are_followed_and_folders_that_link_to_each_other_are_read_once(tmp_path):
    for name in ("a", "b", "c"):
        document(tmp_path / "brat" / name, "one")
        for other in ("a", "b", "c", ""):
            (tmp_path / "brat" / name / f"to-{other}").symlink_to(tmp_path / "brat" / other)
    stems = [stem.relative_to(tmp_path / "brat").as_posix() for stem in find_documents(tmp_path / "brat")]
    assert stems == ["a/one", "a/to-b/one", "a/to-b/to-c/one"]
    assert convert_brat(tmp_path / "brat", tmp_path / "tasks").files.total() == 3
    write(tmp_path / "here/.elsewhere/a.spacy", b"")
    (tmp_path / "here/link").symlink_to(".elsewhere")
    assert find_files(tmp_path / "here", (".spacy",), hidden=False) == [tmp_path / "here/link/a.spacy"]
    write_jsonl(tmp_path / "deep/one.jsonl", [{"text": "one"}])
    (tmp_path / "linked.jsonl").symlink_to("deep/one.jsonl")
    assert load_datasets([declare(tmp_path, "*.jsonl")])[0].files == ((tmp_path / "linked.jsonl", "linked.jsonl"),)
    (tmp_path / "linked-2.jsonl").symlink_to("linked.jsonl")
    assert len(load_datasets([declare(tmp_path, "*.jsonl")])[0].files) == 1, "links to one file are one"
    write(tmp_path / "cache/0a1b", b"Rom B-PLACE\n")  # as DVC's cache has it, with `cache.type symlink`
    (tmp_path / "places.conll").symlink_to("cache/0a1b")
    (found,) = load_datasets([declare(tmp_path, "places.conll")])[0].files
    assert [task.text for task in read_items(found.path)] == ["Rom"]


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("org*.jsonl", ["org.jsonl", "org-9.jsonl", "org-10.jsonl"]),  # in natural order
        ("../here/org.jsonl", ["../here/org.jsonl"]),
        ("{root}/here/org-*.jsonl", ["org-9.jsonl", "org-10.jsonl"]),
        ("{root}/away/two/x.jsonl", ["x.jsonl"]),
        ("{root}/away/**/x.jsonl", ["one/x.jsonl", "two/x.jsonl"]),
        ("../away/*/x.jsonl", ["../away/one/x.jsonl", "../away/two/x.jsonl"]),
    ],
)
def test_files_are_named_as_declared_and_never_by_an_absolute_path(tmp_path, declared, names):
    for name in ("here/org.jsonl", "here/org-10.jsonl", "here/org-9.jsonl", "away/one/x.jsonl", "away/two/x.jsonl"):
        write_jsonl(tmp_path / name, [{"text": "one"}])
    (dataset,) = load_datasets([declare(tmp_path / "here", declared.format(root=tmp_path))])
    assert [file.name for file in dataset.files] == names


def make(path: Path, what: str) -> None:
    path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
    else:
        path.symlink_to("annexed" if what == "link to nothing" else path.name)


@pytest.mark.guarantee("unreadable")
@pytest.mark.parametrize(
    ("what", "suffix", "missing_ann"),
    [
        *((what, "ann", "empty") for what in ("link to nothing", "link to itself", "folder")),
        *(("folder", "a2", "skip"), ("link to nothing", "txt", "skip")),
    ],
)
def test_a_document_that_cannot_be_read_is_a_problem_not_empty(tmp_path, what, suffix, missing_ann):
    """git-annex leaves dangling links for files that weren't fetched."""
    document(tmp_path / "brat", "one")
    document(tmp_path / "brat", "two")
    (tmp_path / "brat/two.ann").rename(tmp_path / "brat/two.a1")
    make(tmp_path / f"brat/two.{suffix}", what)
    converted = convert_brat(tmp_path / "brat", tmp_path / "tasks", BratOptions(missing_ann=missing_ann))
    assert (converted.files.total(), converted.problems) == (1, {"malformed": 1, "invalid": 1})
    why = "a broken link, a folder, or not readable"
    rows = [row["_labelwise_problem"] for row in read_jsonl(tmp_path / "tasks/auto.jsonl") if "text" not in row]
    assert [0, "malformed", why, f"two.{suffix}"] in rows


@pytest.mark.parametrize("path", ["*.jsonl", "two.jsonl"])
@pytest.mark.parametrize("what", ["link to nothing", "link to itself"])
def test_a_file_that_cannot_be_read_is_not_left_out_by_a_pattern(tmp_path, path, what):
    write_jsonl(tmp_path / "one.jsonl", [{"text": "one"}])
    make(tmp_path / "two.jsonl", what)
    message = r"(two\.jsonl|annexed)(: this |; correct its path)"
    with pytest.raises(InputError, match=message):
        load_datasets([declare(tmp_path, path)])
    with pytest.raises(InputError, match=r"two\.jsonl: this "):
        load_datasets([tmp_path / "two.jsonl"])
    (tmp_path / "two.jsonl").unlink()
    write_jsonl(tmp_path / os.fsdecode(b"caf\xe9.jsonl"), [{"text": "one"}])
    with pytest.raises(InputError, match=r"caf\\xe9\.jsonl: its name isn't UTF-8; rename it"):
        load_datasets([declare(tmp_path, "*.jsonl")])


@pytest.mark.parametrize(("there", "named"), [("cafe\u0301.jsonl", "caf\u00e9.jsonl"), ("Cafe.jsonl", "cafe.jsonl")])
def test_a_name_that_looks_like_that_of_a_file_is_told_from_it(tmp_path, there, named):
    """macOS and some archives decompose accents."""
    write(tmp_path / there, "")
    with pytest.raises(InputError) as error:
        load_datasets([declare(tmp_path, named)])
    assert f"but {there!a}, which differs from {named!a} in capitals or in how" in str(error.value)


@pytest.mark.guarantee("demo")
@pytest.mark.parametrize("name", ["mine", "deep/er/person.jsonl", "lone.txt"])
def test_data_that_dvc_has_not_fetched_are_not_left_out(tmp_path, name):
    document(tmp_path / "data", "one")
    write(tmp_path / f"data/{name}.dvc", "outs: []\n")
    for read in (find_documents, has_data, lambda folder: list(read_raw_texts([folder]))):
        with pytest.raises(InputError, match=rf"{name}\.dvc: .* fetch them: dvc pull --recursive {tmp_path}/data;"):
            read(tmp_path / "data")
    with pytest.raises(InputError, match=r"there is no file .*put the file there \(`dvc pull`, if DVC tracks it\)"):
        load_datasets([declare(tmp_path, f"data/{name}")])
    write(tmp_path / "whole.dvc", "outs: []\n")
    for read in (find_documents, has_data):
        with pytest.raises(InputError, match=rf"whole\.dvc: .* fetch them: dvc pull --recursive {tmp_path};"):
            read(tmp_path / "whole")
    write(tmp_path / "data" / name, "")
    assert len(find_documents(tmp_path / "data")) == 1 + (name == "lone.txt")


def test_a_raw_text_that_cannot_be_used_is_named_and_costs_itself(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("one")
    (tmp_path / "c.jsonl").write_text('{"text": "two", "meta": {"doc": "d"}}\n{oops\n\n{"text": "three"}\n')
    assert [(raw.name, raw.text, raw.problem) for raw in read_raw_texts([tmp_path])] == [
        ("a.txt", None, "not UTF-8"),
        ("b.txt", "one", ""),
        ("d", "two", ""),
        ("c.jsonl:2", None, "bad JSON: object keys must be strings (byte 1): 'oops'"),
        ("c.jsonl:4", "three", ""),
    ]
    with pytest.raises(InputError, match="there is no such file or folder"):
        list(read_raw_texts([tmp_path / "none"]))

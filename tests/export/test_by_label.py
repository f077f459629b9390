"""Tasks of all labels become a Prodigy data set for each, as it would have been annotated there."""

import json
import os
import resource
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from labelwise.corpus import tasks as tasks_module
from labelwise.corpus.tasks import file_names, input_hash, task_hash
from labelwise.demo.write import make_demo
from labelwise.export.run import export
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.convert_brat import convert_brat
from tests.compare_docs import differences


def tasks(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


@pytest.fixture
def brat(tmp_path: Path) -> Path:
    """The demo corpus: some in folders of splits, a text without annotations, and one that is a prediction."""
    folder = tmp_path / "brat"
    make_demo(folder, docs=30, labels=4, words=60)
    for domain, split in (("travel", "train"), ("finance", "dev"), ("law", "test")):
        if (folder / domain).is_dir():
            (folder / domain).rename(folder / split)
    (folder / "unread.txt").write_text("nobody has seen Ann")
    (folder / "empty.txt").write_text("nothing here")
    (folder / "empty.ann").write_text("")
    return folder


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": "folder", "missing_ann": "empty", "discontinuous": "cover"},
        {"labels": ["PLACE", "PERSON"], "split": "folder"},
    ],
)
def test_merging_a_data_set_for_each_label_gives_the_same_docs(brat, tmp_path, options):
    convert_brat(brat, tmp_path / "tasks", **options)
    done = export(tmp_path / "tasks", tmp_path / "prodigy", "prodigy-by-label")
    for name in ("tasks", "prodigy"):
        merge_data([tmp_path / name / "datasets.yml"], tmp_path / f"{name}-corpus", Settings())
    assert list(differences(tmp_path / "tasks-corpus", tmp_path / "prodigy-corpus")) == []
    report = json.loads((tmp_path / "tasks" / "report.json").read_text())
    assert (done.texts, done.spans) == (report["documents"]["converted"], report["annotations"]["converted"])


def test_each_task_has_prodigys_hashes(tmp_path):
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "d.txt").write_text("a cat, no dog")
    (tmp_path / "brat" / "d.ann").write_text("T1\tn 2 5\tcat\nT2\tN 10 13\tdog\n")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", split="test")
    export(tmp_path / "tasks", tmp_path / "out", "prodigy-by-label")
    declared = yaml.safe_load((tmp_path / "out" / "datasets.yml").read_text())
    assert [(one["name"], one["labels"], one["split"]) for one in declared] == [
        ("test-N", ["N"], "test"),
        ("test-n", ["n"], "test"),
    ]
    [task] = tasks(tmp_path / "out" / declared[1]["path"])
    assert task["spans"] == [{"start": 2, "end": 5, "label": "n"}]
    assert task["_input_hash"] == input_hash("a cat, no dog")
    assert task["_task_hash"] == task_hash(task["_input_hash"], task["spans"])
    assert (task["answer"], task["_view_id"], task["_is_binary"]) == ("accept", "ner_manual", False)
    assert task["meta"] == {"doc": "d.txt"}


@pytest.mark.parametrize("waiting", [None, 0])
def test_there_may_be_more_labels_than_files_that_can_be_open(tmp_path, monkeypatch, waiting):
    (tmp_path / "brat").mkdir()
    labels = [f"L{number}" for number in range(300)]
    for doc in range(3):
        (tmp_path / "brat" / f"{doc}.txt").write_text(f"{doc} big cats")
        lines = [f"T{number}\t{label} 2 5\tbig\n" for number, label in enumerate(labels)]
        (tmp_path / "brat" / f"{doc}.ann").write_text("".join(lines))
    monkeypatch.setattr(tasks_module, "WAITING", tasks_module.WAITING if waiting is None else waiting)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = max(int(number) for number in os.listdir("/proc/self/fd"))  # noqa: PTH208  by pytest, and others
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 240, before[1]))
    try:
        convert_brat(tmp_path / "brat", tmp_path / "tasks")
        export(tmp_path / "tasks", tmp_path / "out", "prodigy-by-label")
        merge_data([tmp_path / "out" / "datasets.yml"], tmp_path / "corpus", Settings(near_duplicates="off"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for label in labels:
        found = tasks(tmp_path / "out" / f"{label}.jsonl")
        assert [(task["text"], len(task["spans"])) for task in found] == [(f"{doc} big cats", 1) for doc in range(3)]


def test_file_names_differ_where_case_does_not_count():
    labels = ["N", "n", "Amount-Unit", "a/b", "a.b", "problems", "名", "Größe"]
    names = file_names(labels)
    assert names["Amount-Unit"] == "Amount-Unit.jsonl"
    assert len({name.lower() for name in names.values()}) == len(labels)
    assert all(name.isascii() and "/" not in name and name != "problems.jsonl" for name in names.values())
    assert file_names(labels[::-1]) == dict(reversed(names.items()))


@pytest.mark.parametrize("labels", [["N", "n", "N-8ce86a6a"], ["N", "n", "n-8CE86A6A"], ["名", "_-51a5d681"]])
def test_file_names_differ_where_a_label_looks_like_one(labels):
    assert len({name.lower() for name in file_names(labels).values()}) == len(labels)


def test_file_names_differ_where_digests_begin_alike(monkeypatch):
    digest = lambda data: SimpleNamespace(hexdigest=lambda: "0" * 60 + f"{len(data):04}")  # noqa: E731
    monkeypatch.setattr(tasks_module.hashlib, "sha256", digest)
    names = file_names(["a/b", "a//b", "c", "a///b"])
    assert len(set(names.values())) == 4
    assert names["c"] == "c.jsonl"

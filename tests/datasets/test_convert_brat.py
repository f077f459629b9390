import json
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.datasets import convert_brat as convert
from labelwise.datasets.convert_brat import convert_brat
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.run import export
from labelwise.sources.brat import PREDICTIONS, BratOptions
from scripts.convert_brat import convert_brat_cli
from tests.conftest import another_process, call, read_jsonl
from tests.sources.reading import write


@pytest.fixture
def brat(tmp_path):
    """Three texts, two labels that differ in case, eight T lines of which five are good."""
    files = {
        "one.txt": "big cat sat\r\n",
        "one.ann": "T1\tN 0 7\tbig cat\nT2\tn 4 7\tcat\nT3\tN 0 3;8 11\tbig sat\noops\nT4\tN 0 3\tcat\n",
        "sub/two.txt": "a cat, no dog",
        "sub/two.A1": "T1\tn 2 5\tcat\nT2\tn 10 13\tdog\n",
        "sub/two.a2": "T3\tN 2 5\tcat\nT4\tN 50 53\tcat\n",
        "empty.TXT": "nothing here",
        "empty.ann": "",
        "unread.TXT": "not annotated",
    }
    for name, content in files.items():
        write(tmp_path / "brat" / name, content)
    return tmp_path / "brat"


def test_every_annotated_text_is_a_task_with_the_spans_of_all_labels(brat, tmp_path):
    out = tmp_path / "tasks"
    convert_brat(brat, out, BratOptions(split="test", discontinuous="cover"), prefix="demo-")
    declared = yaml.safe_load((out / "datasets.yml").read_text())
    labels = {"labels": ["N", "n"], "kind": "complete"}
    assert declared == [{"name": "demo-brat-test", "path": "test.jsonl", **labels, "split": "test"}]
    made = read_jsonl(out / "test.jsonl")
    assert [task["meta"]["doc"] for task in made] == ["empty.txt", "one.txt", "sub/two.txt"]
    found = [sorted((task["text"][s["start"] : s["end"]], s["label"]) for s in task["spans"]) for task in made]
    one = [("big cat", "N"), ("big cat sat", "N"), ("cat", "n")]
    assert found == [[], one, [("cat", "N"), ("cat", "n"), ("dog", "n")]]
    place = {"_labelwise_place": ["one.ann", 3]}
    assert {"start": 0, "end": 11, "label": "N"} | place in made[1]["spans"]
    assert (made[1]["text"], made[1]["answer"]) == ("big cat sat\r\n", "accept")


def test_a_linked_folder_into_which_weasel_and_dvc_do_not_look_is_refused(brat, tmp_path):
    command = {"name": "convert-brat", "deps": ["${vars.data}/brat"], "outputs": ["tasks"]}
    write(tmp_path / "project.yml", yaml.safe_dump({"vars": {"data": "assets"}, "commands": [command]}))
    write(tmp_path / "configs/cpu.cfg", "")
    mine = tmp_path / "assets/brat"
    mine.mkdir(parents=True)
    (mine / "link").symlink_to(brat / "sub")
    project = ["--project", tmp_path / "project.yml"]
    printed = call(convert_brat_cli, mine, tmp_path / "tasks", *project, status=1)
    assert "\n  - brat/sub\n" in printed
    call(convert_brat_cli, mine, tmp_path / "elsewhere", *project)
    call(convert_brat_cli, brat, tmp_path / "tasks", *project)
    assert len(read_jsonl(tmp_path / "tasks/auto.jsonl")) == 3


def test_the_report_balances_and_every_loss_is_located(brat, tmp_path):
    out = tmp_path / "tasks"
    report = convert_brat(brat, out)
    assert report.documents == {"converted": 3, "no annotation file": 1}
    assert report.lines == {"T": 8, "stray": 1}
    assert report.annotations == {"converted": 5, "discontinuous": 1, "mention differs": 1, "out of range": 1}
    assert report.labels == {"N": 2, "n": 3}
    assert [(p["file"], p["line"], p["reason"]) for p in read_jsonl(out / "problems.jsonl")] == [
        ("one.ann", 4, "stray line"),
        ("one.ann", 3, "discontinuous"),
        ("one.ann", 5, "mention differs"),
        ("sub/two.a2", 2, "out of range"),
        ("unread.txt", 0, "no annotation file"),
    ]
    before = (out / "report.json").read_bytes()
    assert json.loads(before)["annotations"] == report.annotations
    with pytest.raises(InputError, match=r"4 files or lines.*one\.ann:4 \(stray line\): 'oops'"):
        convert_brat(brat, out, strict=True)
    assert (out / "report.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["brat", "tasks"]


def test_annotators_that_differ_in_case_alone_are_refused(tmp_path):
    """Their files of tasks would be one where case doesn't count, as on macOS."""
    for folder in ("Ann", "bob", "ann"):
        write(tmp_path / f"brat/{folder}/1.txt", f"a cat of {folder}")
        write(tmp_path / f"brat/{folder}/1.ann", "T1\tN 2 5\tcat\n")
    with pytest.raises(InputError, match=r"^folders ann and Ann differ in case alone; rename one"):
        convert_brat(tmp_path / "brat", tmp_path / "tasks", BratOptions(folders="annotators"))


def test_another_conversion_to_the_same_folder_is_refused_at_once(brat, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "find_documents", lambda *given: pytest.fail("it was begun"))
    with (
        another_process(locked(tmp_path / "tasks")),
        pytest.raises(InputError, match=r"tasks: another process is writing this; wait until it ends"),
    ):
        convert_brat(brat, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


@pytest.mark.parametrize("file", ["sub/two.a2", "new.ann", "one.txt"])
def test_a_folder_that_changes_meanwhile_is_not_converted(brat, tmp_path, monkeypatch, file):
    """A document's text may be read before the change, and its annotations after it."""
    original = convert.write_tasks

    def change_after(*given):
        found = original(*given)
        (brat / file).write_text("T1\tNEW 2 5\tcat\n")
        return found

    monkeypatch.setattr(convert, "write_tasks", change_after)
    with pytest.raises(InputError, match=r"brat: a file changed while it was read; convert again"):
        convert_brat(brat, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


def test_a_folder_without_documents_gives_none_where_it_may_be_empty(brat, tmp_path):
    """As beside Prodigy's data sets."""
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"none: no .* put a brat corpus there$"):
        convert_brat(tmp_path / "none", tmp_path / "tasks")
    with pytest.raises(InputError, match="no such folder"):
        convert_brat(tmp_path / "typo", tmp_path / "tasks", may_be_empty=True)
    assert not convert_brat(tmp_path / "none", tmp_path / "tasks", may_be_empty=True).documents.get("converted")
    assert yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text()) == []
    assert convert_brat(brat, tmp_path / "tasks", may_be_empty=True).documents["converted"] == 3
    for file in (*brat.rglob("*.ann"), *brat.rglob("*.[aA]?")):
        file.write_text("")
    with pytest.raises(InputError, match=r"no annotation in any \.ann"):
        convert_brat(brat, tmp_path / "tasks")


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        *((out, {}, "would be replaced") for out in ("brat", "brat/sub", "mine")),
        ("link", {}, "link: this is a broken link; delete it"),
        ("out", {"encoding": "utf-9"}, "no encoding 'utf-9'"),
        ("out", {"encoding": "rot13"}, "no encoding 'rot13'"),
        ("out", {"labels": ("N", "M")}, "no span has the label 'M'; the labels are N, n"),
    ],
)
def test_nothing_is_replaced_but_an_earlier_conversion(brat, tmp_path, out, options, message):
    """Errors say what to do, and nothing is written."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").touch()
    (tmp_path / "mine" / "report.json").write_text("{}")
    (tmp_path / "link").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        convert_brat(brat, tmp_path / out, BratOptions(**options))
    assert sorted(tmp_path.rglob("*")) == before


def write_folders(root: Path, *folders: str) -> Path:
    for folder in folders:
        for number in range(3):
            write(root / folder / f"{number}.txt", f"cat {number} in {folder or 'none'}")
            write(root / folder / f"{number}.ann", "T1\tN 0 3\tcat\n")
    return root


UNUSED = (
    "These folders are named after splits, but not used: {}. "
    "Folders of splits stand side by side, at the top or below single folders"
)
HASHED = (
    "No folder for {}: other texts, also those of train, are split by hash, by dev_ratio and test_ratio in project.yml"
)


@pytest.mark.parametrize(
    ("folders", "splits", "said"),
    [
        # What is beside folders is split by hash, and a folder below them is no split.
        (
            ("train", "Valid", "test/train", "more", ""),
            {"auto": 6, "dev": 3, "test": 3, "train": 3},
            "Splits by folder: Valid is dev, test is test, train is train",
        ),
        # They may be below single folders, but not below several.
        (
            ("mine/v2/train", "mine/v2/devel/a", "mine/v2/test", "mine/v2"),
            {"auto": 3, "dev": 3, "test": 3, "train": 3},
            "Splits by folder: mine/v2/devel is dev, mine/v2/test is test, mine/v2/train is train",
        ),
        (("one/train", "one/test", "two/test"), {"auto": 9}, UNUSED.format("one/test, one/train, two/test")),
        (
            ("train/train", "train/dev", "train/test"),
            {"dev": 3, "test": 3, "train": 3},
            "Splits by folder: train/dev is dev, train/test is test, train/train is train",
        ),
        (("in/more", "in/more/dev", "in"), {"auto": 9}, UNUSED.format("in/more/dev")),
        (("more", "more/in"), {"auto": 6}, ""),
        # Without dev or test, the texts of train are split by hash.
        (("train", "test"), {"auto": 3, "test": 3}, HASHED.format("dev")),
        (("train", "dev"), {"auto": 3, "dev": 3}, HASHED.format("test")),
        (("train",), {"auto": 3}, HASHED.format("dev and test")),
    ],
)
def test_folders_that_are_named_after_splits_are_those_splits(tmp_path, folders, splits, said):
    told: list[str] = []
    write_folders(tmp_path / "brat", *folders)
    write(tmp_path / "brat/README.txt", "no document")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", log=told.append)
    declared = yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())
    assert {d.get("split", "auto"): len(read_jsonl(tmp_path / "tasks" / d["path"])) for d in declared} == splits
    assert {d["name"] for d in declared} == {"brat" if split == "auto" else f"brat-{split}" for split in splits}
    assert "".join(told[-1:]).startswith(said)


def test_labels_are_chosen_renamed_and_come_from_documents_that_are_read(brat, tmp_path):
    (brat / "lost.ann").write_text("T1\tGHOST 0 3\tBoo\n")
    told: list[str] = []
    how = BratOptions(rename={"N": "n", "LOC": "PLACE"})
    report = convert_brat(brat, tmp_path / "tasks", how, log=told.append)
    assert (report.labels, report.documents["no text"]) == ({"n": 4}, 1)
    assert report.annotations["duplicate"] == 1, "one mention has both names"
    assert told == ["N renamed to n: 5 spans", "LOC renamed to PLACE: 0 spans"]
    report = convert_brat(brat, tmp_path / "tasks", BratOptions(labels=["N"]))
    assert (report.labels, report.annotations["other label"]) == ({"N": 2}, 3)
    assert yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())[0]["labels"] == ["N"]


def test_a_document_that_nobody_has_changed_since_it_was_predicted_is_not_gold(tmp_path):
    """Nor is a label of predictions alone one of the corpus. The list of predictions can be deleted."""
    docs = [PredictedDoc(name * 24, f"{name} cat", [(2, 5, "A")], [], [], doc=f"sub/{name}.txt") for name in "12"]
    write_predictions(docs, tmp_path / "raw.jsonl")
    predicted = tmp_path / "brat"
    export(tmp_path / "raw.jsonl", predicted / "batch", "brat")
    (predicted / "batch/sub/2.ann").write_text("T2\tB 0 1\t2\n")
    report = convert_brat(predicted, tmp_path / "tasks")
    assert (report.documents, report.labels) == ({"converted": 1, "prediction": 1}, {"B": 1})
    assert report.annotations == {"converted": 1, "prediction": 1}
    with pytest.raises(InputError, match=r"batch/sub/1\.ann:0 \(prediction\)"):
        convert_brat(predicted, tmp_path / "tasks", strict=True)
    (predicted / "batch" / PREDICTIONS).write_text("{oops")
    with pytest.raises(InputError, match=r"batch/PREDICTED\.json: not a list of predictions .* or delete it"):
        convert_brat(predicted, tmp_path / "tasks")
    (predicted / "batch" / PREDICTIONS).unlink()
    assert convert_brat(predicted, tmp_path / "tasks", strict=True).labels == {"A": 1, "B": 1}


def test_a_split_whose_documents_lack_a_file_that_others_have_is_counted(tmp_path):
    """As a shared task's test set that comes without the gold of its events."""
    for place in ("train/a", "train/b", "dev/c", "test/d"):
        write(tmp_path / "brat/mine" / f"{place}.txt", "big cat")
        for kind in ("a1", "a2") if place in ("train/a", "dev/c") else ("a1",):
            write(tmp_path / "brat/mine" / f"{place}.{kind}", f"T1\t{kind} 4 7\tcat\n")
    assert convert_brat(tmp_path / "brat", tmp_path / "tasks").lacking == {"test": {".a2": 1}}
    for label, lacking in (("a1", {}), ("a2", {"test": {".a2": 1}})):
        how = BratOptions(labels=[label])
        assert convert_brat(tmp_path / "brat", tmp_path / "tasks", how).lacking == lacking

from collections import Counter
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.base.files import locked
from labelwise.datasets import convert_brat as convert
from labelwise.datasets.convert_brat import convert_brat
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.export_corpus import export
from labelwise.sources.brat import PREDICTIONS, BratOptions
from scripts.convert_brat import convert_brat_cli
from tests.conftest import another_process, call, read_jsonl
from tests.sources.reading import write


@pytest.fixture
def brat(tmp_path):
    """Three texts, two labels that differ in case, eight T lines, five of them good."""
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
    tasks = [row for row in read_jsonl(out / "test.jsonl") if "text" in row]
    assert [task["meta"]["doc"] for task in tasks] == ["empty.txt", "one.txt", "sub/two.txt"]
    spans = [sorted((task["text"][s["start"] : s["end"]], s["label"]) for s in task["spans"]) for task in tasks]
    expected = [("big cat", "N"), ("big cat sat", "N"), ("cat", "n")]
    assert spans == [[], expected, [("cat", "N"), ("cat", "n"), ("dog", "n")]]
    place = {"_labelwise_place": ["one.ann", 3]}
    assert {"start": 0, "end": 11, "label": "N"} | place in tasks[1]["spans"]
    assert (tasks[1]["text"], tasks[1]["answer"]) == ("big cat sat\r\n", "accept")


@pytest.mark.guarantee("watched-data")
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
    assert (tmp_path / "tasks/auto.jsonl").exists()


@pytest.mark.guarantee("outcomes")
def test_the_merge_accounts_for_every_t_line_at_its_place(brat, merging):
    convert_brat(brat, merging.root / "tasks")
    assert sorted(file.name for file in (merging.root / "tasks").iterdir()) == [
        *("auto.jsonl", "datasets.yml", "labelwise-brat.json")
    ]
    ledger = merging.run()
    assert (ledger.rows, ledger.rows.total()) == ({"merged": 3, "not annotated": 1}, 4)
    lost = {"discontinuous": 1, "mention differs": 2, "invalid": 1}
    assert (ledger.spans, ledger.spans.total()) == ({"entity": 3, "same span": 1, "nested": 1, **lost}, 9)
    assert {(row["file"], row["line"]) for row in merging.table("spans")} == {
        *(("one.ann", number) for number in range(1, 6)),
        *(("sub/two.a1", number) for number in (1, 2)),
        *(("sub/two.a2", number) for number in (1, 2)),
    }
    assert merging.problems() == [
        ("brat", "unread.txt", 0, "not annotated: no annotation file"),
        ("brat", "one.ann", 4, "invalid: not an annotation: 'oops'"),
        ("brat", "one.ann", 3, r"discontinuous: 'T3\tN 0 3;8 11\tbig sat'"),
        ("brat", "one.ann", 5, r"mention differs: 'T4\tN 0 3\tcat'"),
        ("brat", "sub/two.a2", 2, r"mention differs: past the end of the text: 'T4\tN 50 53\tcat'"),
    ]
    with pytest.raises(InputError, match=r"4 rows or spans can't be used, .*one\.ann, line 3: discontinuous"):
        merging.run(strict=True)


def test_spans_left_out_by_an_option_are_no_loss(brat, merging):
    write(brat / "more.ann", "".join(f"T{n}\tN 0 1\tm\n" for n in range(20)))
    write(brat / "more.txt", "more")
    (brat / "one.ann").write_text("T1\tn 4 7\tcat\n")
    (brat / "sub/two.a2").write_text("")
    convert_brat(brat, merging.root / "tasks", BratOptions(labels=["n"]))
    ledger = merging.run(strict=True)
    assert (ledger.rows["not annotated"], ledger.spans) == (1, {"entity": 3, "other label": 20})
    assert not any(check.stops for check in ledger.checks)


def test_annotators_that_differ_in_case_alone_are_refused(tmp_path):
    """On macOS their files would be one."""
    for folder in ("Ann", "bob", "ann"):
        write(tmp_path / f"brat/{folder}/1.txt", f"a cat of {folder}")
        write(tmp_path / f"brat/{folder}/1.ann", "T1\tN 2 5\tcat\n")
    with pytest.raises(InputError, match=r"^folders ann and Ann differ in case alone; rename one"):
        convert_brat(tmp_path / "brat", tmp_path / "tasks", BratOptions(folders="annotators"))


@pytest.mark.guarantee("exclusive")
def test_another_conversion_to_the_same_folder_is_refused_at_once(brat, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "find_documents", lambda *args: pytest.fail("it was begun"))
    with (
        another_process(locked(tmp_path / "tasks")),
        pytest.raises(InputError, match=r"tasks: another process is writing this; wait until it ends"),
    ):
        convert_brat(brat, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


@pytest.mark.guarantee("changing-source")
@pytest.mark.parametrize("file", ["sub/two.a2", "new.ann", "one.txt"])
def test_a_folder_that_changes_meanwhile_is_not_converted(brat, tmp_path, monkeypatch, file):
    """A text may be read before the change, its annotations after it."""
    original = convert.write_tasks

    def change_after(*args):
        result = original(*args)
        (brat / file).write_text("T1\tNEW 2 5\tcat\n")
        return result

    monkeypatch.setattr(convert, "write_tasks", change_after)
    with pytest.raises(InputError, match=r"brat: a file changed while it was read; convert again"):
        convert_brat(brat, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


def test_a_folder_without_documents_gives_none_where_it_may_be_empty(brat, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"none: no .* put a brat corpus there$"):
        convert_brat(tmp_path / "none", tmp_path / "tasks")
    with pytest.raises(InputError, match="no such folder"):
        convert_brat(tmp_path / "typo", tmp_path / "tasks", may_be_empty=True)
    assert not convert_brat(tmp_path / "none", tmp_path / "tasks", may_be_empty=True).files
    assert yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text()) == []
    assert convert_brat(brat, tmp_path / "tasks", may_be_empty=True).files.total() == 3
    for file in (*brat.rglob("*.ann"), *brat.rglob("*.[aA]?")):
        file.write_text("")
    with pytest.raises(InputError, match=r"no annotation in any \.ann"):
        convert_brat(brat, tmp_path / "tasks")


@pytest.mark.guarantee("own-files")
@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        *((out, {}, "would be replaced, and .* is an input") for out in ("brat", "brat/sub")),
        ("mine", {}, "is there and isn't a conversion"),
        ("link", {}, "link: this is a broken link; delete it"),
        ("out", {"encoding": "utf-9"}, "no encoding 'utf-9'"),
        ("out", {"encoding": "rot13"}, "no encoding 'rot13'"),
        ("out", {"labels": ("N", "M")}, "no span has the label 'M'; the labels are N, n"),
    ],
)
def test_nothing_is_replaced_but_an_earlier_conversion(brat, tmp_path, out, options, message):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").touch()
    (tmp_path / "mine" / "report.json").write_text("{}")
    (tmp_path / "link").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        convert_brat(brat, tmp_path / out, BratOptions(**options))
    assert sorted(tmp_path.rglob("*")) == before


def test_what_an_earlier_release_converted_is_replaced(brat, tmp_path):
    old = {"report.json": "{}", "problems.jsonl": "", "datasets.yml": "[]", "auto.jsonl": ""}
    for name, content in old.items():
        write(tmp_path / "tasks" / name, content)
    convert_brat(brat, tmp_path / "tasks")
    assert not old.keys() - {"datasets.yml", "auto.jsonl"} & {file.name for file in (tmp_path / "tasks").iterdir()}
    convert_brat(brat, tmp_path / "tasks")


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
HASHED = "No folder for {}: other texts, and those in train, are split by hash, by {} in project.yml"


@pytest.mark.parametrize(
    ("folders", "splits", "message"),
    [
        # Documents outside folders are split by hash, and a folder below them is no split.
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
        (("train", "test"), {"auto": 3, "test": 3}, HASHED.format("dev", "dev_ratio")),
        (("train", "dev"), {"auto": 3, "dev": 3}, HASHED.format("test", "test_ratio")),
        (("train",), {"auto": 3}, HASHED.format("dev and test", "dev_ratio and test_ratio")),
    ],
)
def test_folders_that_are_named_after_splits_are_those_splits(tmp_path, folders, splits, message):
    messages: list[str] = []
    write_folders(tmp_path / "brat", *folders)
    write(tmp_path / "brat/README.txt", "no document")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", log=messages.append)
    declared = yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())
    counts = {d["name"]: Counter("text" in row for row in read_jsonl(tmp_path / "tasks" / d["path"])) for d in declared}
    assert counts["brat"][False] == 1, "the README"
    tasks = {"brat" if split == "auto" else f"brat-{split}": n for split, n in splits.items()}
    assert {name: counts[True] for name, counts in counts.items() if counts[True]} == tasks
    assert "".join(messages[-1:]).startswith(message)


@pytest.mark.parametrize(("own", "hashed"), [("dev", "test"), ("test", "dev")])
def test_texts_of_train_join_no_split_that_has_a_folder(merging, own, hashed):
    """Their hash chooses between train and the split without a folder, for groups of near-duplicates, too."""
    for folder in ("train", own):
        for number in range(60 if folder == "train" else 2):
            write(
                merging.root / f"brat/{folder}/{number}.txt",
                f"cat {number} in {folder}, one of many texts there, {number}",
            )
            write(merging.root / f"brat/{folder}/{number}.ann", "T1\tN 0 3\tcat\n")
    convert_brat(merging.root / "brat", merging.root / "tasks")
    ratios = {"dev_ratio": 0.3, "test_ratio": 0.3}
    for policy, similarity in (("report", 0.9), ("group", 0.9)):
        texts = merging.run(near_duplicates=policy, near_similarity=similarity, **ratios).texts
        assert texts[own] == 2
        assert 10 < texts[hashed] < 30, texts
    merging.declared = yaml.safe_load((merging.root / "tasks/datasets.yml").read_text())
    assert {dataset["split"] for dataset in merging.declared} == {own, f"no-{own}"}


def test_labels_are_chosen_and_renamed_from_readable_documents(brat, merging):
    (brat / "lost.ann").write_text("T1\tGHOST 0 3\tBoo\n")
    messages: list[str] = []
    how = BratOptions(rename={"N": "n", "LOC": "PLACE"})
    convert_brat(brat, merging.root / "tasks", how, log=messages.append)
    ledger = merging.run()
    assert ([*ledger.labels], ledger.rows["no text"]) == (["n"], 1)
    lost = {"discontinuous": 1, "mention differs": 2, "invalid": 2}
    assert ledger.spans == {"entity": 3, "nested": 1, "duplicate": 1, **lost}
    assert messages == ["N renamed to n: 5 spans", "LOC renamed to PLACE: 0 spans"]
    convert_brat(brat, merging.root / "tasks", BratOptions(labels=["N"]))
    ledger = merging.run()
    assert (ledger.spans["entity"], ledger.spans["other label"], [*ledger.labels]) == (2, 3, ["N"])


def test_a_document_that_nobody_has_changed_since_it_was_predicted_is_not_gold(merging):
    docs = [PredictedDoc(name * 24, f"{name} cat", [(2, 5, "A")], [], [], doc=f"sub/{name}.txt") for name in "12"]
    write_predictions(docs, merging.root / "raw.jsonl")
    predicted, tasks = merging.root / "brat", merging.root / "tasks"
    export(merging.root / "raw.jsonl", predicted / "batch", "brat")
    (predicted / "batch/sub/2.ann").write_text("T2\tB 0 1\t2\n")
    convert_brat(predicted, tasks)
    ledger = merging.run()
    assert (ledger.rows, [*ledger.labels]) == ({"merged": 1, "prediction": 1}, ["B"])
    assert ledger.spans == {"entity": 1, "in prediction task": 1}
    with pytest.raises(InputError, match=r"1 unsaved prediction"):
        merging.run(strict=True)
    (predicted / "batch" / PREDICTIONS).write_text("{oops")
    with pytest.raises(InputError, match=r"batch/PREDICTED\.json: not a list of predictions .* or delete it"):
        convert_brat(predicted, tasks)
    (predicted / "batch" / PREDICTIONS).unlink()
    convert_brat(predicted, tasks)
    assert [*merging.run(strict=True).labels] == ["A", "B"]


def test_a_split_whose_documents_lack_a_file_that_others_have_is_told(merging):
    """As a shared task's test set without the gold of its events."""
    for place in ("train/a", "train/b", "dev/c", "test/d"):
        write(merging.root / "brat/mine" / f"{place}.txt", "big cat")
        for kind in ("a1", "a2") if place in ("train/a", "dev/c") else ("a1",):
            write(merging.root / "brat/mine" / f"{place}.{kind}", f"T1\t{kind} 4 7\tcat\n")
    for labels, lacking in (([], [("test", [".a2"], 1)]), (["a1"], []), (["a2"], [("test", [".a2"], 1)])):
        convert_brat(merging.root / "brat", merging.root / "tasks", BratOptions(labels=labels))
        checks = [check for check in merging.run().checks if check.kind == "files missing in a split"]
        assert [(check.values["split"], check.values["files"], check.n) for check in checks] == lacking

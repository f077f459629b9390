import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from labelwise.errors import InputError
from labelwise.files import locked
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources import convert_brat as convert
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.declarations import load_datasets
from tests.conftest import another_process
from tests.merge.test_run import read_docs


@pytest.fixture
def brat(tmp_path):
    """Three texts, two labels that differ in case, eight T lines of which five are good."""
    folder = tmp_path / "brat"
    (folder / "sub").mkdir(parents=True)
    files = {
        "one.txt": "big cat sat\r\n",
        "one.ann": "T1\tN 0 7\tbig cat\nT2\tn 4 7\tcat\nT3\tN 0 3;8 11\tbig sat\noops\nT4\tN 0 3\tcat\n",
        "sub/two.txt": "a cat, no dog",
        "sub/two.ann": "T1\tn 2 5\tcat\nT2\tn 10 13\tdog\nT3\tN 2 5\tcat\nT4\tN 50 53\tcat\n",
        "empty.txt": "nothing here",
        "empty.ann": "",
        "unread.txt": "not annotated",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content.encode())
    return folder


def tasks(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def test_every_annotated_text_is_a_task_with_the_spans_of_all_labels(brat, tmp_path):
    out = tmp_path / "tasks"
    convert_brat(brat, out, split="test", prefix="demo-")
    declared = yaml.safe_load((out / "datasets.yml").read_text())
    name = {"name": "demo-brat-test", "path": "test.jsonl", "split": "test"}
    assert declared == [{**name, "labels": ["N", "n"], "kind": "complete"}]
    made = tasks(out / "test.jsonl")
    assert [task["meta"]["doc"] for task in made] == ["empty.txt", "one.txt", "sub/two.txt"]
    found = [sorted((task["text"][s["start"] : s["end"]], s["label"]) for s in task["spans"]) for task in made]
    assert found == [[], [("big cat", "N"), ("cat", "n")], [("cat", "N"), ("cat", "n"), ("dog", "n")]]
    assert (made[1]["text"], made[1]["answer"]) == ("big cat sat\r\n", "accept")


def test_the_report_balances_and_every_loss_is_located(brat, tmp_path):
    out = tmp_path / "tasks"
    report = convert_brat(brat, out)
    assert report.documents == {"converted": 3, "no annotation file": 1}
    assert report.lines == {"T": 8, "stray": 1}
    assert report.annotations == {"converted": 5, "discontinuous": 1, "mention differs": 1, "out of range": 1}
    assert report.labels == {"N": 2, "n": 3}
    assert [(p["file"], p["line"], p["reason"]) for p in tasks(out / "problems.jsonl")] == [
        ("one.ann", 4, "stray line"),
        ("one.ann", 3, "discontinuous"),
        ("one.ann", 5, "mention differs"),
        ("sub/two.ann", 4, "out of range"),
        ("unread.txt", 0, "no annotation file"),
    ]
    assert json.loads((out / "report.json").read_text())["annotations"] == report.annotations


def test_a_span_in_pieces_keeps_them(brat, tmp_path):
    convert_brat(brat, tmp_path / "tasks", discontinuous="cover", labels=["N"])
    [task] = [t for t in tasks(tmp_path / "tasks" / "auto.jsonl") if t["meta"]["doc"] == "one.txt"]
    assert {"start": 0, "end": 11, "label": "N", "fragments": [[0, 3], [8, 11]]} in task["spans"]


def test_each_data_set_says_where_documents_are_shown(brat, tmp_path):
    convert_brat(brat, tmp_path / "tasks", document_url="https://example.org/#/{doc}")
    datasets = load_datasets([tmp_path / "tasks" / "datasets.yml"])
    assert {dataset.document_url for dataset in datasets} == {"https://example.org/#/{doc}"}
    with pytest.raises(InputError, match=r"section brat: document_url 'ftp://.*' isn't an address"):
        convert_brat(brat, tmp_path / "tasks", document_url="ftp://example.org/{doc}")


def test_labels_are_a_choice_that_is_counted(brat, tmp_path):
    report = convert_brat(brat, tmp_path / "tasks", labels=["N", "N"])
    assert report.labels == {"N": 2}
    assert report.annotations["other label"] == 3
    assert yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())[0]["labels"] == ["N"]
    with pytest.raises(InputError, match="no span has the label 'M'; the labels are N, n"):
        convert_brat(brat, tmp_path / "tasks", labels=["N", "M"])


def test_strict_writes_nothing(brat, tmp_path):
    out = tmp_path / "tasks"
    convert_brat(brat, out)
    before = (out / "report.json").read_bytes()
    with pytest.raises(InputError, match=r"4 files or lines.*one\.ann:4 \(stray line\): 'oops'"):
        convert_brat(brat, out, strict=True)
    assert (out / "report.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["brat", "tasks"]


def test_another_conversion_to_the_same_folder_is_refused_at_once(brat, tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "find_documents", lambda *given: pytest.fail("it was begun"))
    with (
        another_process(locked(tmp_path / "tasks")),
        pytest.raises(InputError, match=r"tasks: another process is writing this; wait until it ends"),
    ):
        convert_brat(brat, tmp_path / "tasks")
    assert not (tmp_path / "tasks").exists()


@pytest.mark.parametrize("file", ["sub/two.ann", "new.ann", "one.txt"])
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


def test_the_fallback_is_for_a_folder_without_documents(brat, tmp_path):
    (tmp_path / "none").mkdir()
    convert_brat(tmp_path / "none", tmp_path / "tasks", fallback=brat)
    assert len(tasks(tmp_path / "tasks" / "auto.jsonl")) == 3
    with pytest.raises(InputError, match="put a brat corpus there"):
        convert_brat(tmp_path / "none", tmp_path / "tasks")
    with pytest.raises(InputError, match=r"none: no .* put a brat corpus there, or run make-demo"):
        convert_brat(tmp_path / "none", tmp_path / "tasks", fallback=tmp_path / "none")
    with pytest.raises(InputError, match="no such folder"):
        convert_brat(tmp_path / "typo", tmp_path / "tasks", fallback=brat)


@pytest.mark.parametrize(
    ("out", "why"),
    [
        (".", "would be replaced"),
        ("brat", "would be replaced"),
        ("brat/sub", "would be replaced"),
        ("mine", "would be replaced"),
        ("link", "link: this is a link to nothing; delete it"),
    ],
)
def test_nothing_is_replaced_but_an_earlier_conversion(brat, tmp_path, out, why):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").touch()
    (tmp_path / "mine" / "report.json").write_text("{}")
    (tmp_path / "link").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=why):
        convert_brat(brat, tmp_path / out)
    assert sorted(tmp_path.rglob("*")) == before


def test_strict_allows_what_options_leave_out(brat, tmp_path):
    (brat / "one.ann").write_text("T2\tn 4 7\tcat\n")
    (brat / "sub" / "two.ann").write_text("T1\tN 2 5\tcat\n")
    report = convert_brat(brat, tmp_path / "tasks", labels=["N"], strict=True)
    assert report.annotations == {"converted": 1, "other label": 1}


def test_linked_folders_are_read(brat, tmp_path):
    brat.rename(tmp_path / "moved")
    brat.mkdir()
    (tmp_path / "moved").rename(brat / ".hidden")
    (brat / "there").symlink_to(".hidden")
    (tmp_path / "link").symlink_to(brat)
    for folder in (brat, tmp_path / "link"):
        assert convert_brat(folder, tmp_path / "tasks").documents["converted"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "utf-9"}, "no encoding 'utf-9'"),
        ({"encoding": "utf-16"}, "'utf-16' can't be read line by line"),
        ({"encoding": "utf-7"}, "'utf-7' can't be read line by line"),  # + begins something else
        ({"encoding": "unicode_escape"}, "'unicode_escape' can't be read line by line"),
        ({"encoding": "hz"}, "'hz' can't be read line by line"),
        ({"encoding": "rot13"}, "no encoding 'rot13'"),
        ({"encoding": "a\0"}, "no encoding 'a"),
        ({"labels": []}, "no annotation in any .ann"),
    ],
)
def test_errors_say_what_to_do(tmp_path, options, message):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a")
    (tmp_path / "in" / "a.ann").write_text("")
    with pytest.raises(InputError, match=message):
        convert_brat(tmp_path / "in", tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("encoding", "word"),
    [
        *(("utf-8", "Größe"), ("utf-8-sig", "名"), ("latin-1", "Größe"), ("cp1252", "€")),
        *(("shift_jis", "日本"), ("gb18030", "名"), ("big5", "名"), ("koi8-r", "слово")),
    ],
)
def test_encodings_that_extend_ascii_are_read(tmp_path, encoding, word):
    brat, text = tmp_path / "brat", f"a {word} b"
    brat.mkdir()
    (brat / "a.txt").write_bytes(text.encode(encoding))
    (brat / "a.ann").write_bytes(f"T1\tA 2 {2 + len(word)}\t{word}\n".encode(encoding))
    convert_brat(brat, tmp_path / "tasks", encoding=encoding)
    (task,) = tasks(tmp_path / "tasks" / "auto.jsonl")
    assert [text[span["start"] : span["end"]] for span in task["spans"]] == [word]


def test_offsets_and_labels_survive(tmp_path):
    """Every kind of overlap, spans inside a token, a line end, an emoji."""
    text = "The big\ncat sat \U0001f600 on 60degC mats."
    spans = [(4, 11, "X"), (8, 11, "Y"), (8, 15, "X"), (16, 17, "Z"), (21, 23, "X"), (23, 27, "Y"), (8, 11, "Z")]
    brat = tmp_path / "brat"
    brat.mkdir()
    (brat / "d.txt").write_bytes(text.encode())
    rows = [
        f"T{i}\t{label} {s} {e}\t{text[s:e]}\n".replace("big\ncat", "big cat") for i, (s, e, label) in enumerate(spans)
    ]
    (brat / "d.ann").write_text("".join(rows), encoding="utf8")
    convert_brat(brat, tmp_path / "tasks")
    found = [
        (span["start"], span["end"], span["label"])
        for task in tasks(tmp_path / "tasks" / "auto.jsonl")
        for span in task["spans"]
    ]
    assert Counter(found) == Counter(spans)


def test_annotations_that_are_all_utf_16_are_named(tmp_path):
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "d.txt").write_text("big cat")
    (tmp_path / "brat" / "d.ann").write_bytes("T1\tX 4 7\tcat\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"d\.ann: this is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8"):
        convert_brat(tmp_path / "brat", tmp_path / "tasks")


def write_folders(root: Path, *folders: str) -> Path:
    for folder in folders:
        for number in range(3):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / f"{number}.txt").write_text(f"cat {number} in {folder or 'none'}")
            (root / folder / f"{number}.ann").write_text("T1\tN 0 3\tcat\n")
    return root


def splits_of(corpus: Path, declaration: Path) -> dict[str, str]:
    """The split of each text, in a merged corpus."""
    merge_data([declaration], corpus, Settings())
    return {text: split for text, (split, _) in read_docs(corpus.parent).items()}


def test_folders_that_are_named_after_splits_are_those_splits(tmp_path):
    """Nothing has to be declared by hand; what is beside them is split by hash, and a folder below them is no split."""
    said: list[str] = []
    folders = ("train", "Valid", "test/train", "more", "")
    convert_brat(write_folders(tmp_path / "brat", *folders), tmp_path / "tasks", split="folder", tell=said.append)
    declared = yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())
    assert [(d["name"], d["split"], len(tasks(tmp_path / "tasks" / d["path"]))) for d in declared] == [
        ("brat", "auto", 6),
        ("brat-dev", "dev", 3),
        ("brat-test", "test", 3),
        ("brat-train", "train", 3),
    ]
    splits = splits_of(tmp_path / "corpus", tmp_path / "tasks" / "datasets.yml")
    assert all(
        splits[f"cat {n} in {folder}"] == split
        for n in range(3)
        for folder, split in (("train", "train"), ("Valid", "dev"), ("test/train", "test"))
    )
    assert said == ["Splits by folder: Valid is dev, test is test, train is train"]


def test_if_all_texts_are_in_such_folders_no_data_set_is_empty(tmp_path):
    convert_brat(write_folders(tmp_path / "brat", "train", "dev", "test"), tmp_path / "tasks", split="folder")
    declared = yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())
    assert [d["split"] for d in declared] == ["dev", "test", "train"]
    files = sorted(path.stem for path in (tmp_path / "tasks").glob("*.jsonl"))
    assert files == ["dev", "problems", "test", "train"]


def test_folders_that_lie_deeper_are_no_splits_and_that_is_said(tmp_path):
    said: list[str] = []
    write_folders(tmp_path / "brat" / "corpus", "train", "test")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", split="folder", tell=said.append)
    expected = (
        f"Folders such as corpus/test are no splits, as they aren't in {tmp_path / 'brat'} itself; move them there"
    )
    assert said[-1] == expected
    assert [d["split"] for d in yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())] == ["auto"]


@pytest.mark.parametrize("folders", [("train", "test"), ("train", "dev"), ("train",)])
def test_without_dev_or_test_the_texts_of_train_are_split_by_hash(folders, tmp_path):
    said: list[str] = []
    convert_brat(write_folders(tmp_path / "brat", *folders), tmp_path / "tasks", split="folder", tell=said.append)
    declared = yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())
    assert {d["split"] for d in declared} == {"auto", *folders} - {"train"}
    lacking = " and ".join(name for name in ("dev", "test") if name not in folders)
    assert said[-1].startswith(f"No folder for {lacking}: other texts are split by hash")


def test_by_hash_folders_say_nothing(tmp_path):
    convert_brat(write_folders(tmp_path / "brat", "train", "dev", "test"), tmp_path / "tasks")
    assert [d["split"] for d in yaml.safe_load((tmp_path / "tasks" / "datasets.yml").read_text())] == ["auto"]

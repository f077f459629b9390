import os
import signal
import time

import pytest

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import MANIFEST, find_partitions, read_manifest
from labelwise.student import leaks
from scripts.label_raw import label_raw_cli
from tests.conftest import call, save_ruler, task, write_jsonl

TEACHER = "training/small/model-best"
DOCUMENT = "He came from the old harbour town with a letter for {}. Nobody there had seen the old ship again."
HELD = {
    "dev": ["Ann asked Bob about the weather in the harbour today", DOCUMENT.format("Eve")],
    "test": [
        "Max paid for the second boat with a bag of silver coins",
        "Ida met Tom at the gate of the old mill again",
    ],
}
LEAKS = {
    "in dev or test": "Ann asked  Bob about the\nweather in the harbour today",
    "nearly equal to a text of dev or test": DOCUMENT.format("Eve") + " Never",
    "part of a text of dev or test": "Nobody there had seen the old ship again.",
    "contains a text of dev or test": f"A story begins here, told by no one. {HELD['test'][1]} and then it ended",
    "in train": "Jim likes the  blue boat",
}
FREE = [f"Text {number} is about Zoe and her {thing} only" for number in range(40) for thing in ("cat", "hat")]


@pytest.fixture
def project(merging, monkeypatch):
    monkeypatch.chdir(merging.root)
    train = [task("Jim likes the blue boat", (0, 3)), task("Sam likes the red boat", (0, 3))]
    merging.add("train", ["A"], train, split="train")
    merging.add("others", ["B"], [task("Sam likes the red boat", (14, 17), label="B")], split="train")
    for split, texts in HELD.items():
        merging.add(split, ["A"], [task(text, (0, 3)) for text in texts], split=split)
    merging.run(docs_per_partition=8, near_duplicates="report")
    (merging.root / "training/small").mkdir(parents=True)
    save_ruler(merging.root / TEACHER, ("A", [{"IS_TITLE": True}]), ("OTHER", "about"))
    write_jsonl(merging.root / "assets/raw/more/free.jsonl", [{"text": text} for text in [*FREE, FREE[0]]])
    write_jsonl(merging.root / "assets/raw/leaks.jsonl", [{"text": text} for text in LEAKS.values()])
    return merging.root


def train_of(project):
    return [
        doc for file in find_partitions(project / "training/student/corpus/train") for doc in read_stored_docs(file)
    ]


@pytest.mark.guarantee("student")
@pytest.mark.parametrize("most", [3, 1000])
def test_raw_texts_leak_neither_dev_nor_test_and_omissions_are_counted(project, monkeypatch, most):
    for name in ("MAX_SIGNED", "MAX_PARTS"):
        monkeypatch.setattr(leaks, name, most)
    printed = call(label_raw_cli, "student")
    texts = [doc.text for doc in train_of(project)]
    assert sorted(texts) == sorted([*FREE, "Jim likes the blue boat", "Sam likes the red boat"])
    raw = read_manifest(project / "training/student/corpus").settings["raw"]
    assert raw["left_out"] == dict.fromkeys(LEAKS, 1) | {"twice among raw texts": 1}
    for why in raw["left_out"]:
        assert why in printed
    assert (raw["texts"], raw["labels"]) == (len(FREE), ["A"])
    assert f"{len(FREE)} raw texts of {raw['words']} words" in printed


@pytest.mark.guarantee("student")
@pytest.mark.parametrize("key", ["doc", "patient"])
def test_a_raw_text_that_shares_its_split_by_value_with_a_text_of_dev_or_test_is_left_out(key, project, merging):
    """Of two values of one text, the merge's unit is the least one."""
    held = [task(f"Eve came to the {number}th gate", (0, 3), meta={key: f"held-{number}"}) for number in range(2)]
    for split, row in zip(("dev", "test"), held, strict=True):
        merging.add(f"more_{split}", ["A"], [row], split=split)
    merging.add("more_train", ["A"], [task("Eve had no gate", (0, 3), meta={key: "free"})], split="train")
    merging.run(docs_per_partition=8, near_duplicates="report", split_by=key)
    texts = {"held-0": "Zoe is ill", "held-1": "Zoe is well", "free": "Zoe is old", "new": "Zoe is new"}
    rows = [{"text": text, "meta": {key: value}} for value, text in texts.items()]
    write_jsonl(project / "assets/raw/documents.jsonl", rows)
    printed = " ".join(call(label_raw_cli, "student").split())
    assert {doc.text for doc in train_of(project)} & {*texts.values()} == {texts["free"], texts["new"]}
    raw = read_manifest(project / "training/student/corpus").settings["raw"]
    assert raw["left_out"][f"with the {key} of a text of dev or test"] == 2
    assert f"with the {key} of a text of dev or test" in printed


def test_a_raw_text_is_complete_for_the_labels_that_its_teacher_has_learned(project):
    call(label_raw_cli, "student")
    docs = {doc.text: doc for doc in train_of(project)}
    raw = docs[FREE[0]].annotation
    assert raw.accepted == {(0, 4, "A"), (16, 19, "A")}, "of OTHER, which the corpus doesn't have, nothing"
    assert raw.uncovered == {"B": "none"}
    gold = docs["Sam likes the red boat"].annotation
    assert gold.accepted == {(0, 3, "A"), (14, 17, "B")}
    assert not gold.uncovered


def test_gold_and_raw_texts_are_mixed_in_the_order_of_keys_and_all_else_is_the_mergers(project):
    call(label_raw_cli, "student")
    own, merged = project / "training/student/corpus", project / "corpus"
    files = find_partitions(own / "train")
    assert len(files) > 8
    keys = [doc.key for doc in train_of(project)]
    assert keys == sorted(keys)
    for name in ("dev", "test", "labels", "tokenizer.json"):
        paths = [path.relative_to(merged) for path in [merged / name, *(merged / name).rglob("*")] if path.is_file()]
        assert paths
        assert all((own / path).read_bytes() == (merged / path).read_bytes() for path in paths)
    counts = read_manifest(own).splits["train"]
    assert (counts.texts, counts.words) == (len(keys), sum(map(len, train_of(project))))


def test_equal_inputs_give_equal_bytes_whatever_the_workers_and_files(project):
    def content():
        folder = project / "training/student/corpus"
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    call(label_raw_cli, "student", "--workers", 2)
    first = content()
    call(label_raw_cli, "student")
    assert content() == first


def test_a_killed_run_goes_on_and_predictions_of_an_earlier_teacher_are_made_anew(project):
    for number in range(60):
        write_jsonl(project / f"assets/raw/many/{number}.jsonl", [{"text": f"File {number} tells of Zoe"}])
    predicted = project / "training/student/predicted"
    if not (child := os.fork()):
        try:
            os.setsid()
            call(label_raw_cli, "student")
        finally:
            os._exit(1)
    while not [*predicted.glob("many/*.done")]:
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not (project / "training/student/corpus").exists()
    done = {path: path.stat().st_ino for path in predicted.rglob("*.done")}
    call(label_raw_cli, "student")
    assert {path: path.stat().st_ino for path in done} == done
    save_ruler(project / TEACHER, ("A", "boat"))
    call(label_raw_cli, "student")
    assert not {span for doc in train_of(project) if "Zoe" in doc.text for span in doc.annotation.accepted}


def test_raw_texts_that_were_deleted_are_forgotten(project):
    write_jsonl(project / "assets/raw/more/other.jsonl", [{"text": "Soon forgotten by Zoe"}])
    call(label_raw_cli, "student")
    assert "Soon forgotten by Zoe" in {doc.text for doc in train_of(project)}
    (project / "assets/raw/more/other.jsonl").unlink()
    call(label_raw_cli, "student")
    assert "Soon forgotten by Zoe" not in {doc.text for doc in train_of(project)}


@pytest.mark.parametrize("coverage", ["drop", "outside"])
def test_where_train_is_complete_a_teacher_must_know_all_labels(project, coverage):
    file = project / "corpus" / MANIFEST
    file.write_text(file.read_text().replace('"coverage": "by-label"', f'"coverage": "{coverage}"'))
    assert "it hasn't learned B; name another" in " ".join(call(label_raw_cli, "student", status=1).split())
    save_ruler(project / TEACHER, ("A", [{"IS_TITLE": True}]), ("B", "about"))
    call(label_raw_cli, "student")
    assert not any(doc.annotation.uncovered for doc in train_of(project) if doc.text in FREE)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "assets/raw: no .txt or .jsonl file; put some there"), ([LEAKS["in train"]], "no text is left (1 in train)")],
)
def test_a_project_without_raw_texts_is_told_where_they_go(project, rows, message):
    for file in (project / "assets/raw").rglob("*.jsonl"):
        file.unlink()
    if rows:
        write_jsonl(project / "assets/raw/a.jsonl", [{"text": text} for text in rows])
    assert message in " ".join(call(label_raw_cli, "student", status=1).split())


def test_a_teacher_without_a_label_of_the_corpus_is_refused(project):
    save_ruler(project / TEACHER, ("OTHER", "about"))
    printed = " ".join(call(label_raw_cli, "student", status=1).split())
    assert "training/small/model-best: it hasn't learned A, B; name another `teacher` in project.yml" in printed

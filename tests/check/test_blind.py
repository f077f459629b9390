"""Test is left alone: nothing of it says what to fix, nor is in a list, but for the one of texts to annotate anew."""

import json
from pathlib import Path

from labelwise.check.blind import MOST
from labelwise.check.run import check
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import partitions_of


def rows(count: int, word: str, marked: bool, place: str = "here") -> list[dict]:
    """Texts with the word, each second one marked as A, or each other."""
    texts = [f"{place} {number} wash the {word} now" for number in range(count)]
    at = {text: text.index(word) for text in texts}
    return [
        {
            "text": text,
            "spans": [{"start": at[text], "end": at[text] + len(word), "label": "A"}][: n % 2 == marked],
        }
        for n, text in enumerate(texts)
    ]


def two_ways() -> tuple[list[dict], list[dict]]:
    return rows(40, "plate", True), rows(40, "plate", False)


def checked(merging, *datasets: tuple[str, list[str], list[dict], str]) -> dict[str, bytes]:
    """What a check of these data sets writes, by path."""
    merging.declared.clear()
    for name, labels, answers, split in datasets:
        merging.add(name, labels, answers, split=split)
    merging.run()
    out = merging.root / "check"
    check(merging.root / "corpus", out)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.*") if path.is_file()}


def tasks_of(content: bytes) -> list[dict]:
    return [json.loads(line) for line in content.splitlines()]


def test_what_test_says_changes_nothing(merging):
    """Train marks a word in nearly each text; test does the same, or the contrary, or has another word."""
    marked = [{**row, "spans": other["spans"] or row["spans"]} for row, other in zip(*two_ways(), strict=True)]
    train = ("a", ["A"], [*marked[:36], *rows(4, "plate", True, "then")], "train")
    tests = rows(40, "plate", True, "there"), rows(40, "plate", False, "there"), rows(9, "tube", True, "there")
    found = [checked(merging, train, ("t", ["A"], test, "test")) for test in tests]
    rest = [{name: content for name, content in files.items() if not name.startswith("test/")} for files in found]
    assert rest[0] == rest[1] == rest[2]
    assert found[0] == found[1]
    assert tasks_of(found[0]["tasks/A.jsonl"])
    assert not any(b"there" in content for content in rest[0].values())


def test_a_sample_of_test_has_no_spans_and_is_the_first_texts_by_their_digest(merging):
    many = ("a", ["A", "C"], rows(MOST + 20, "plate", True), "test")
    few = ("b", ["B"], rows(30, "plate", True)[::2], "test")
    found = checked(merging, many, few, ("r", ["R"], rows(3, "tube", True), "train"))
    files = {Path(name).stem: tasks_of(content) for name, content in found.items() if name.startswith("test/")}
    assert {name: len(tasks) for name, tasks in files.items()} == dict.fromkeys("ABCR", MOST)
    corpus = [doc for file in partitions_of(merging.root / "corpus", "test") for doc in read_stored_docs(file)]
    assert [task["text"] for task in files["A"]] == [doc.text for doc in corpus][:MOST]
    for name, shown in {"A": "A,C", "B": "B", "C": "A,C", "R": "R"}.items():
        assert [task["text"] for task in files[name]] == [task["text"] for task in files["A"]]
        for task in files[name]:
            assert task == {"text": task["text"], "spans": [], "meta": {"doc": "", "labels": shown}}

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cases.making import Outcome, Sentence, jsonl, merge_folder, sentences, table

LABELS = ("PER", "LOC", "DATE")
SOME = ({"PER"}, {"PER", "LOC"}, {"LOC"}, {"LOC", "DATE"}, {"PER", "DATE"}, {*LABELS})  # eleven labels of eighteen


def conll(number: int, rows: list[Sentence], doc: bool = False) -> str:
    tags = ([(token, tag if tag[2:] in SOME[number] else "O") for token, tag in row.tagged] for row in rows)
    return (f"# newdoc id = d{number}\n" if doc else "") + table(tags)


def merge(root: Path, files: dict[str, str]) -> tuple[Outcome, str]:
    outcome = merge_folder(root, {f"prodigy/{name}": content for name, content in files.items()})
    _, _, said = outcome.printed.partition("Are they one corpus?")
    return outcome, "\n".join(
        line for line in said.splitlines() if line.startswith(("- ", "  path", "  labels", "  - ", "  split"))
    )


def in_six(write: Callable[[int, list[Sentence]], str], name: str) -> dict[str, str]:
    rows = sentences()
    return {name.format(n): write(n, rows[10 * n : 10 * n + 10]) for n in range(6)}


def test_files_whose_names_differ_by_a_number_may_be_one_corpus(tmp_path: Path) -> None:
    files = in_six(conll, "doc{}.conll") | {"other.conll": conll(5, sentences(80)[60:])}
    outcome, entry = merge(tmp_path, files)
    printed = outcome.said
    assert "6 files of one format declare different labels: datasets doc0, doc1, doc2, doc3, doc4, doc5. " in printed
    assert "in place of their 6 entries; 50 of 60 texts would then be complete for more labels: - name: doc" in printed
    [found] = yaml.safe_load(entry)
    assert found == {"name": "doc", "path": "doc*.conll", "labels": ["DATE", "LOC", "PER"]}
    declared = tmp_path / "assets/prodigy/datasets.yml"
    others = [entry for entry in yaml.safe_load(declared.read_text()) if not entry["name"].startswith("doc")]
    declared.write_text(yaml.safe_dump([*others, found]))
    after = merge_folder(tmp_path, {})
    assert after.entities == outcome.entities
    assert after.ledger
    assert {label: of["complete"] for label, of in after.ledger["labels"].items()} == dict.fromkeys(LABELS, 80)
    assert "one corpus" not in after.printed


def test_files_of_one_document_each_may_be_one_corpus(tmp_path: Path) -> None:
    names = ("ann", "bob", "eve", "ida", "kim", "lea")
    files = {f"{name}_test.conll": conll(n, sentences()[10 * n :][:10], doc=True) for n, name in enumerate(names)}
    rows = sentences(80)[60:]
    files |= {"more.conll": conll(1, rows[:10], doc=True) + conll(2, rows[10:], doc=True).replace("d2", "d3")}
    _, entry = merge(tmp_path, files)
    paths = [f"{name}_test.conll" for name in names]
    assert yaml.safe_load(entry) == [
        {"name": "all-test", "path": paths, "labels": ["DATE", "LOC", "PER"], "split": "test"}
    ]


def test_names_may_be_numbers_alone(tmp_path: Path) -> None:
    _, entry = merge(tmp_path, in_six(conll, "{}.conll"))
    assert yaml.safe_load(entry) == [{"name": "all", "path": "*.conll", "labels": ["DATE", "LOC", "PER"]}]


def label_by_label(n: int, rows: list[Sentence]) -> str:
    """Half of the files are for one label, the others for another."""
    return jsonl({"text": row.text, "spans": row.objects()[n % 2 : n % 2 + 1]} for row in rows)


@pytest.mark.parametrize(
    "files",
    [
        in_six(label_by_label, "set{}.jsonl"),
        in_six(lambda _, rows: conll(1, rows), "doc{}.conll"),
        in_six(lambda n, _: conll(n, sentences(10)), "doc{}.conll"),
        {f"{name}.conll": conll(n, sentences(60)[10 * n :][:10]) for n, name in enumerate("abcdef")},
        dict([*in_six(conll, "doc{}.conll").items()][1:5]),
    ],
    ids=["other labels", "equal labels", "equal texts", "several texts each", "four files"],
)
def test_other_files_are_not_asked_about(tmp_path: Path, files: dict[str, str]) -> None:
    assert "one corpus" not in merge(tmp_path, files)[0].printed


def test_declared_labels_are_an_answer(tmp_path: Path) -> None:
    files = in_six(conll, "doc{}.conll")
    merge(tmp_path, files)
    declared = tmp_path / "assets/prodigy/datasets.yml"
    entries = yaml.safe_load(declared.read_text())
    declared.write_text(yaml.safe_dump([entry | {"labels": sorted({*entry["labels"], "PER"})} for entry in entries]))
    assert "one corpus" not in merge_folder(tmp_path, {}).printed

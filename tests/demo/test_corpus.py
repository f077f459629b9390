from collections import Counter, defaultdict
from pathlib import Path

import pytest

from labelwise.base.errors import InputError
from labelwise.datasets.convert_brat import convert_brat
from labelwise.datasets.declarations import load_datasets
from labelwise.demo.corpus import DemoDoc, add_noise, make_doc
from labelwise.demo.grammar import LABELS
from labelwise.demo.write import MARK, make_demo
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from tests.conftest import run_python


@pytest.fixture(scope="module")
def docs() -> list[DemoDoc]:
    return [make_doc(index) for index in range(400)]


def read_tree(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and path.name != MARK)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_forms_are_ambiguous_and_no_label_is_rare_or_everywhere(docs: list[DemoDoc]) -> None:
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for doc in docs:
        for start, end, label in doc.spans:
            labels[doc.text[start:end]].add(label)
    assert sum(len(of_form) > 1 for of_form in labels.values()) > 50
    assert sum({"PERSON", "JUDGE"} <= of_form for of_form in labels.values()) > 5
    counts = Counter(label for doc in docs for label in {label for *_, label in doc.spans})
    assert set(counts) == set(LABELS)
    assert 15 <= min(counts.values()) < max(counts.values()) < 0.7 * len(docs)
    known = {doc.text[start:end] for doc in docs[:320] for start, end, _ in doc.spans}
    names = {doc.text[start:end] for doc in docs[320:] for start, end, label in doc.spans if label == "PERSON"}
    assert len(names - known) > len(names) / 2


@pytest.mark.guarantee("own-files")
@pytest.mark.parametrize("format", ["brat", "prodigy", "both"])
@pytest.mark.parametrize("name", ["mine", "news/doc-00000.txt", "datasets.yml"])
def test_only_a_demo_corpus_is_replaced(tmp_path: Path, format: str, name: str) -> None:
    make_demo(tmp_path / "demo", format=format, docs=1, words=1)
    make_demo(tmp_path / "demo", format=format, docs=2, words=1)
    for folder, message in (("demo", f"{name}: this was "), ("own", "own is there and isn't")):
        (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text("- {name: mine, path: PERSON.jsonl, labels: [PERSON]}")
        with pytest.raises(InputError, match=message):
            make_demo(tmp_path / folder, format=format, docs=1, words=1)
        assert "mine" in (tmp_path / folder / name).read_text()


def test_of_both_each_has_half_of_the_labels_and_merging_puts_them_together_by_hash(tmp_path: Path) -> None:
    make_demo(tmp_path / "demo", format="both", docs=20, labels=4, words=50)
    options = ["--format", "both", "--docs", "20", "--labels", "4", "--words", "50"]
    run_python("-m", "scripts.make_demo", tmp_path / "there", *options, PYTHONHASHSEED="1")
    assert read_tree(tmp_path / "there") == read_tree(tmp_path / "demo")
    convert_brat(tmp_path / "demo/brat", tmp_path / "tasks")
    declared = [tmp_path / "tasks", tmp_path / "demo/prodigy"]
    assert {dataset.name: dataset.labels for dataset in load_datasets(declared)} == {
        "brat": ("COMPANY", "PERSON"),
        "place": ("PLACE",),
        "date": ("DATE",),
    }
    ledger = merge_data(declared, tmp_path / "corpus", Settings())
    assert (ledger.rows.total(), sum(ledger.texts[split] for split in ("train", "dev", "test"))) == (60, 20)
    assert all(counts["complete"] == 20 and counts["gold"] > 0 for counts in ledger.labels.values())
    make_demo(tmp_path / "demo", format="both", docs=1, labels=1)
    assert (tmp_path / "demo/prodigy/datasets.yml").read_text() == "[]\n"


def test_noise_is_a_share_of_wrong_tags_and_nothing_else(docs):
    assert add_noise(docs[0], 0.0) == docs[0]
    lost: list[tuple] = []
    added: list[tuple] = []
    for doc in docs:
        noisy = add_noise(doc, 0.1)
        assert noisy == add_noise(doc, 0.1)
        assert noisy.text == doc.text
        assert all(doc.text[start:end].strip() == doc.text[start:end] > "" for start, end, _ in noisy.spans)
        lost += {*doc.spans} - {*noisy.spans}
        added += {*noisy.spans} - {*doc.spans}
    spans = sum(len(doc.spans) for doc in docs)
    assert 0.09 * spans < len(lost) < 0.11 * spans
    assert 0.08 * spans < len(added) < 0.11 * spans

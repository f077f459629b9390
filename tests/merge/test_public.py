"""The public corpora in one merge, where they are there."""

import json
from pathlib import Path

import pytest
import yaml

from labelwise.corpus.ledger import Ledger
from labelwise.corpus.tokenizer import read_rules
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.convert_brat import convert_brat
from tests.conftest import ROOT, real_corpus
from tests.merge.test_run import read_docs

# Where weasel puts them, and where else they may be.
ELSEWHERE = {"litbank": "litbank/entities_brat", "materials_syntheses": "materials_syntheses/data"}

# Outcomes of spans that are gold of a text that is in the corpus; spans of all others are in none.
IN_GOLD = ("entity", "same span", "nested", "crossing", "no token boundary")


def find(path: str) -> Path:
    """Find a path of public.yml."""
    name, _, rest = path.partition("/")
    root = real_corpus(name).parent
    there = root / path
    return there if root == ROOT / "assets" else root / ELSEWHERE.get(name, name) / rest


def count_rows(path: Path) -> tuple[int, int]:
    """Rows and spans, counted as plainly as can be."""
    if path.is_file():
        tasks = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
        return len(tasks), sum(len(task.get("spans", [])) for task in tasks)
    files = [file for file in path.rglob("*.ann") if file.with_suffix(".txt").exists()]
    lines = [line for file in files for line in file.read_bytes().split(b"\n") if line.startswith(b"T")]
    return len(files), len(lines)


@pytest.mark.long
def test_every_row_and_span_of_the_public_corpora_is_somewhere(tmp_path):
    declared = yaml.safe_load((ROOT / "assets" / "public.yml").read_text())
    for dataset in declared:
        dataset["path"] = str(find(dataset["path"]))
    (tmp_path / "public.yml").write_text(yaml.safe_dump(declared))
    settings = Settings(tokenizer=read_rules(ROOT / "project.yml"))
    ledger = merge_data([tmp_path / "public.yml"], tmp_path / "corpus", settings, workers=2)
    counts = {dataset["name"]: count_rows(Path(dataset["path"])) for dataset in declared}
    assert ledger.datasets == {name: rows for name, (rows, _) in counts.items()}
    assert ledger.spans_read == sum(spans for _, spans in counts.values())
    # What each label lost is what the lost spans say.
    lines = (tmp_path / "corpus" / "lost_spans.jsonl").read_text(encoding="utf8").splitlines()
    assert len(lines) == sum(pairs.total() for pairs in ledger.lost_spans.values())
    docs = read_docs(tmp_path)
    assert len(docs) == sum(ledger.texts[split] for split in ("train", "dev", "test"))
    assert sum(len(doc.user_data["labelwise"]["gold"]) for _, doc in docs.values()) == sum(
        counts["gold"] for counts in ledger.labels.values()
    )
    # The evaluation sets are test sets, and nothing of them is elsewhere.
    evaluation = (find("prodigy_jsonl/fashion_brands_eval.jsonl")).read_text(encoding="utf8").splitlines()
    assert {docs[json.loads(line)["text"]][0] for line in evaluation} == {"test"}


def check_corpus(declared: Path, out: Path) -> Ledger:
    """Merge, and check that what is in the corpus, with what the ledger says was left out, is all that was read."""
    ledger = merge_data([declared], out / "corpus", Settings(tokenizer=read_rules(ROOT / "project.yml")), workers=2)
    assert (ledger.rows.total(), ledger.spans.total()) == (ledger.rows_read, ledger.spans_read)
    docs = read_docs(out)
    assert len(docs) == sum(ledger.texts[split] for split in ("train", "dev", "test"))
    gold = [span for _, doc in docs.values() for span in doc.user_data["labelwise"]["gold"]]
    assert len(gold) == sum(counts["gold"] for counts in ledger.labels.values())
    assert len(gold) == sum(ledger.spans[outcome] for outcome in IN_GOLD)
    return ledger


@pytest.mark.parametrize("corpus", ["wnut2020_wlp/train", "wnut2020_wlp/dev", "litbank", "materials_syntheses"])
@pytest.mark.long
def test_a_brat_corpus_loses_nothing_from_its_lines_to_the_merged_corpus(corpus, tmp_path):
    folder = real_corpus(corpus)
    documents, lines = count_rows(folder)
    report = convert_brat(folder, tmp_path / "tasks")
    assert report.documents["converted"] == documents
    assert sum(report.annotations.values()) == report.lines["T"] == lines
    assert sum(report.labels.values()) == report.annotations["converted"]
    ledger = check_corpus(tmp_path / "tasks" / "datasets.yml", tmp_path)
    assert ledger.rows_read == documents
    assert ledger.spans_read == report.annotations["converted"]
    assert ledger.labels.keys() == report.labels.keys()


@pytest.mark.parametrize("name", ["fashion_brands_training", "fashion_brands_eval", "food_data"])
@pytest.mark.long
def test_a_prodigy_file_loses_nothing(name, tmp_path):
    file = real_corpus("prodigy_jsonl") / f"{name}.jsonl"
    label = {"food_data": "INGRED"}.get(name, "FASHION_BRAND")
    (tmp_path / "datasets.yml").write_text(yaml.safe_dump([{"name": name, "path": str(file), "labels": [label]}]))
    ledger = check_corpus(tmp_path / "datasets.yml", tmp_path)
    assert (ledger.rows_read, ledger.spans_read) == count_rows(file)

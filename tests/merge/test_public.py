from pathlib import Path

import pytest
import yaml

from labelwise.corpus.dropped_spans import find_dropped
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.tables import read_groups
from labelwise.corpus.tokenizer import read_rules
from labelwise.datasets.convert_brat import convert_brat
from labelwise.demo.write import make_demo
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions
from tests.conftest import ROOT, Merging, read_jsonl, real_corpus

# Outcomes of spans that are gold of a text that is in the corpus; spans of all others are in none.
IN_GOLD = ("entity", "same span", "nested", "crossing", "misaligned")


def check_corpus(declared: Path, out: Path) -> Ledger:
    """Merge, and check that corpus and counted omissions are everything that was read."""
    ledger = merge_data([declared], out / "corpus", Settings(tokenizer=read_rules(ROOT / "project.yml")), workers=2)
    docs = Merging(out).docs()
    assert len(docs) == sum(ledger.texts[split] for split in ("train", "dev", "test"))
    gold = [span for _, doc in docs.values() for span in doc.user_data["labelwise"]["gold"]]
    assert len(gold) == sum(counts["gold"] for counts in ledger.labels.values())
    assert len(gold) == sum(ledger.spans[outcome] for outcome in IN_GOLD)
    lost = [dropped for group in read_groups(out / "corpus") for dropped in find_dropped(group)]
    assert len(lost) == sum(by.total() for of in ledger.dropped_spans.values() for by in of.values())
    return ledger


PUBLIC = ("wnut2020_wlp/train", "wnut2020_wlp/dev", "litbank", "materials_syntheses")


@pytest.mark.guarantee("outcomes")
@pytest.mark.parametrize("corpus", ["", *(pytest.param(name, marks=pytest.mark.long) for name in PUBLIC)])
def test_a_brat_corpus_loses_nothing_from_its_lines_to_the_merged_corpus(corpus, tmp_path):
    folder = real_corpus(corpus) if corpus else tmp_path / "brat"
    if not corpus:
        make_demo(folder, docs=30, labels=4, words=60)
    files = [file for file in folder.rglob("*.ann") if file.with_suffix(".txt").exists()]
    lines = sum(line.startswith(b"T") for file in files for line in file.read_bytes().split(b"\n"))
    converted = convert_brat(folder, tmp_path / "tasks", BratOptions(split="auto"))
    assert converted.files.total() == len(files)
    texts = converted.problems.pop("not annotated", 0)
    assert (converted.lines["T"], converted.problems) == (lines, {}), "a mention that is dropped shows here"
    ledger = check_corpus(tmp_path / "tasks" / "datasets.yml", tmp_path)
    assert (ledger.rows.total(), ledger.spans.total()) == (len(files) + texts, lines)
    assert ledger.labels.keys() == converted.labels.keys()


@pytest.mark.guarantee("outcomes")
@pytest.mark.parametrize("name", ["fashion_brands_training", "fashion_brands_eval", "food_data"])
@pytest.mark.long
def test_a_prodigy_file_loses_nothing(name, tmp_path):
    file = real_corpus("prodigy_jsonl") / f"{name}.jsonl"
    tasks = read_jsonl(file)
    label = {"food_data": "INGRED"}.get(name, "FASHION_BRAND")
    (tmp_path / "datasets.yml").write_text(yaml.safe_dump([{"name": name, "path": str(file), "labels": [label]}]))
    ledger = check_corpus(tmp_path / "datasets.yml", tmp_path)
    assert (ledger.rows.total(), ledger.spans.total()) == (
        len(tasks),
        sum(len(task.get("spans", [])) for task in tasks),
    )

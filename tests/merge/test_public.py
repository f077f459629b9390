"""The public corpora in one merge, where they are there."""

import json
from pathlib import Path

import pytest
import yaml

from labelwise.corpus.tokenizer import read_rules
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge
from tests.conftest import ROOT, real_corpus
from tests.merge.test_run import read_docs

# Where weasel puts them, and where else they may be.
ELSEWHERE = {"litbank": "litbank/entities_brat", "materials_syntheses": "materials_syntheses/data"}


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


@pytest.mark.slow
def test_every_row_and_span_of_the_public_corpora_is_somewhere(tmp_path):
    declared = yaml.safe_load((ROOT / "assets" / "public.yml").read_text())
    for dataset in declared:
        dataset["path"] = str(find(dataset["path"]))
    (tmp_path / "public.yml").write_text(yaml.safe_dump(declared))
    settings = Settings(tokenizer=read_rules(ROOT / "project.yml"))
    ledger = merge([tmp_path / "public.yml"], tmp_path / "corpus", settings, workers=2)
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

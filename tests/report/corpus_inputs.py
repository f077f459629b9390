"""A small merged corpus in which forms are marked variously, with predictions that find nothing."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.evaluate.run import score
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from tests.conftest import Merging


def task(text: str, *words: str, label: str = "ANIMAL", doc: str = "") -> dict:
    """A task that marks words where they are for the first time."""
    spans = [{"start": text.index(word), "end": text.index(word) + len(word), "label": label} for word in words]
    return {"text": text, "spans": spans} | ({"meta": {"doc": doc}} if doc else {})


def predict_nothing(corpus: Path, out: Path) -> list[PredictedDoc]:
    """Write the predictions of a pipeline that finds nothing in test."""
    docs = []
    for file in find_partitions(corpus / "test"):
        for stored in read_stored_docs(file):
            gold: Sequence = sorted({(start, end, label) for start, end, label, _ in stored.annotation.gold})
            key = text_key(stored.text.encode()).hex()
            uncovered = stored.annotation.uncovered
            docs.append(PredictedDoc(key, stored.text, [], [*gold], [*gold], uncovered=uncovered))
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        write_predictions(docs, file)
    return docs


def write_project(root: Path) -> None:
    """Merge a corpus in which a cat is marked now and then, evaluate a pipeline that finds nothing."""
    merging = Merging(root)
    train = [
        task("😀 I saw a red cat today.", "cat", doc="pets/one & two.txt"),
        task("The big cat sleeps.", "cat"),
        task("A wild cat ran."),
        task("This old cat is a thing."),
    ]
    merging.add("animal", ["ANIMAL"], train, split="train", document_url="https://brat.example.org/#/{doc}")
    merging.add("thing", ["THING"], [task("This old cat is a thing.", "cat", label="THING")], split="train")
    merging.add("test", ["ANIMAL"], [task("Test has a cat.", "cat")], split="test")
    evaluate_nothing(root)


def write_project_of_scripts(root: Path) -> None:
    """The same in Arabic, from right to left, and in Hindi and Thai, with marks that combine with letters."""
    merging = Merging(root)
    for label, name, texts in (
        ("NAME", "عمر", ["جاء {} إلى القاهرة أمس.", "هل رأيت {} في New York اليوم؟", "قال {} نعم."]),
        ("CITY", "दिल्ली", ["मैं कल {} गया था।", "वह {} में रहती है।", "क्या {} दूर है?"]),
        ("DRINK", "น้ำชา", ["เขา ดื่ม {} ทุกวัน", "ร้าน นี้ ขาย {} ร้อน", "แก้ว ของ {} แตก"]),
    ):
        marked, unmarked, test = (text.format(name) for text in texts)
        train = [task(marked, name, label=label), task(unmarked, label=label)]
        merging.add(label.lower(), [label], train, split="train")
        merging.add(f"{label.lower()}-test", [label], [task(test, name, label=label)], split="test")
    evaluate_nothing(root)


def evaluate_nothing(root: Path) -> None:
    """Merge what was declared, and evaluate a pipeline that finds nothing."""
    merge_data([root / "tasks" / "datasets.yml"], root / "corpus", Settings(), metrics=root / "metrics" / "merge.json")
    predictions = root / "training" / "cpu" / "predictions.jsonl"
    predict_nothing(root / "corpus", predictions)
    metrics, details = score(predictions, root / "corpus" / "test", {})
    (root / "metrics" / "cpu.json").write_bytes(msgspec.json.encode(metrics))
    predictions.with_name("details.json").write_bytes(msgspec.json.encode(details))

"""Small results of a pipeline as merge, training and evaluation write them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.text import SpanKey
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scoring import measure
from labelwise.evaluate.tables import Tables
from tests.evaluate.written import InTrain, write_rows

HOSTILE = "<script>alert(1)</script>"
NAMES = {
    "PERSON": ["Marie Curie", "Ada Lovelace", "Chien-Shiung Wu"],
    "PLACE": ["Paris", "New York", "Warsaw"],
    "COMPANY": ["Acme Chemicals", "Northern Rail", "Paris Instruments"],
    "DRUG": ["aspirin", "lithium", "codeine"],
    HOSTILE: [HOSTILE, "</script><b>bold</b>", "<img src=x onerror=alert(1)>"],
}
LABELS = sorted(NAMES)
# The prediction for the n-th entity of a doc: itself, nothing, the span cut short, another label, or both.
PREDICTED = ("right", "right", "missed", "right", "cut", "right", "missed", "right", "both")


def make_doc(number: int) -> PredictedDoc:
    text, gold, predicted = "Last spring, as the papers reported, ", [], []
    for place, label in enumerate(LABELS):
        name = NAMES[label][(number + place) % 3]
        start, end = len(text), len(text) + len(name)
        text += f"{name} was mentioned again in the long list of those concerned; "
        gold.append((start, end, label))
        predicted += predict((start, end, label), PREDICTED[(number * 2 + place) % len(PREDICTED)])
    if number % 4 == 0:
        predicted.append((0, len("Last spring"), "DRUG"))
    return PredictedDoc(f"{number:032x}", text + "so it ended.", predicted=sorted(predicted), gold=gold)


def predict(span: SpanKey, how: str) -> list[SpanKey]:
    start, end, label = span
    other = LABELS[(LABELS.index(label) + 1) % len(LABELS)]
    return {
        "right": [span],
        "missed": [],
        "cut": [(start, end - 2, label)],
        "other": [(start, end, other)],
        "both": [(start + 1, end, other)],
    }[how]


def make_docs() -> list[PredictedDoc]:
    return [make_doc(number) for number in range(60)]


def write_results(
    root: Path,
    docs: list[PredictedDoc],
    pipeline: str = "cpu",
    labels: Sequence[str] = LABELS,
    in_train: tuple[int, int] = (4, 1),
    dev: Sequence[PredictedDoc] = (),
) -> None:
    """Write every file that a report reads.

    dev: texts of dev beside test.
    """
    tables = Tables.of(root / "training" / pipeline)
    tables.texts.parent.mkdir(parents=True, exist_ok=True)
    texts, more = ([(doc, dict.fromkeys(doc.gold, InTrain(*in_train))) for doc in some] for some in (docs, dev))
    write_rows(texts, "test", labels, tables, dev=more)
    metrics = measure(tables._replace(split="test"), [*labels, "NEVER_SEEN"], seen_known=True)
    metrics.dev = measure(tables._replace(split="dev"), [*labels, "NEVER_SEEN"]) if dev else None
    metrics.pipeline_digest = "89abcdef01234567"
    metrics.predictions_digest = tables.digest()
    write_json(root / "metrics" / f"{pipeline}.json", msgspec.to_builtins(metrics))
    ledger = {
        "rows": {"merged": 1600, "malformed": 12},
        "spans": {"entity": 1680, "misaligned": 5},
        "texts": {"train": 320, "dev": 40, "test": 40},
        "gold": {"train": {"PERSON": 700, "PLACE": 410}, "test": {"PERSON": 60}},
        "agreement": {"PERSON": {"texts": 12, "both": 40, "spans": 86, "f": 0.93}},
        "labels": {label: {"complete": 400, "entity": 31, "gold": 31} for label in LABELS},
    }
    write_json(root / "metrics" / "merge.json", ledger)
    (root / "metrics" / "merge.sha256").write_text("0123456789abcdef\n")
    write_findings(root / "training" / "check" / "findings.jsonl")
    curve = (f"{step}\t{0.87 - 0.3 * 0.5 ** (step / 100):.4f}\n" for step in range(100, 1300, 100))
    (root / "plots").mkdir(exist_ok=True)
    (root / "plots" / f"{pipeline}.tsv").write_text("".join(["step\tents_f\n", *curve]), encoding="utf8")


def write_findings(path: Path) -> None:
    """Write two cases of one form, one of another label, one without an answer, and one with markup."""
    answers = {
        label: {"dataset": label, "file": f"{label}.jsonl:{n}", "answer": f"{n:012x}", "annotator": "ann"}
        for n, label in enumerate(LABELS[1:])
    }

    def finding(n: int, current: tuple | None, proposed: tuple | None, words: str, **fields: Any) -> dict[str, Any]:
        label = (current or proposed or ())[2]
        kind = "missing" if not current else "spurious" if not proposed else "wrong label"
        own = {span[2]: answers[span[2]] for span in (current, proposed) if span and span[2] in answers}
        rest = {"better": words if proposed else "", "split": "train", "doc": "a/b & c.txt", "key": f"{n:024x}"}
        text = {"before": "They saw ", "after": " there.", "why": f"{words!r} may be wrong"}
        about = {
            "group": f"{words!r} as {label}",
            "others": [],
            "score": (9.0, 9.0, 0.0, -1.0, -3.0)[n - 1],
            "kind": kind,
            "label": label,
            "surface": words,
            "answers": own,
        }
        return {**about, "current": current, "proposed": proposed, **rest, **text, **fields}

    rows = [
        finding(1, None, (9, 14, "PLACE"), "Paris", others=[(-9, -5, "PERSON")]),
        finding(2, None, (9, 14, "PLACE"), "Paris"),
        finding(3, (9, 16, "DRUG"), (9, 16, "PERSON"), "Lithium"),
        finding(4, (9, 12, "PERSON"), None, "Ada", answers={}),
        finding(5, (9, 34, HOSTILE), None, HOSTILE),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"digest": "of the corpus", "texts": 9, "folds": 0}
    path.write_text("".join(json.dumps(row) + "\n" for row in (head, *rows)), encoding="utf8")


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf8")

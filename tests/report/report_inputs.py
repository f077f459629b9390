"""Results of a pipeline as the merge, the training and the evaluation write them: small, plausible, made by hand."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from labelwise.common.spans import SpanKey
from labelwise.evaluate.mistakes import Mistakes
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.evaluate.scores import prf

HOSTILE = "<script>alert(1)</script>"
NAMES = {
    "PERSON": ["Marie Curie", "Ada Lovelace", "Chien-Shiung Wu"],
    "PLACE": ["Paris", "New York", "Warsaw"],
    "COMPANY": ["Acme Chemicals", "Northern Rail", "Paris Instruments"],
    "DRUG": ["aspirin", "lithium", "codeine"],
    HOSTILE: [HOSTILE, "</script><b>bold</b>", "<img src=x onerror=alert(1)>"],
}
LABELS = sorted(NAMES)
# What is predicted for the n-th entity of a doc: itself, nothing, the span cut short, another label, or both.
PREDICTED = ("right", "right", "missed", "right", "cut", "right", "other", "right", "both")


def make_doc(number: int) -> PredictedDoc:
    """Make a text that names one of each label, and a prediction for each, by rotation."""
    text, gold, predicted = "Last spring, as the papers reported, ", [], []
    for place, label in enumerate(LABELS):
        name = NAMES[label][(number + place) % 3]
        start, end = len(text), len(text) + len(name)
        text += f"{name} was mentioned again in the long list of those concerned; "
        gold.append((start, end, label))
        predicted += predict((start, end, label), PREDICTED[(number * 2 + place) % len(PREDICTED)])
    if number % 4 == 0:
        predicted.append((0, len("Last spring"), "DRUG"))
    return PredictedDoc(f"{number:032x}", text + "so it ended.", predicted=sorted(predicted), gold=gold, entities=gold)


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


def write_results(root: Path, docs: list[PredictedDoc], pipeline: str = "cpu") -> None:
    """Write every file that a report reads."""
    mistakes = Mistakes()
    for doc in docs:
        mistakes.add(doc)
    training = root / "training" / pipeline
    training.mkdir(parents=True)
    with (training / "predictions.jsonl").open("wb") as file:
        write_predictions(docs, file)
    scores = make_scores(docs)
    details = {
        "confusion": mistakes.confusion,
        "frequent": msgspec.to_builtins(mistakes.frequent(5)),
        "familiarity": make_familiarity(),
        "reliability": [
            {"spans": 20, "probability": 0.35, "right": 0.4},
            {"spans": 60, "probability": 0.9, "right": 0.8},
        ],
    }
    write_json(training / "details.json", details)
    write_json(root / "metrics" / f"{pipeline}.json", scores)
    write_json(root / "metrics" / "merge.json", make_ledger())
    write_plots(root / "plots", pipeline)
    write_lost(root / "corpus")
    (root / "project.yml").write_text("vars: {}\n")


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf8")


def make_scores(docs: list[PredictedDoc]) -> dict[str, Any]:
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    for doc in docs:
        right.update(span[2] for span in {*doc.gold} & {*doc.predicted})
        predicted.update(span[2] for span in doc.predicted)
    by_label = {label: with_interval(counted(right[label], predicted[label], len(docs))) for label in LABELS}
    by_label["NEVER_SEEN"] = {"p": None, "r": None, "f": None, "support": 0}
    total = with_interval(counted(right.total(), predicted.total(), len(docs) * len(LABELS)))
    scores = {**total, "macro": total, "labels": by_label}
    agreement = {"PERSON": {"f": 0.93, "texts": 12}}
    seen = {"texts": 0, "f_without": total["f"], "whole": True}
    return {
        "texts": len(docs),
        "unscored": 3,
        "errors": make_errors(docs),
        "all_gold": scores,
        "flat_gold": scores,
        "agreement": agreement,
        "seen": seen,
        "pipeline_digest": "89abcdef01234567",
    }


def counted(right: int, predicted: int, gold: int) -> dict[str, Any]:
    return msgspec.to_builtins(prf(right, predicted, gold))


def with_interval(scores: dict[str, Any]) -> dict[str, Any]:
    return {**scores, "f_low": round(scores["f"] - 0.06, 4), "f_high": round(scores["f"] + 0.04, 4)}


def make_errors(docs: list[PredictedDoc]) -> dict[str, dict[str, int]]:
    """Count by hand: a span that overlaps one of its label has wrong boundaries."""
    errors = {label: Counter(unjudged=0) for label in [*LABELS, "NEVER_SEEN"]}
    for doc in docs:
        gold, predicted = {*doc.gold}, {*doc.predicted}
        for start, end, label in gold | predicted:
            errors[label]["right"] += (start, end, label) in gold & predicted
        for start, end, label in gold - predicted:
            cut = any(one[2] == label and one[0] < end and start < one[1] for one in predicted - gold)
            errors[label]["boundaries" if cut else "missed"] += 1
        for start, end, label in predicted - gold:
            if not any(one[2] == label and one[0] < end and start < one[1] for one in gold - predicted):
                errors[label]["spurious"] += 1
    errors["DRUG"]["unjudged"] = 3
    return {label: dict(counts) for label, counts in errors.items()}


def make_familiarity() -> dict[str, Any]:
    def found(*pairs: tuple[int, int]) -> dict[str, dict[str, int]]:
        return {
            name: {"gold": gold, "found": gold - missed, "missed": missed}
            for name, (gold, missed) in zip(("alike", "variously", "never"), pairs, strict=True)
        }

    labels = {
        "PERSON": found((30, 1), (10, 3), (20, 12)),
        "PLACE": found((10, 0), (45, 30), (5, 2)),
        HOSTILE: found((60, 2), (0, 0), (0, 0)),
    }
    paris = {"form": "Paris", "label": "PLACE", "count": 17, "train": {"PLACE": 40, "COMPANY": 9, "": 1200}}
    hostile = {"form": HOSTILE, "label": HOSTILE, "count": 2, "train": {HOSTILE: 3}}
    forms = {"alike": [hostile], "variously": [paris], "never": []}
    return {"labels": labels, "forms": forms, "contradicted": {"PLACE": 1}}


def make_ledger() -> dict[str, Any]:
    labels = {
        "PERSON": {
            "complete": 400,
            "entity": 880,
            "gold": 917,
            "no token boundary": 5,
            "nested": 32,
            "learnt as well": 30,
        },
        "PLACE": {
            "complete": 220,
            "partial": 80,
            "none": 100,
            "entity": 512,
            "gold": 530,
            "crossing": 18,
            "learnt as well": 18,
        },
        "COMPANY": {"complete": 400, "entity": 250, "gold": 250, "rejected": 40},
        "DRUG": {"none": 388, "complete": 12, "entity": 31, "gold": 31},
        HOSTILE: {"complete": 400, "entity": 7, "gold": 9, "same span": 2, "learnt as well": 2},
    }
    return {
        "rows_read": 1650,
        "spans_read": 1804,
        "rows": {"merged": 1600, "superseded": 38, "malformed": 12},
        "spans": {
            "entity": 1680,
            "nested": 32,
            "crossing": 18,
            "same span": 2,
            "no token boundary": 5,
            "rejected": 40,
            "duplicate": 27,
        },
        "texts": {"train": 320, "dev": 40, "test": 40},
        "complete": {"person": {"PERSON": 400, "PLACE": 20}, "place": {"PLACE": 200}},
        "partial": {"teach": {"PLACE": 80}},
        "gold": {"train": {"PERSON": 700, "PLACE": 410}, "test": {"PERSON": 60}},
        "digest": "0123456789abcdef",
        "labels": labels,
        "agreement": {"PERSON": {"texts": 12, "both": 26, "spans": 30, "f": 52 / 30}},
    }


def write_lost(folder: Path) -> None:
    """Spans that lost to longer ones, and some that have no boundary between a number and its unit."""
    folder.mkdir(parents=True)
    nested = {"text": "New York Marathon", "meta": {"reason": "nested", "learnt": True, "doc": "a.txt"}}
    nested["spans"] = [span_of(0, 8, "PLACE", False), span_of(4, 8, "PERSON", True)]
    unit = {"text": f"add 5ml of {HOSTILE}", "meta": {"reason": "no token boundary"}}
    unit["spans"] = [span_of(4, 5, HOSTILE, True)]
    lines = [nested] * 32 + [unit] * 5
    (folder / "lost_spans.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf8")
    write_json(folder / "tokenizer.json", {"lang": "en"})


def span_of(start: int, end: int, label: str, lost: bool) -> dict[str, Any]:
    return {"start": start, "end": end, "label": label, "claim": "accept", "datasets": ["a"], "lost": lost}


def write_plots(folder: Path, pipeline: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    curve = ["step\tepoch\twords\tloss_tok2vec\tloss_ner\tscore\tents_f\tents_p\tents_r"]
    for step in range(100, 1300, 100):
        p, r = 0.95 - 60 / (step + 100), 0.9 - 70 / (step + 100)
        f = 2 * p * r / (p + r)
        losses = f"{3000 + 9000 / (step / 100 + 2):.6g}\t{1.1e7 / (step + 50):.6g}"
        curve.append(f"{step}\t{step // 300}\t{step * 2013}\t{losses}\t{f:.4f}\t{f:.4f}\t{p:.4f}\t{r:.4f}")
    (folder / f"{pipeline}.tsv").write_text("\n".join(curve) + "\n", encoding="utf8")

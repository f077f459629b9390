"""Ways to get a model from texts that are annotated for some labels only: merge, train, evaluate."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.coverage.data import OUT, command
from benchmarks.coverage.results import Row
from benchmarks.measure import project_with


class Method(NamedTuple):
    """A recognizer, and what it does about texts that aren't complete for all labels.

    policy (str): the merge's, for labels that aren't covered.
    whole (bool): there are as many annotations, but on whole texts.
    """

    recognizer: str
    policy: str = "by-label"
    whole: bool = False


METHODS = {
    "per-label": Method("per-label"),
    "ner": Method("ner"),
    "ner, outside": Method("ner", "outside"),
    "ner, drop": Method("ner", "drop"),
    "ner, whole texts": Method("ner", whole=True),
    "per-label, outside": Method("per-label", "outside"),
    "per-label, whole texts": Method("per-label", whole=True),
}


class Training(NamedTuple):
    """How to train: the config, the number of steps, the seed."""

    config: str
    steps: int
    seed: int

    def options(self) -> list[Any]:
        """Return the options of the scripts."""
        return ["--max-steps", self.steps, "--seed", self.seed]


class Trained(NamedTuple):
    """A pipeline, the seconds that it took, and the peak memory in bytes."""

    model: Path
    seconds: float
    peak: int


def merge(declarations: Sequence[Path], corpus: Path, **settings: Any) -> dict[str, int]:
    """Merge data sets, unless they are merged; return the number of texts in each split."""
    ledger = corpus.with_name(f"{corpus.name}.json")
    if not ledger.exists():
        command("merge", *declarations, corpus, "--metrics", ledger, *project_with(OUT, **settings))
    return json.loads(ledger.read_text(encoding="utf8"))["texts"]


def train(corpus: Path, recognizer: str, training: Training, *options: Any) -> Trained:
    """Train a pipeline."""
    model = OUT / "model"
    given = ["--curve", OUT / "curve.tsv", "--recognizer", recognizer, *training.options(), *options]
    taken = command("train", training.config, corpus, model, *given)
    return Trained(model, taken.seconds, taken.peak_pss)


def evaluate(model: Path, test: Path) -> dict[str, Any]:
    """Evaluate a pipeline; return its metrics. Predictions are in OUT/predictions.jsonl."""
    command("evaluate", model, test, OUT / "scores.json", "--predictions", OUT / "predictions.jsonl")
    return json.loads((OUT / "scores.json").read_text(encoding="utf8"))


def result(trained: Trained, metrics: dict[str, Any]) -> Row:
    """Return what of a training and its evaluation goes into the results."""
    found = metrics["all_gold"]
    row = {name: found[name] for name in ("f", "p", "r")} | {"macro": found["macro"]["f"]}
    if metrics.get("all_spans"):
        row |= {"all_spans": metrics["all_spans"]["f"], "all_spans_macro": metrics["all_spans"]["macro"]["f"]}
    row |= {"gold": found["support"], "flat_gold": metrics["flat_gold"]["support"]}
    return row | {"seconds": round(trained.seconds), "peak": trained.peak, "digest": metrics["predictions_digest"]}


def run_method(name: str, corpus: Path, texts: dict[str, int], training: Training) -> Row:
    """Train by a method on a merged corpus, and evaluate; without texts, there is nothing to train on."""
    method = METHODS[name]
    if not texts.get("train") or not texts.get("dev"):
        return {"f": None, "texts": texts}
    trained = train(corpus, method.recognizer, training)
    metrics = evaluate(trained.model, corpus / "test")
    return result(trained, metrics) | {"texts": texts}

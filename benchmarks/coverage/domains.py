"""Data sets that were never annotated for each other's labels: the public Prodigy sets, and three corpora in one.

`prodigy` compares one model over two data sets with a model for each, on the union of their test texts, each label on
the texts that are complete for it. `mixed` counts what one model of three corpora predicts of labels that a corpus has
nothing of, with and without `absent` declared.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks.coverage.data import OUT
from benchmarks.coverage.methods import METHODS, Training, evaluate, merge, result, train
from benchmarks.coverage.results import Row
from labelwise.evaluate.predictions import read_predictions

DECLARED = Path("assets/public.yml")
PUBLIC = (
    *("per-label", "per-label, outside", "per-label, a model a set"),
    *("ner, outside", "ner, a model a set"),
)
MIXED = ("undeclared", "absent")
NAMES = {"wnut": "wnut2020_wlp", "materials": "materials_syntheses", "litbank": "litbank"}


def declare(out: Path, datasets: list[dict[str, Any]]) -> Path:
    """Write a declaration."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(yaml.safe_dump(datasets), encoding="utf8")
    return out


def counts(scores: dict[str, Any]) -> Counter[str]:
    """Compute the counts that scores come from: right, predicted, gold."""
    right = round((scores["r"] or 0) * scores["support"])
    return Counter(right=right, gold=scores["support"], predicted=round(right / scores["p"]) if scores["p"] else 0)


def run_public(folder: Path, name: str, training: Training) -> Row:
    """Train one model over the Prodigy sets, or one for each label's, and evaluate on all of their test texts."""
    datasets = [each for each in yaml.safe_load(DECLARED.read_text(encoding="utf8")) if each["path"].endswith(".jsonl")]
    for each in datasets:
        each["path"] = str((folder / Path(each["path"]).name).resolve())
    tasks, union = OUT / "tasks" / "prodigy", OUT / "prodigy"
    texts = merge([declare(tasks / "all.yml", datasets)], union)
    if name in METHODS:
        method = METHODS[name]
        corpus = OUT / f"prodigy-{method.policy}"
        merge([tasks / "all.yml"], corpus, coverage=method.policy)
        trained = train(corpus, method.recognizer, training)
        return result(trained, evaluate(trained.model, union / "test")) | {"texts": texts}
    total: Counter[str] = Counter()
    row: Row = {"texts": texts, "seconds": 0, "peak": 0, "labels": {}}
    for label in sorted({each["labels"][0] for each in datasets}):
        corpus = OUT / f"prodigy-{label}"
        merge([declare(tasks / f"{label}.yml", [each for each in datasets if each["labels"] == [label]])], corpus)
        trained = train(corpus, name.partition(",")[0], training)
        scores = evaluate(trained.model, union / "test")["all_gold"]["labels"][label]
        total += counts(scores)
        row["labels"][label] = scores["f"]
        row |= {"seconds": row["seconds"] + round(trained.seconds), "peak": max(row["peak"], trained.peak)}
    macro = sum(row["labels"].values()) / len(row["labels"])
    return row | {"f": 2 * total["right"] / (total["predicted"] + total["gold"]), "macro": macro, **total}


def run_mixed(folders: dict[str, Path], name: str, training: Training) -> Row:
    """Train one per-label model of three corpora, and count predictions of the others' labels in each one's test texts.

    folders (dict): of the corpora; wnut's has a folder `train`.
    """
    places = {each: folder / "train" if each == "wnut" else folder for each, folder in folders.items()}
    public = {each["name"]: each for each in yaml.safe_load(DECLARED.read_text(encoding="utf8"))}
    labels = {each: set(public[NAMES[each]]["labels"]) for each in places}
    datasets = []
    for each, place in places.items():
        absent = set().union(*labels.values()) - labels[each] if name == "absent" else set()
        lists = {"labels": sorted(labels[each]), "absent": sorted(absent)}
        datasets.append(
            {"name": each, "path": str(place.resolve()), **{key: found for key, found in lists.items() if found}}
        )
    corpus = OUT / f"mixed-{name}"
    texts = merge([declare(OUT / "tasks" / "mixed" / f"{name}.yml", datasets)], corpus, test_ratio=0.2)
    trained = train(corpus, "per-label", training)
    metrics = evaluate(trained.model, corpus / "test")
    warned = sorted({rate["dataset"] for rate in metrics["implausible"]})
    row = result(trained, metrics) | {"texts": texts, "warned": warned}
    f = {label: scores["f"] for label, scores in metrics["all_gold"]["labels"].items()}
    return row | {"foreign": foreign(places, labels), "labels": f}


def foreign(places: dict[str, Path], labels: dict[str, set[str]]) -> dict[str, dict[str, float]]:
    """Count, for each corpus, predicted spans of labels that aren't its own in a thousand words of its test texts."""
    source = {}
    for name, place in places.items():
        for file in place.rglob("*.txt"):
            source[file.read_bytes().decode("utf8").strip()] = name
    found: dict[str, Counter[str]] = {name: Counter() for name in places}
    for doc in read_predictions(OUT / "predictions.jsonl"):
        name = source[doc.text.strip()]
        found[name].update(
            texts=1,
            words=len(doc.text.split()),
            entities=sum(label not in labels[name] for _, _, label in doc.predicted),
            spans=sum(label not in labels[name] for _, _, label, _ in doc.found),
        )
    return {
        name: {**each, "entities_per_1000": 1000 * each["entities"] / each["words"]}
        | {"spans_per_1000": 1000 * each["spans"] / each["words"]}
        for name, each in found.items()
    }

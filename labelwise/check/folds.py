"""Pipelines that were trained without the texts that they give an opinion on, one for each fold of train."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language

from labelwise.check.findings import Opinion
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import SPLITS, Split, partitions_of
from labelwise.corpus.streaming import forgetting, take_batch, texts_at_a_time
from labelwise.recognizer.per_label import decode
from labelwise.recognizer.transformer import joined
from labelwise.train.reader import fold_of
from labelwise.train.recipe import Recipe
from labelwise.train.run import train
from labelwise.train.section import PLAIN


class CheckedDoc(NamedTuple):
    """A text of a corpus, and the opinion of a pipeline that was trained without it, if there is one."""

    split: Split
    stored: StoredDoc
    opinion: Opinion | None = None


def train_fold(recipe: Recipe, out: Path, fold: int, folds: int) -> Path:
    """Train a pipeline without the texts of a fold of train.

    out (Path): the folder for it.
    RETURNS (Path): its folder.
    """
    left_out = {**recipe.overrides, **PLAIN, "corpora.train.leave_out": f"{fold}/{folds}"}
    model = out / f"fold-{fold}"
    train(replace(recipe, recognizer="per-label", overrides=left_out), model, out / f"fold-{fold}.tsv")
    return model


def read_checked(corpus: Path, fold: int = 0, folds: int = 1) -> Iterator[CheckedDoc]:
    """Yield the texts of a fold of train; those of dev and test, which no pipeline was trained on, are in the first."""
    for split in SPLITS if fold == 0 else SPLITS[:1]:
        for file in partitions_of(corpus, split):
            for doc in read_stored_docs(file):
                if len(doc) and (split != "train" or fold_of(doc.text, folds) == fold):
                    yield CheckedDoc(split, doc)


def add_opinions(nlp: Language, docs: Iterator[CheckedDoc], labels: Sequence[str]) -> Iterator[CheckedDoc]:
    """Yield texts with the opinion of a per-label pipeline.

    labels (Sequence[str]): all labels, as opinions number them.
    """
    component: Any = nlp.get_pipe("ner")
    numbers = [list(labels).index(label) for label in component.labels]
    with joined(nlp):
        while True:
            with forgetting(nlp), nlp.select_pipes(disable="ner"):
                batch = take_batch(docs, texts_at_a_time(nlp), lambda doc: len(doc.stored))
                if not batch:
                    return
                made = list(nlp.pipe([nlp.make_doc(doc.stored.text) for doc in batch]))
                scores = component.log_probabilities(made)
                start = 0
                for doc, found in zip(batch, decode(scores, [len(one) for one in made]), strict=True):
                    end = start + len(doc.stored)
                    yield doc._replace(opinion=Opinion(scores[start:end], found, numbers))
                    start = end

"""Check a corpus: find annotations that contradict the others, and list the surest first.

1. Count how often each form is marked with each label, and how often it isn't (`forms`): two passes over train and dev.
2. If asked, train a pipeline for each fold of train, without the fold (`folds`); dev is left to the trained pipeline.
3. Find what contradicts the others, text by text (`findings`), and keep the best findings of each label; and ways to
   annotate that don't agree (`inconsistencies`).
4. Look up where they are in the sources, which the merge wrote down.
5. Write them, and a sample of test to annotate anew (`blind`), which is all that is done with test.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labelwise.check.blind import BLIND, write_blind
from labelwise.check.deck import Finding, Kept, locate
from labelwise.check.folds import (
    LOOKED_AT,
    CheckedDoc,
    add_opinions,
    load_per_label,
    read_checked,
    train_folds,
)
from labelwise.check.inconsistencies import Inconsistencies
from labelwise.common.errors import InputError
from labelwise.common.files import beside, check_replaceable, remove, staged
from labelwise.common.memory import check_workers, plan_workers
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import read_manifest, read_split, unchanged
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.places import read_declared_labels
from labelwise.train.recipe import Recipe
from labelwise.train.side_by_side import PER_TRAINING

FINDINGS = "findings.jsonl"
MOST = 500  # findings of each label that are kept


class Checked(NamedTuple):
    """What a check found.

    texts (int): those looked at, of train and dev.
    counts (dict): by label and kind, all findings, kept or not.
    findings (list[Finding]): those kept, the surest first.
    """

    texts: int
    counts: dict[str, dict[str, int]]
    findings: list[Finding]


class Folds(NamedTuple):
    """Pipelines that give their opinion on texts that they weren't trained on.

    recipe (Recipe): of the pipelines of the folds.
    number (int): of folds.
    model (Path | None): the trained pipeline, for dev, if it has a head for each label.
    workers (int): trainings side by side, at most.
    memory (str): that all processes may take, such as "2GB"; empty for no limit.
    address (str): of a cluster that trains them; see `parallel.open_workers`.
    """

    recipe: Recipe
    number: int = 3
    model: Path | None = None
    workers: int = 1
    memory: str = ""
    address: str = ""


def check(
    corpus: Path, out: Path, folds: Folds | None = None, *, tell: Callable[[str], Any] = lambda message: None
) -> Checked:
    """Check the annotation of a corpus, and write the findings to a folder, which is replaced as a whole.

    folds (Folds | None): None for counts alone, which take seconds, and find less.
    tell (Callable): is told what is going on.
    RAISES (InputError): a number is out of its range, there is no corpus, `out` has something else, or what
        `train_pipeline` raises.
    """
    corpus, out = corpus.absolute(), out.absolute()  # a cluster's workers are elsewhere
    check_replaceable(out, (FINDINGS,), "check")
    labels, declared = read_manifest(corpus).labels, read_declared_labels(corpus)
    with staged(out, folder=True) as folder, unchanged(corpus):
        folder.mkdir()
        forms, spans, inconsistencies = count_corpus(corpus, labels)
        kept, texts = Kept(labels, MOST), 0
        checked = ask_folds(folds, out, corpus, labels, tell) if folds else read_checked(corpus, *LOOKED_AT)
        for doc in checked:
            texts += 1
            kept.add(doc, forms)
            inconsistencies.add(doc)
        edges = (one for found in inconsistencies.found().values() for one in found)
        findings = sorted([*kept.best(spans), *edges], key=lambda one: -one.score)
        locate(findings, corpus, declared)
        head = {"digest": read_split(corpus / "train").digest, "texts": texts, "folds": folds.number if folds else 0}
        with (folder / FINDINGS).open("wb") as file:
            for row in (head, *findings):
                file.write(msgspec.json.encode(row) + b"\n")
        write_blind(read_checked(corpus, "test"), labels, declared, folder / BLIND)
    return Checked(texts, kept.counts, findings)


def ask_folds(
    folds: Folds, out: Path, corpus: Path, labels: Sequence[str], tell: Callable[[str], Any]
) -> Iterator[CheckedDoc]:
    """Yield the texts of train and dev, with the opinions of pipelines that weren't trained on them."""
    if folds.number < 2:
        raise InputError(f"folds {folds.number}: give at least 2, in the section `check` of project.yml")
    recipe = folds.recipe.absolute()
    check_workers(folds.workers, recipe.gpu_id)
    workers = plan_workers(folds.memory, folds.workers, PER_TRAINING, PER_TRAINING)
    dev = read_checked(corpus, "dev")
    if trained := load_per_label(folds.model):
        yield from add_opinions(trained, dev, labels)
    else:
        tell("No pipeline with a head for each label is trained: no opinion on dev")
        yield from dev
    pipelines = beside(out, "folds")
    pipelines.mkdir(parents=True, exist_ok=True)
    tell(f"Training {folds.number} pipelines, each without a part of train; the table is that of the first")
    for fold, pipeline in enumerate(train_folds(recipe, pipelines, folds.number, workers, folds.address)):
        tell(f"Pipeline {fold + 1} of {folds.number} is trained")
        docs = read_checked(corpus, "train", fold=fold, folds=folds.number)
        yield from add_opinions(load_pipeline(pipeline), docs, labels)
    remove(pipelines)


def count_corpus(corpus: Path, labels: Sequence[str]) -> tuple[Forms, Counter[str], Inconsistencies]:
    """Count forms and spans, in two passes: what is marked, then what of that is free."""
    forms, spans = Forms(labels), Counter[str]()
    inconsistencies = Inconsistencies(forms)
    for doc in read_checked(corpus, *LOOKED_AT):
        forms.look_for(doc.stored, forms.spans(doc.stored))
        forms.mark(doc.stored)
        spans.update(label for _, _, label, _ in doc.stored.annotation.gold)
    for doc in read_checked(corpus, *LOOKED_AT):
        forms.release(doc.stored)
        inconsistencies.count(doc.stored)
    return forms, spans, inconsistencies

"""Check a corpus: count, let pipelines that weren't trained on a text give their opinion, and list what to look at.

1. Count how often each form is marked with each label, and how often it isn't (`forms`): two passes over train and dev.
2. Train a pipeline for each fold of train, without the fold (`folds`); dev is left to the trained pipeline.
3. Find what contradicts the others, text by text (`findings`), and keep the best findings of each label.
4. Look up where they are in the sources, which the merge wrote down, and which mistakes on dev they are about.
5. Write work lists (`worklists`), and a sample of test to annotate anew (`blind`), which is all that is done with test.

What isn't about single spans comes beside that: ways to annotate that don't agree (`inconsistencies`), and annotators.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.check.blind import BLIND, write_blind
from labelwise.check.folds import (
    LOOKED_AT,
    CheckedDoc,
    add_opinions,
    load_per_label,
    read_checked,
    train_folds,
)
from labelwise.check.inconsistencies import Inconsistencies, Inconsistency
from labelwise.check.look_up import DevMistakes, locate, read_texts
from labelwise.check.worklists import INCONSISTENCIES, SUMMARY, TABLE, TASKS, Finding, Kept, write_table, write_tasks
from labelwise.common.errors import InputError
from labelwise.common.files import beside, check_replaceable, remove, staged
from labelwise.common.memory import check_workers, plan_workers
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import AnnotatorPair, pinned, read_annotators, read_manifest, read_split
from labelwise.corpus.pipeline import load_pipeline
from labelwise.corpus.places import read_declared_labels
from labelwise.train.recipe import Recipe
from labelwise.train.side_by_side import PER_TRAINING

FEW = 20  # spans in train below which a label has few


class FindingGroup(msgspec.Struct):
    """Findings of a kind with the same form and labels.

    explains (int): mistakes on dev that are about them; see `Finding`.
    worth (float): that of the best of them.
    """

    kind: str
    label: str
    form: str
    proposed: str
    findings: int
    explains: int
    score: float
    worth: float


class Summary(msgspec.Struct):
    """What a check found.

    texts (int): those looked at, of train and dev.
    findings (dict): by label and kind, all there were, kept or not.
    groups (list[FindingGroup]): of those kept; first what is worth the most, then the surest.
    few (dict): labels with few spans in train, each with their number.
    only (dict): labels whose spans are in one split alone, each with the split.
    without_letters (dict): by label, spans that have neither letters nor digits.
    inconsistencies (list[Inconsistency]): ways to annotate that don't agree, those with the most to change first.
    annotators (list[AnnotatorPair]): how far each two of them agree, by label; the lowest kappa first.
    digest (str): of the texts in train.
    """

    texts: int
    findings: dict[str, dict[str, int]]
    groups: list[FindingGroup]
    few: dict[str, int]
    only: dict[str, str]
    without_letters: dict[str, int]
    inconsistencies: list[Inconsistency]
    annotators: list[AnnotatorPair]
    digest: str


def check(
    recipe: Recipe,
    out: Path,
    *,
    folds: int = 3,
    most: int = 500,
    model: Path | None = None,
    workers: int = 1,
    memory: str = "",
    address: str = "",
    tell: Callable[[str], Any] = lambda message: None,
) -> Summary:
    """Check the annotation of a corpus, and write work lists to a folder, which is replaced as a whole.

    recipe (Recipe): of the pipelines of the folds, and with it the corpus.
    folds (int): how many; 0 for no opinions on train, which takes seconds, and finds much less.
    most (int): findings of each label that are kept.
    model (Path | None): the trained pipeline, which gives opinions on dev if it is there and has a head for each label.
    workers (int): trainings side by side, at most.
    address (str): of a cluster that does them; see `parallel.open_workers`.
    memory (str): that all processes may take, such as "2GB": fewer workers if they would need more; empty for no limit.
    tell (Callable): is told what is going on.
    RAISES (InputError): a number is out of its range, there is no corpus, `out` has something else, or what
        `train_pipeline` raises.
    """
    if folds == 1 or folds < 0:
        raise InputError(f"folds {folds}: give at least 2, or 0 for none, in the section `check` of project.yml")
    if most < 1:
        raise InputError(f"--most {most}: give at least 1")
    check_workers(workers, recipe.gpu_id)
    check_replaceable(out, (TABLE, INCONSISTENCIES, SUMMARY), "check")
    # A cluster's workers are elsewhere.
    recipe, out = recipe.absolute(), out.absolute()
    corpus = recipe.corpus
    labels, declared = read_manifest(corpus)["labels"], read_declared_labels(corpus)
    if not (trained := load_per_label(model)):
        tell("No pipeline with a head for each label is trained: no opinion on dev, no mistakes on it to rank by")
    if folds:
        workers = plan_workers(memory, workers, PER_TRAINING, PER_TRAINING)
    pipelines = beside(out, "folds")
    pipelines.mkdir(parents=True, exist_ok=True)
    with pinned(corpus), staged(out, folder=True) as folder:
        folder.mkdir()
        forms, counts, inconsistencies = count_corpus(corpus, labels)
        kept, mistakes = Kept(labels, most), DevMistakes(labels)

        def texts() -> Iterator[CheckedDoc]:
            """Yield the texts that are looked at, with opinions on them."""
            dev = read_checked(corpus, "dev")
            yield from add_opinions(trained, dev, labels) if trained else dev
            if not folds:
                yield from read_checked(corpus, "train")
                return
            tell(f"Training {folds} pipelines, each without a part of train; the table is that of the first")
            for fold, pipeline in enumerate(train_folds(recipe, pipelines, folds, workers, address)):
                tell(f"Pipeline {fold + 1} of {folds} is trained")
                docs = read_checked(corpus, "train", fold=fold, folds=folds)
                yield from add_opinions(load_pipeline(pipeline), docs, labels)

        for doc in texts():
            kept.add(doc, forms)
            inconsistencies.add(doc)
            mistakes.add(doc)
        gold = {label: here["train"] + here["dev"] for label, here in counts.spans.items()}
        findings, disagreeing = kept.best(gold), inconsistencies.found()
        inconsistent = [one for found in disagreeing.values() for one in found]
        mistakes.explain([*findings, *inconsistent])
        locate([*findings, *inconsistent], corpus, declared)
        groups = _group(findings)
        write_table(findings, folder / TABLE)
        write_table(inconsistent, folder / INCONSISTENCIES)
        found = [*sorted(findings, key=lambda one: (-one.worth, -one.score)), *inconsistent]
        write_tasks(found, read_texts(corpus, {one.key for one in found}), labels, folder / TASKS)
        write_blind(read_checked(corpus, "test"), labels, declared, folder / BLIND)
        annotators = sorted(read_annotators(corpus), key=lambda pair: (pair.kappa is None, pair.kappa or 0.0))
        summary = Summary(
            texts=counts.texts,
            findings=kept.counts,
            groups=groups,
            few={label: here["train"] for label, here in counts.spans.items() if here["train"] < FEW},
            only={label: split for label, here in counts.spans.items() if len(here) == 1 for split in here},
            without_letters=counts.blank,
            inconsistencies=[inconsistency for inconsistency in disagreeing if inconsistency.rarer],
            annotators=annotators,
            digest=read_split(corpus / "train")["digest"],
        )
        content = msgspec.json.format(msgspec.json.encode(summary), indent=1)
        (folder / SUMMARY).write_bytes(content + b"\n")
    remove(pipelines)
    return summary


class LabelCounts:
    """Counts spans by label and split; of what is looked at, texts, and spans without letters and digits ("blank")."""

    def __init__(self, labels: Sequence[str]) -> None:
        """Start empty."""
        self.texts = 0
        self.blank: Counter[str] = Counter()
        self.spans: dict[str, Counter[str]] = {label: Counter() for label in labels}

    def add(self, doc: CheckedDoc) -> None:
        """Count the spans of a text."""
        text, looked_at = doc.stored.text, doc.split in LOOKED_AT
        self.texts += looked_at
        for start, end, label, _ in doc.stored.annotation.gold:
            self.spans[label][doc.split] += 1
            if looked_at and not any(char.isalnum() for char in text[start:end]):
                self.blank[label] += 1


def count_corpus(corpus: Path, labels: Sequence[str]) -> tuple[Forms, LabelCounts, Inconsistencies]:
    """Count forms and labels, in two passes: what is marked, then what of that is free. Of test, only spans count."""
    forms, counts = Forms(labels), LabelCounts(labels)
    inconsistencies = Inconsistencies(forms)
    for doc in read_checked(corpus, *LOOKED_AT):
        forms.look_for(doc.stored, forms.spans(doc.stored))
        forms.mark(doc.stored)
        inconsistencies.look_for(doc.stored)
        counts.add(doc)
    for doc in read_checked(corpus, "test"):
        counts.add(doc)
    for doc in read_checked(corpus, *LOOKED_AT):
        forms.release(doc.stored)
        inconsistencies.count(doc.stored)
    return forms, counts, inconsistencies


def _group(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Put findings of a kind with the same form and labels together, and tell each how many they are."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for one in findings:
        proposed = one.proposed[2] if one.proposed else ""
        groups.setdefault((one.kind, one.label, one.form, proposed), []).append(one)
    for found in groups.values():
        for one in found:
            one.similar = len(found)
    rows = []
    for name, found in groups.items():
        best = max(found, key=lambda one: one.score)
        rows.append(FindingGroup(*name, len(found), best.explains, best.score, round(best.worth, 2)))
    return sorted(rows, key=lambda row: (-row.worth, -row.score, -row.findings, row.label, row.form))

"""Answers: tasks with dataset and file, their order, and whether they count."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.annotations import Kind, Reason, Span, Task
from labelwise.datasets.declarations import DataSet
from labelwise.datasets.entries import HASHED
from labelwise.sources.files import SourceFile

Offsets = tuple[int, int]
Number = int  # of an answer among those about its text
# Prodigy names an unnamed session after its time.
UNNAMED = re.compile(r"\d{4}-\d\d-\d\d[_T ]\d\d-\d\d-\d\d")
# Outcomes of answers that are dropped because of their kind.
LEFT_OUT: Mapping[str, Reason] = {
    "about spans": Reason.UNSUPPORTED_INTERFACE,
    "other": Reason.UNSUPPORTED_INTERFACE,
    "unanswered": Reason.NOT_ANNOTATED,
    "tags in text": Reason.UNSUPPORTED_FORMAT,
}


class Answer(NamedTuple):
    """A task with its place among the sources.

    number (int): among the text's answers, in order of datasets, files and lines.
    kind (str): declared kind, or else the task's.
    """

    number: Number
    task: Task
    dataset: DataSet
    file: SourceFile = SourceFile(Path(), "")
    source: int = 0
    kind: Kind = "complete"
    who: tuple[str, str] = ("", "")

    @property
    def place(self) -> str:
        """Return path and line."""
        return f"{self.file.path}:{self.task.line}"

    def accepted(self) -> list[Span]:
        """Return the usable accepted spans."""
        return [span for span in self.task.spans if self.verdict(span) == "accept"]

    def verdict(self, span: Span) -> str:
        """Return the verdict on a span: its own, or else the answer's."""
        return span.verdict or (self.task.answer if self.kind == "binary" else "accept")


def make_answer(number: Number, task: Task, dataset: DataSet, file: SourceFile, source: int = 0) -> Answer:
    """Convert a task to an answer, with kind and annotator by its entry."""
    kind = task.kind if dataset.kind == "auto" else dataset.kind
    return Answer(number, task, dataset, file, source, kind, annotator(task.who, dataset))


def annotator(name: str, dataset: DataSet) -> tuple[str, str]:
    """Identify an annotator: a person in all datasets, or a name within one dataset.

    Prodigy's session `person-ann` of the dataset `person` is ann. Numbers, as in Label Studio and doccano, are local to
    their dataset, because each server counts from 1. Unnamed answers are one annotator's in each dataset. In both
    cases, an entry can name the person.
    """
    name = name.removeprefix(f"{dataset.database or dataset.name}-")
    name = "" if UNNAMED.search(name) else name
    if person := dataset.annotators.get(name):
        return (person, "")
    return (name, dataset.name if not name or name.isdecimal() else "")


def fits_split(answer: Answer, split: str | None) -> bool:
    """Return whether an answer's dataset declares no other split than the text's."""
    return split is None or answer.dataset.split in (*HASHED, split)


def are_apart(answers: Iterable[Answer], split: str | None) -> bool:
    """Return whether all answers count, without a common label, as in most texts."""
    seen: set[str] = set()
    for answer in answers:
        task, dataset = answer.task, answer.dataset
        labels = {*dataset.labels}
        if answer.kind != "complete" or task.answer != "accept" or task.predicted or task.uncovered or dataset.absent:
            return False
        if not 0 < len(dataset.labels) == len(labels) or not seen.isdisjoint(labels):
            return False
        if not fits_split(answer, split):
            return False
        seen |= labels
    return True


def by_time(answers: Iterable[Answer]) -> list[Answer]:
    """Sort answers by time, if all have one, then by source and line."""
    group = list(answers)
    timed = all(answer.task.when is not None for answer in group)
    return sorted(group, key=lambda answer: (timed and answer.task.when, answer.source, answer.task.line))


def superseded_exports(answers: Sequence[Answer]) -> tuple[dict[Number, Number], set[Number]]:
    """Find the answers superseded by a later one in another file of their dataset.

    An annotator's last answer to a question counts, even an `ignore`. A complete task asks about the text, a binary one
    about its spans.

    RETURNS (tuple): the answer that counts instead of each superseded one; latest answers whose times contradict the
        order of files.
    """
    asked: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers if len(answers) > 1 else ():
        if len(answer.dataset.files) > 1 and left_out(answer) in (None, Reason.IGNORED):
            spans = [(span.start, span.end, span.label) for span in answer.task.all_spans]
            about = str(spans) if answer.kind == "binary" else ""
            asked.setdefault((answer.dataset.name, *answer.who, answer.kind, about), []).append(answer)
    superseded, out_of_order = {}, set()
    for group in asked.values():
        latest = by_time(group)[-1]
        superseded.update({answer.number: latest.number for answer in group if answer.source != latest.source})
        timed = by_time(answer for answer in group if answer.task.when is not None)
        if timed and timed[-1].source != max(answer.source for answer in timed):
            out_of_order.add(latest.number)
    return superseded, out_of_order


def repeated_answers(answers: Iterable[Answer]) -> dict[Number, Number]:
    """Map copies of answers, as in a copy of a dataset, to the answer that counts.

    Both have the same time, spans, and annotator or session; the one that counts covers all labels of the copy, because
    an empty answer could be to another question. The dataset with the latest answer about the text counts, because the
    others are earlier copies; or else the first.
    """
    known: dict[tuple[object, ...], list[Answer]] = {}
    latest: dict[str, float] = {}
    timed = [answer for answer in answers if answer.task.when is not None]
    times = Counter(answer.task.when for answer in timed)
    for answer in timed if len(times) < len(timed) else ():
        task = answer.task
        if (time := task.when) is not None:
            spans = sorted((span.start, span.end, span.label, span.verdict or "") for span in task.all_spans)
            known.setdefault((answer.kind, task.answer, time, task.who, *spans), []).append(answer)
            latest[answer.dataset.name] = max(time, latest.get(answer.dataset.name, time))
    repeated = {}
    for group in (group for group in known.values() if len(group) > 1):
        group.sort(key=lambda answer: -latest[answer.dataset.name])
        asked = [frozenset({*asked_labels(answer), *answer.dataset.absent}) for answer in group]
        kept: dict[frozenset[str], Answer] = {}  # the first answer for each of the largest sets of labels
        for answer, labels in zip(group, asked, strict=True):
            if not any(labels < other for other in asked):
                kept.setdefault(labels, answer)
        for answer, labels in zip(group, asked, strict=True):
            winner = kept.get(labels) or next(candidate for superset, candidate in kept.items() if labels < superset)
            if winner is not answer:
                repeated[answer.number] = winner.number
    return repeated


def asked_labels(answer: Answer) -> Sequence[str]:
    """Return the labels that a complete answer covers."""
    labels, uncovered = answer.dataset.labels, answer.task.uncovered
    return [label for label in labels if uncovered.get(label) != "none"] if uncovered else labels


def accepted_offsets(task: Task) -> dict[str, set[Offsets]]:
    """Return an answer's accepted spans, by label."""
    by_label: dict[str, set[Offsets]] = {}
    for span in task.spans:
        if (span.verdict or task.answer) == "accept":
            by_label.setdefault(span.label, set()).add((span.start, span.end))
    return by_label


def left_out(answer: Answer) -> Reason | None:
    """Return the reason to drop an answer on its own, such as an unsaved prediction; or None."""
    task = answer.task
    if task.predicted and task.when is None:
        return Reason.PREDICTION
    if task.answer == "ignore":
        return Reason.IGNORED
    if task.answer not in ("accept", "reject"):
        return Reason.UNKNOWN_ANSWER
    return LEFT_OUT.get(answer.kind)


def latest_works(answers: Sequence[Answer]) -> dict[Number, list[str]]:
    """Return the labels for which each answer is its annotator's latest accepted one, if several annotated them."""
    works: dict[str, dict[tuple[str, str], list[Answer]]] = {}
    for answer in answers if len(answers) > 1 else ():
        for label in answer.dataset.labels if answer.task.answer == "accept" and not answer.task.review else ():
            if label not in answer.task.uncovered:
                works.setdefault(label, {}).setdefault(answer.who, []).append(answer)
    versions: dict[Number, list[str]] = {}
    for label, people in works.items():
        for group in people.values() if len(people) > 1 else ():
            versions.setdefault(by_time(group)[-1].number, []).append(label)
    return versions

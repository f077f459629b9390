"""Answers: tasks with their data set and file; their order, and whether they count."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.annotations import Kind, Reason, Span, Task
from labelwise.datasets.declarations import DataSet
from labelwise.sources.files import SourceFile

Offsets = tuple[int, int]
Number = int  # of an answer among those about its text
# How Prodigy names a session that nobody named: after its time.
UNNAMED = re.compile(r"\d{4}-\d\d-\d\d[_T ]\d\d-\d\d-\d\d")


class Answer(NamedTuple):
    """A task with its place among the sources.

    number (int): among the answers about the text, in the order of data sets, files and lines.
    source (int): the number of its file, among all.
    kind (str): what the data set is declared to be, or else what the task says.
    who (tuple[str, str]): who answered; see `annotator`.
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
        """Path and line."""
        return f"{self.file.path}:{self.task.line}"

    def verdict(self, span: Span) -> str:
        """Return the verdict on a span: its own, or else that of the answer."""
        return span.verdict or (self.task.answer if self.kind == "binary" else "accept")


def make_answer(number: Number, task: Task, dataset: DataSet, file: SourceFile, source: int = 0) -> Answer:
    """Convert a task to an answer: its kind, and who gave it, are as its data set declares."""
    kind = task.kind if dataset.kind == "auto" else dataset.kind
    return Answer(number, task, dataset, file, source, kind, annotator(task.who, dataset))


def annotator(name: str, dataset: DataSet) -> tuple[str, str]:
    """Name who answered: one person in all data sets, or a name within a data set, which follows.

    name (str): that of the annotator or of the session, as an answer has it; empty if it has none.

    Prodigy's session `ann` of the data set `person` is `person-ann`: the person is ann. A number, as Label Studio and
    doccano give it, is a name within its data set, as each server counts from 1. So is no name at all: answers that
    nobody has signed are one annotator's. A declaration may name the person that either stands for.
    """
    name = name.removeprefix(f"{dataset.database or dataset.name}-")
    name = "" if UNNAMED.search(name) else name
    if person := dataset.annotators.get(name):
        return (person, "")
    return (name, dataset.name if not name or name.isdecimal() else "")


def by_time(answers: Iterable[Answer]) -> list[Answer]:
    """Sort answers from the earliest to the latest: by their times, if all have one, then by source and line."""
    group = list(answers)
    timed = all(answer.task.when is not None for answer in group)
    return sorted(group, key=lambda answer: (timed and answer.task.when, answer.source, answer.task.line))


def superseded_exports(answers: Sequence[Answer]) -> tuple[dict[Number, Number], set[Number]]:
    """Find the answers that the latest one, in another file of their data set, supersedes.

    In one of its files an annotator answered a question last, be it by `ignore`: that one counts. A complete task asks
    about the text, a binary one about its spans.

    RETURNS (tuple): the latest answer to the question of each superseded one; and the latest answers of all, where the
        times and the order of the files disagree.
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
        superseded.update({one.number: latest.number for one in group if one.source != latest.source})
        timed = by_time(answer for answer in group if answer.task.when is not None)
        if timed and timed[-1].source != max(answer.source for answer in timed):
            out_of_order.add(latest.number)
    return superseded, out_of_order


def repeated_answers(answers: Iterable[Answer]) -> dict[Number, Number]:
    """Find the answers that another one repeats, as a copy of a data set has them, each with the one that counts.

    They have a time, and are equal in it, in their spans, and in the annotator or session that they name; and the one
    that is kept covers all of their labels. Without the latter, an empty answer may be to another question. It is kept
    in the data set with the latest answer about the text, as the others are earlier copies; or else in the first.
    """
    known: dict[tuple[object, ...], list[Answer]] = {}
    latest: dict[str, float] = {}
    timed = [answer for answer in answers if answer.task.when is not None]
    times = Counter(answer.task.when for answer in timed)
    for answer in timed if len(times) < len(timed) else ():
        task = answer.task
        if (time := task.when) is not None:
            spans = sorted(str((span.start, span.end, span.label, span.verdict)) for span in task.all_spans)
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
            winner = kept.get(labels) or next(one for more, one in kept.items() if labels < more)
            if winner is not answer:
                repeated[answer.number] = winner.number
    return repeated


def asked_labels(answer: Answer) -> Sequence[str]:
    """List the labels of its data set that a complete answer says something about."""
    labels, uncovered = answer.dataset.labels, answer.task.uncovered
    return [label for label in labels if uncovered.get(label) != "none"] if uncovered else labels


def accepted_offsets(task: Task) -> dict[str, set[Offsets]]:
    """List the spans that an answer accepts, by label."""
    found: dict[str, set[Offsets]] = {}
    for span in task.spans:
        if (span.verdict or task.answer) == "accept":
            found.setdefault(span.label, set()).add((span.start, span.end))
    return found


def left_out(answer: Answer) -> Reason | None:
    """Return why an answer is dropped, whatever the others are; None if it may count.

    An exported prediction that nobody has saved is none: Prodigy gives a time to saved ones.
    """
    task = answer.task
    if task.predicted and task.when is None:
        return Reason.PREDICTION
    if task.answer == "ignore":
        return Reason.IGNORED
    if task.answer not in ("accept", "reject"):
        return Reason.UNKNOWN_ANSWER
    return Reason.OTHER_INTERFACE if answer.kind == "other" else None


def latest_works(answers: Sequence[Answer]) -> dict[Number, list[str]]:
    """Find the labels for which each answer is its annotator's latest accepted one, if there are several annotators.

    It is the annotator's own work alone: what another annotator's answer superseded was annotated all the same.
    """
    given: dict[str, dict[tuple[str, str], list[Answer]]] = {}
    for answer in answers if len(answers) > 1 else ():
        for label in answer.dataset.labels if answer.task.answer == "accept" else ():
            if label not in answer.task.uncovered:
                given.setdefault(label, {}).setdefault(answer.who, []).append(answer)
    versions: dict[Number, list[str]] = {}
    for label, by in given.items():
        for group in by.values() if len(by) > 1 else ():
            versions.setdefault(by_time(group)[-1].number, []).append(label)
    return versions

"""Answers: tasks with their data set, file and line; their order, and whether they count."""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from labelwise.corpus.places import AnswerPlace, answer_digest
from labelwise.corpus.tasks import PREDICTED
from labelwise.datasets.declarations import DataSet, SourceFile
from labelwise.sources.prodigy import ANSWERS, Kind, Task, TaskSpan, kind_of

Offsets = tuple[int, int]
# How Prodigy names a session that nobody named: after its time.
UNNAMED = re.compile(r"\d{4}-\d\d-\d\d[_T ]\d\d-\d\d-\d\d")


class Answer(msgspec.Struct):
    """One task with its place among the sources, and what became of it.

    file (SourceFile): the source that it was read from, whose position among all is `source`.
    kind (str): what the data set is declared to be, or else what the task says.
    who (tuple[str, str]): who answered; see `annotator`.
    outcome (str): of the row; each of its spans has its own.
    """

    dataset: DataSet
    line: int
    task: Task
    file: SourceFile = SourceFile(Path(), "")
    source: int = 0
    kind: Kind = "complete"
    who: tuple[str, str] = ("", "")
    outcome: str = ""

    def __post_init__(self) -> None:
        """Find out what kind it is, and whose."""
        self.kind = kind_of(self.task) if self.dataset.kind == "auto" else self.dataset.kind
        self.who = annotator(self.task.annotator_id or "", self.dataset)

    @property
    def place(self) -> str:
        """Path and line."""
        return f"{self.file.path}:{self.line}"

    @property
    def name(self) -> tuple[str, int]:
        """The name of the file, as declared, and the line."""
        return (self.file.name, self.line)

    @property
    def spans(self) -> list[TaskSpan]:
        """The spans of the task."""
        return self.task.spans or []


def annotator(name: str, dataset: DataSet) -> tuple[str, str]:
    """Tell who answered: a name, which is one person's in all data sets, or one within a data set, which follows.

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
    timed = all(answer.task.timestamp is not None for answer in group)
    return sorted(group, key=lambda answer: (timed and answer.task.timestamp, answer.source, answer.line))


def superseded(answers: Sequence[Answer]) -> tuple[set[int], list[str]]:
    """Find the answers that the latest one, in another file of their data set, supersedes.

    In one of its files an annotator answered a question last, be it by `ignore`: that one counts. A complete task asks
    about the text, a binary one about its spans.

    RETURNS (tuple): the answers, by their `id`, and the data set of each question on whose latest answer the times and
        the order of the files disagree.
    """
    asked: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers if len(answers) > 1 else ():
        if len(answer.dataset.files) > 1 and why_not(answer) in ("", "ignored"):
            spans = answer.spans if answer.kind == "binary" else ()
            about = str([(span.start, span.end, span.label) for span in spans])
            asked.setdefault((answer.dataset.name, *answer.who, answer.kind, about), []).append(answer)
    last = {about: by_time(group)[-1].source for about, group in asked.items()}
    earlier = {id(answer) for about, group in asked.items() for answer in group if answer.source != last[about]}
    disagree = []
    for (name, *_), group in asked.items():
        timed = by_time(answer for answer in group if answer.task.timestamp is not None)
        if timed and timed[-1].source != max(answer.source for answer in timed):
            disagree.append(str(name))
    return earlier, disagree


def same_answers(answers: Iterable[Answer]) -> set[int]:
    """Find the answers that another one repeats, as a copy of a data set has them, by their `id`.

    They have a time, and are equal in it, in their spans, and in the annotator or session that they name; and the one
    that is kept covers all of their labels. Without the latter, an empty answer may be to another question. It is kept
    in the data set with the latest answer about the text, as the others are earlier copies; or else in the first.
    """
    known: dict[tuple[object, ...], list[Answer]] = {}
    latest: dict[str, float] = {}
    for answer in answers:
        if (time := answer.task.timestamp) is not None:
            spans = sorted(str((span.start, span.end, span.label, span.answer)) for span in answer.spans)
            told = (answer.kind, answer.task.answer, time, answer.task.annotator_id, *spans)
            known.setdefault(told, []).append(answer)
            latest[answer.dataset.name] = max(time, latest.get(answer.dataset.name, time))
    same = set()
    for group in known.values():
        group.sort(key=lambda answer: -latest[answer.dataset.name])
        asked = [frozenset({*said_labels(answer), *answer.dataset.absent}) for answer in group]
        most = {labels for labels in asked if not any(labels < other for other in {*asked})}
        for answer, labels in zip(group, asked, strict=True):
            if labels not in most:
                same.add(id(answer))
            most.discard(labels)  # the first is kept
    return same


def said_labels(answer: Answer) -> Sequence[str]:
    """List the labels of its data set that a complete answer says something about."""
    labels, uncovered = answer.dataset.labels, answer.task.uncovered
    return [label for label in labels if uncovered.get(label) != "none"] if uncovered else labels


def accepted_offsets(answer: Answer) -> dict[str, set[Offsets]]:
    """List the spans that an answer accepts, by label, but for those that can't be used."""
    found: dict[str, set[Offsets]] = {}
    for span in answer.spans:
        verdict = answer.task.answer if span.answer is None else span.answer
        if verdict == "accept" and span.start != span.end:
            found.setdefault(span.label, set()).add((span.start, span.end))
    return found


def digests(answer: Answer) -> dict[str, str]:
    """Digest an answer by the labels of its data set; one without a span isn't in it."""
    spans = accepted_offsets(answer)
    return {label: answer_digest(spans[label]) for label in answer.dataset.labels if label in spans}


def place_of(answer: Answer, counting: Collection[tuple[str, str, int]]) -> AnswerPlace | None:
    """Say where an answer is, and which spans it is about; None if it leaves no trace, whatever the others are.

    counting (Collection): data set, file and line of the answers that count.
    """
    complete = answer.kind == "complete"
    if why_not(answer) or (complete and answer.task.answer != "accept"):
        return None
    place = AnswerPlace(answer.dataset.name, *answer.name, answer.who[0])
    place.judged = None if complete else [(span.start, span.end) for span in answer.spans]
    place.lines = [(span.start, span.end, *span.place) for span in answer.spans if span.place]
    if (answer.dataset.name, *answer.name) in counting:
        place.digests = digests(answer)
    return place


def why_not(answer: Answer) -> str:
    """Return the outcome of an answer that leaves no trace, whatever the others are; empty if it may count.

    An exported prediction that nobody has saved is none: Prodigy gives a time to saved ones.
    """
    task = answer.task
    if task.meta and PREDICTED in task.meta and task.timestamp is None:
        return "prediction"
    if task.answer == "ignore":
        return "ignored"
    if task.answer not in ANSWERS:
        return "unknown answer"
    return "other interface" if answer.kind == "other" else ""

"""Answers: tasks with their data set, file and line; their order, and whether they count."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.common.spans import is_integer, trim_usable
from labelwise.corpus.places import AnswerPlace, answer_digest
from labelwise.corpus.tasks import PREDICTED
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import ANSWERS, Kind, Task, annotator_of, kind_of

Offsets = tuple[int, int]
# How Prodigy names a session that nobody named: after its time.
UNNAMED = re.compile(r"\d{4}-\d\d-\d\d[_T ]\d\d-\d\d-\d\d")


class Answer(NamedTuple):
    """One task with its place among the sources; `order` is what "latest" compares."""

    dataset: DataSet
    line: int
    task: Task
    file: Path = Path()

    @property
    def place(self) -> str:
        """File and line."""
        return str(self.file / self.task.document) if self.task.document else f"{self.file}:{self.line}"

    @property
    def name(self) -> tuple[str, int]:
        """The name of the file, and the line; a document has none."""
        return (self.task.document, 0) if self.task.document else (self.file.name, self.line)

    @property
    def order(self) -> tuple[float, int, int]:
        """The time of the answer, then its file and its line; no time comes first."""
        return (self.time, self.position, self.line)

    @property
    def position(self) -> int:
        """The place of its file among those of its data set."""
        files = self.dataset.files
        return files.index(self.file) if len(files) > 1 else 0

    @property
    def kind(self) -> Kind:
        """What the data set is declared to be, or else what the task says."""
        return kind_of(self.task) if self.dataset.kind == "auto" else self.dataset.kind

    @property
    def time(self) -> float:
        """The time of the answer in seconds; 0 if there is none."""
        time = self.task.timestamp
        return time if is_integer(time) or isinstance(time, float) else 0.0


def annotator(answer: Answer) -> tuple[str, str]:
    """Tell who answered: a name, or else the data set, of which all unnamed answers are one annotator's.

    A number, as Label Studio gives it, is a name within its data set: that of another Label Studio is somebody else.
    """
    name = annotator_of(answer.task)
    if not name or UNNAMED.search(name):
        return ("", answer.dataset.name)
    return (name, answer.dataset.name if name.isdecimal() else "")


def superseded(answers: Sequence[Answer]) -> set[int]:
    """Find the answers that a later file of their data set supersedes, by their `id`.

    Of its files, the one listed last counts in which an annotator answered a question, be it by `ignore`. A complete
    task asks about the text, a binary one about its spans.
    """
    asked: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers if len(answers) > 1 else ():
        if len(answer.dataset.files) > 1 and why_not(answer) in ("", "ignored"):
            spans = answer.task.spans if answer.kind == "binary" else None
            about = str([(span.start, span.end, span.label) for span in spans or ()])
            asked.setdefault((answer.dataset.name, *annotator(answer), answer.kind, about), []).append(answer)
    return {
        id(answer)
        for group in asked.values()
        for answer in group
        if answer.position < max(other.position for other in group)
    }


def by_label(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """List the complete answers by the labels that they cover, if there are several."""
    covering: dict[str, list[Answer]] = {}
    for answer in answers if len(answers) > 1 else ():
        for label in answer.dataset.labels:
            if label not in (answer.task.uncovered or ()):
                covering.setdefault(label, []).append(answer)
    return covering


def accepted_offsets(text: str, answer: Answer) -> dict[str, set[Offsets]]:
    """List the spans that an answer accepts, by label: those that the merge can use, trimmed as there."""
    found: dict[str, set[Offsets]] = {}
    for span in answer.task.spans or ():
        verdict = answer.task.answer if span.answer is None else span.answer
        if verdict == "accept" and isinstance(span.label, str):
            start, end = trim_usable(text, span.start, span.end)
            if start != end:
                found.setdefault(span.label, set()).add((start, end))
    return found


def digests(text: str, answer: Answer) -> dict[str, str]:
    """Digest an answer by the labels of its data set; one without a span isn't in it."""
    spans = accepted_offsets(text, answer)
    return {label: answer_digest(spans[label]) for label in answer.dataset.labels if label in spans}


def place_of(text: str, answer: Answer, counting: Collection[tuple[str, str, int]]) -> AnswerPlace | None:
    """Say where an answer is, and which spans it is about; None if it leaves no trace, whatever the others are.

    counting (Collection): data set, file and line of the answers that count.
    """
    complete = answer.kind == "complete"
    if why_not(answer) or (complete and answer.task.answer != "accept"):
        return None
    place = AnswerPlace(answer.dataset.name, *answer.name, annotator_of(answer.task))
    if answer.task.document or not complete:
        spans = [(trim_usable(text, span.start, span.end), span.place) for span in answer.task.spans or ()]
        place.judged = None if complete else [offsets for offsets, _ in spans]
        place.lines = [(*offsets, *found) for offsets, found in spans if found]
    if (answer.dataset.name, *answer.name) in counting:
        place.digests = digests(text, answer)
    return place


def why_not(answer: Answer) -> str:
    """Return the outcome of an answer that leaves no trace, whatever the others are; empty if it may count.

    An exported prediction that nobody has saved is none: Prodigy gives a time to saved ones.
    """
    if isinstance(answer.task.meta, dict) and PREDICTED in answer.task.meta and answer.task.timestamp is None:
        return "prediction"
    if answer.task.answer == "ignore":
        return "ignored"
    if answer.task.answer not in ANSWERS:
        return "unknown answer"
    return "other interface" if answer.kind == "other" else ""

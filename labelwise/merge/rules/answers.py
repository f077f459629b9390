"""Answers: tasks with what is known about them, when they came, and whether they count."""

from pathlib import Path
from typing import NamedTuple

from labelwise.common.spans import is_integer
from labelwise.sources.declarations import DataSet
from labelwise.sources.prodigy import ANSWERS, Kind, Task, kind_of


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
        """The time of the answer, then the file and the line; answers without a time come first."""
        files = self.dataset.files
        return (self.time, files.index(self.file) if len(files) > 1 else 0, self.line)

    @property
    def kind(self) -> Kind:
        """What the data set is declared to be, or else what the task says."""
        return kind_of(self.task) if self.dataset.kind == "auto" else self.dataset.kind

    @property
    def time(self) -> float:
        """The time of the answer in seconds; 0 if there is none."""
        time = self.task.timestamp
        return time if is_integer(time) or isinstance(time, float) else 0.0


def why_not(answer: Answer) -> str:
    """Return the outcome of an answer that leaves no trace, whatever the others are; empty if it may count."""
    if answer.task.answer == "ignore":
        return "ignored"
    if answer.task.answer not in ANSWERS:
        return "unknown answer"
    return "other interface" if answer.kind == "other" else ""

"""Write brat documents as JSON rows, tasks and problems, in a file per split or folder."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from labelwise.annotations import DOCUMENT, PREDICTED, PROBLEM, Problem
from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import counter_field
from labelwise.corpus.tasks import make_task
from labelwise.datasets.entries import AnySplit
from labelwise.sources.brat import SUFFIXES, Document


class TaskFile(NamedTuple):
    """A file of tasks of a split, and of a folder if folders are datasets."""

    folder: str
    split: AnySplit

    @property
    def name(self) -> str:
        """Return its name."""
        return "-".join(filter(None, self)) + ".jsonl"


class Converted(msgspec.Struct):
    """Counts of a conversion to print.

    files (Counter): annotated documents by file.
    lines, notes, labels (Counter): sums over documents; see `brat.Document`.
    suffixes (dict): suffixes of annotation files, by split.
    used (set): suffixes of annotation files with converted labels.
    empty (int): annotated documents with empty annotation files.
    """

    files: Counter[TaskFile] = counter_field()
    first: Problem | None = None
    problems: Counter[str] = counter_field()
    lines: Counter[str] = counter_field()
    notes: Counter[str] = counter_field()
    labels: Counter[str] = counter_field()
    suffixes: dict[str, set[str]] = {}
    used: set[str] = set()
    empty: int = 0

    def add(self, document: Document, file: TaskFile) -> None:
        """Count a document."""
        self.files[file] += document.annotated
        self.problems.update(problem.reason for problem in document.problems)
        self.first = self.first or next(iter(document.problems), None)
        self.lines += document.lines
        self.notes += document.notes
        self.labels += document.labels
        self.empty += document.empty
        if document.annotated:
            self.suffixes.setdefault(file.split, set()).update(document.suffixes)
            self.used |= document.used

    def lacking(self) -> dict[str, dict[str, int]]:
        """Count documents by split without a kind of file, such as .a2, that other splits have."""
        missing: dict[str, dict[str, int]] = {}
        for split, present in sorted(self.suffixes.items()):
            texts = sum(n for file, n in self.files.items() if file.split == split)
            if kinds := [suffix for suffix in SUFFIXES if suffix in self.used - present]:
                missing[split] = dict.fromkeys(kinds, texts)
        return missing


def write_tasks(documents: Iterable[Document], out: Path, file_of: Callable[[str], TaskFile]) -> Converted:
    """Write the files of tasks into a new folder; refuse file names that differ in case alone."""
    out.mkdir()
    converted = Converted()
    with ExitStack() as stack:
        files: dict[TaskFile, BinaryIO] = {}
        for document in documents:
            file = file_of(document.path)
            converted.add(document, file)
            if file not in files:
                for other in files:
                    if caseless(other.name) == caseless(file.name):
                        raise InputError(f"folders {file.folder} and {other.folder} differ in case alone; rename one")
                files[file] = stack.enter_context((out / file.name).open("wb"))
            files[file].writelines(encode_document(document))
    return converted


def encode_document(document: Document) -> Iterator[bytes]:
    """Encode a document as lines of JSON: problems, then the task."""
    for problem in document.problems:
        yield msgspec.json.encode({PROBLEM: problem}) + b"\n"
    if not (task := document.task):
        return
    spans = [
        {"start": span.start, "end": span.end, "label": span.label, "_labelwise_place": (span.file, span.line)}
        for span in task.spans
    ]
    # The interface "spans_manual" allows overlapping spans.
    meta = {DOCUMENT: task.doc} | ({PREDICTED: "yes"} if task.predicted else {})
    row = make_task(task.text, _view_id="spans_manual", spans=spans, answer="accept", meta=meta)
    yield msgspec.json.encode(row) + b"\n"

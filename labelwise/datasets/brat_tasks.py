"""Write documents of brat as tasks, in a file for each split or folder, and count the outcomes of their lines."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from labelwise.annotations import DOCUMENT
from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import counted, counter_field, name_counts
from labelwise.corpus.tasks import make_task
from labelwise.datasets.brat_folders import MANY
from labelwise.datasets.entries import AnySplit
from labelwise.sources.brat import DECIDED_BY, DEFAULTS, NOT_CONVERTED, SUFFIXES, BratOptions, BratProblem, Document

PROBLEMS = "problems.jsonl"
CHOSEN = ("other label", "no annotation file")  # reasons that an option asks for
SAMPLE = 3
# Values of options that may keep annotations which are lost by default.
KEEPING = {
    "shifted": "nearest  # moves each to the nearest occurrence of the words that it quotes",
    "discontinuous": "cover  # or `first`: one piece of each",
    "encoding": "cp1252  # or the encoding in which the files were saved",
}


class Report(msgspec.Struct):
    """Counts of a brat corpus.

    documents (Counter): "converted", and the others by reason.
    lines (Counter): lines of the annotation files by kind; "T" are the annotations.
    annotations (Counter): T lines "converted", and the others by reason; adds up to lines["T"].
    notes (Counter): spans that weren't converted exactly as written (see `brat.Document`); these overlap.
    labels (Counter): converted spans by label.
    lacking (dict): the documents of a split without a kind of file, such as .a2, that other splits use.
    disjoint (dict): the labels of each folder, if folders have no label in common.
    """

    documents: Counter[str] = counter_field()
    lines: Counter[str] = counter_field()
    annotations: Counter[str] = counter_field()
    notes: Counter[str] = counter_field()
    labels: Counter[str] = counter_field()
    lacking: dict[str, dict[str, int]] = {}
    disjoint: dict[str, list[str]] = {}

    def add(self, document: Document) -> None:
        """Count a document."""
        self.lines += document.lines
        self.notes += document.notes
        self.labels.update(span.label for span in document.spans)
        self.annotations["converted"] += len(document.spans)
        self.documents["converted"] += document.text is not None
        for problem in document.problems:
            if problem.line == 0:
                self.documents[problem.reason] += 1
            elif problem.reason in NOT_CONVERTED:
                self.annotations[problem.reason] += 1


class TaskFile(NamedTuple):
    """A file of tasks: those of a folder, if folders are data sets of their own, and of a split."""

    folder: str
    split: AnySplit

    @property
    def name(self) -> str:
        """Its name."""
        return "-".join(filter(None, self)) + ".jsonl"


class Written(NamedTuple):
    """The results of writing tasks.

    labels (Counter): those of all well-formed T lines, as written.
    bad (int): files and lines that can't be converted, except those that an option leaves out.
    first (BratProblem | None): the first of these.
    files (list[TaskFile]): the written files.
    """

    report: Report
    labels: Counter[str]
    bad: int
    first: BratProblem | None
    files: list[TaskFile]


def write_tasks(documents: Iterable[Document], out: Path, file_of: Callable[[Document], TaskFile]) -> Written:
    """Write the files of tasks, and `problems.jsonl`, into a new folder.

    file_of (Callable): chooses the file of a document.
    RAISES (InputError): the names of two files differ in case alone.
    """
    out.mkdir()
    report, labels, bad, first = Report(), Counter[str](), 0, None
    sizes: Counter[str] = Counter()  # documents by split
    suffixes: dict[str, set[str]] = {}  # of annotation files, by split
    used: set[str] = set()  # of those that have labels that are asked for
    with ExitStack() as stack:
        problems = stack.enter_context((out / PROBLEMS).open("wb"))
        files: dict[TaskFile, BinaryIO] = {}
        for document in documents:
            report.add(document)
            labels += document.labels
            for problem in document.problems:
                problems.write(msgspec.json.encode(problem._asdict()) + b"\n")
                if problem.reason not in CHOSEN:
                    first, bad = first or problem, bad + 1
            if document.text is not None:
                file = file_of(document)
                sizes[file.split] += 1
                suffixes.setdefault(file.split, set()).update(document.suffixes)
                used |= document.used
                if file not in files:
                    for other in files:
                        if caseless(other.name) == caseless(file.name):
                            folders = f"{file.folder} and {other.folder}"
                            raise InputError(f"folders {folders} differ in case alone; rename one")
                    files[file] = stack.enter_context((out / file.name).open("wb"))
                files[file].write(encode_document(document))
    for split in sorted(sizes):
        if lacking := [suffix for suffix in SUFFIXES if suffix in used - suffixes[split]]:
            report.lacking[split] = dict.fromkeys(lacking, sizes[split])
    return Written(report, labels, bad, first, sorted(files))


def encode_document(document: Document) -> bytes:
    """Encode an annotated document as a line of JSON."""
    spans = [
        {"start": span.start, "end": span.end, "label": span.label, "_labelwise_place": (span.file, span.line)}
        for span in document.spans
    ]
    # "spans_manual" is the interface in which spans may overlap.
    meta = {DOCUMENT: document.path}
    task = make_task(document.text or "", _view_id="spans_manual", spans=spans, answer="accept", meta=meta)
    return msgspec.json.encode(task) + b"\n"


def check_losses(annotations: Counter[str], how: BratOptions, brat_dir: Path, problems: Path) -> None:
    """Refuse a corpus of which more annotations are lost than converted, ten or more, unless that is expected."""
    lost = Counter({reason: n for reason, n in annotations.items() if reason not in ("converted", *CHOSEN)})
    if how.expect_losses or lost.total() < MANY or lost.total() <= annotations["converted"]:
        return
    rows = (BratProblem(**msgspec.json.decode(line)) for line in problems.read_bytes().splitlines())
    sample = islice((row for row in rows if row.reason in lost), SAMPLE)
    option = DECIDED_BY.get(lost.most_common(1)[0][0], "")
    helps = option in KEEPING and getattr(how, option) == getattr(DEFAULTS, option)
    raise InputError(
        f"{brat_dir}: {lost.total():,} of {counted(lost.total() + annotations['converted'], 'annotation')} can't be "
        f"used: {name_counts(lost)}\n"
        + "".join(f"  {row.file}:{row.line}  {row.reason}: {row.row!r}\n" for row in sample)
        + "add one of these lines to the section brat of project.yml\n"
        + (f"  {option}: {KEEPING[option]}\n" if helps else "")
        + "  expect_losses: true  # if that is intended"
    )

"""Write documents of brat as tasks, in a file for each split or folder, and count what became of their lines."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.files import caseless
from labelwise.base.text import counted
from labelwise.corpus.tasks import DOCUMENT, make_task
from labelwise.datasets.brat_folders import MANY
from labelwise.datasets.brat_splits import USED, find_lacking
from labelwise.datasets.entries import AnySplit
from labelwise.sources.brat import NOT_CONVERTED, BratOptions, BratProblem, Document

PROBLEMS = "problems.jsonl"
CHOSEN = ("other label", "no annotation file")  # reasons that an option asks for
SAMPLE = 3
COUNTED = ("documents", "lines", "annotations", "notes", "labels")


class TaskFile(NamedTuple):
    """A file of tasks: those of a folder, if folders are data sets of their own, and of a split."""

    folder: str
    split: AnySplit

    @property
    def name(self) -> str:
        """Its name."""
        return "-".join(filter(None, self)) + ".jsonl"


def write_tasks(
    documents: Iterable[Document], out: Path, file_of: Callable[[Document], TaskFile]
) -> tuple[dict[str, Counter[str]], dict[str, dict[str, int]], BratProblem | None, list[TaskFile]]:
    """Write a file of tasks for each split that has some, SPLIT.jsonl, and `problems.jsonl`, into a new folder.

    file_of (Callable): chooses the file of a document.
    RETURNS (tuple): the counts of a Report, "written", labels as all well-formed T lines have them, and "bad", files
        and lines that can't be converted; what splits lack, see `find_lacking`; the first that can't be converted; and
        the files.
    """
    out.mkdir()
    counts: dict[str, Counter[str]] = {field: Counter() for field in (*COUNTED, "written", "bad")}
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    first = None
    with ExitStack() as stack:
        problems = stack.enter_context((out / PROBLEMS).open("wb"))
        files: dict[TaskFile, BinaryIO] = {}
        for document in documents:
            _count(document, counts)
            for problem in document.problems:
                problems.write(msgspec.json.encode(problem._asdict()) + b"\n")
                if problem.reason not in CHOSEN:
                    first = first or problem
                    counts["bad"][problem.reason] += 1
            if document.text is not None:
                file = file_of(document)
                kinds[file.split].update(
                    ("documents", *document.suffixes, *(USED + suffix for suffix in document.used))
                )
                if file not in files:
                    check_apart(file, files)
                    files[file] = stack.enter_context((out / file.name).open("wb"))
                files[file].write(encode_document(document))
    return counts, find_lacking(kinds), first, sorted(files)


def check_apart(file: TaskFile, others: Iterable[TaskFile]) -> None:
    """Check that no other file of tasks has the same name where case doesn't count.

    RAISES (InputError): one has.
    """
    for other in others:
        if caseless(other.name) == caseless(file.name):
            raise InputError(f"folders {file.folder} and {other.folder} differ in case alone; rename one")


def _count(document: Document, counts: dict[str, Counter[str]]) -> None:
    counts["lines"] += document.lines
    counts["notes"] += document.notes
    counts["written"] += document.labels
    counts["labels"].update(span.label for span in document.spans)
    counts["annotations"]["converted"] += len(document.spans)
    counts["documents"]["converted"] += document.text is not None
    for problem in document.problems:
        if problem.line == 0:
            counts["documents"][problem.reason] += 1
        elif problem.reason in NOT_CONVERTED:
            counts["annotations"][problem.reason] += 1


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
    """Check that no more annotations are lost than converted, unless that is expected.

    RAISES (InputError): they are, ten or more.
    """
    lost = Counter({reason: n for reason, n in annotations.items() if reason not in ("converted", *CHOSEN)})
    if how.expect_losses or lost.total() < MANY or lost.total() <= annotations["converted"]:
        return
    why = ", ".join(f"{reason} ({n:,})" for reason, n in lost.most_common())
    rows = (BratProblem(**msgspec.json.decode(line)) for line in problems.read_bytes().splitlines())
    sample = islice((row for row in rows if row.reason in lost), SAMPLE)
    raise InputError(
        f"{brat_dir}: {lost.total():,} of {counted(lost.total() + annotations['converted'], 'annotation')} can't be "
        f"used: {why}; if it is meant so, add `expect_losses: true` to the section brat of project.yml\n"
        + "\n".join(f"  {row.file}:{row.line}  {row.reason}: {row.row!r}" for row in sample)
    )

"""Read each source once into buckets, in parallel."""

from collections import Counter
from pathlib import Path

import msgspec

from labelwise.annotations import DOCUMENT, Item, Problem, Reason, Task, rename_labels
from labelwise.base.errors import InputError
from labelwise.base.parallel import trim_heap
from labelwise.base.text import counter_field
from labelwise.datasets.declarations import DataSet
from labelwise.merge.account import SPAN_REASONS, AccountWriter, add_problem
from labelwise.merge.buckets import BucketWriter, TaskWriter
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.files import FileStat, SourceFile, stat_of
from labelwise.sources.formats import read_items
from labelwise.sources.tags import NO_LABEL

MAX_TEXT_CHARS = 10**7  # characters of a text; each takes some 60 bytes in the merge


class Source(msgspec.Struct, frozen=True):
    """A file of a dataset, and its number among all datasets' files."""

    number: int
    dataset: DataSet
    file: SourceFile


class ReadJob(msgspec.Struct, frozen=True):
    """A source to read, its files' stat at planning, and the keys of `meta` to keep."""

    source: Source
    stat: list[FileStat]
    bits: int
    meta: list[str]

    def __str__(self) -> str:
        return str(self.source.file.path)


class ReadCounts(msgspec.Struct):
    """A source's numbers of rows, spans and tasks.

    elsewhere (Counter): problems with their own file, as in brat, by table and file.
    answered (int): tasks with spans, or with another sign of annotation.
    """

    rows: int = 0
    spans: int = 0
    tasks: int = 0
    lengths: Counter[int] = counter_field()
    elsewhere: Counter[tuple[str, str]] = counter_field()
    answered: int = 0


def read_source(job: ReadJob, folder: Path) -> ReadCounts:
    """Read a source: tasks go to buckets, problems to the tables; refuse one that has changed meanwhile."""
    dataset, file = job.source.dataset, job.source.file
    counts = ReadCounts()
    number, name = job.source.number, f"{job.source.number:06d}"
    with (
        BucketWriter(folder / "forms" / name, job.bits) as forms,
        TaskWriter(folder / "tasks" / name, job.bits, forms) as writer,
        AccountWriter(folder / f"read-{number}") as account,
    ):
        for item in map(check_length, read_items(file.path, dataset.database, dataset.key, dataset.offsets)):
            if isinstance(item, Task):
                task = give_label(rename_labels(item, dataset.rename), dataset, file)
                if task.meta or job.meta:
                    meta = task.meta | ({DOCUMENT: task.doc} if task.doc else {})
                    task = msgspec.structs.replace(task, meta={key: meta[key] for key in job.meta if key in meta})
                writer.add_task(task, number, counts.tasks)
                counts.tasks += 1
                counts.rows += 1
                counts.spans += len(task.all_spans)
                counts.answered += task.kind != "unanswered"
                counts.lengths[len(task.text)] += 1
            else:
                add_problem(account, item, dataset.name, file.name)
                account.end_text()
                table = "spans" if item.reason in SPAN_REASONS else "rows"
                if item.file:
                    counts.elsewhere[table, item.file] += 1
                else:
                    setattr(counts, table, getattr(counts, table) + 1)
    # A database is read as of one moment.
    if not dataset.database and stat_of(file.path, READ_SUFFIXES) != job.stat:
        raise InputError(f"{file.path}: the file changed while it was read; run the merge again")
    trim_heap()
    return counts


def give_label(task: Task, dataset: DataSet, file: SourceFile) -> Task:
    """Give spans of unlabeled tags their dataset's only label; refuse several."""
    if not task.spans or task.spans[0].label != NO_LABEL:
        return task
    if len(dataset.labels) > 1:
        raise InputError(
            f"{file.path}, line {task.line}: its tags, such as B and I, have no label, and dataset {dataset.name!r} "
            "declares several; declare the one that they mean, such as `labels: [PERSON]`"
        )
    spans = (msgspec.structs.replace(span, label=dataset.labels[0]) for span in task.spans)
    return msgspec.structs.replace(task, spans=tuple(spans))


def check_length(item: Item) -> Item:
    """Convert a task with too long a text to a problem."""
    if isinstance(item, Problem) or len(item.text) <= MAX_TEXT_CHARS:
        return item
    detail = f"a text of {len(item.text):,} characters; cut it into texts of {MAX_TEXT_CHARS:,} at most"
    return Problem(item.line, Reason.MALFORMED, detail)

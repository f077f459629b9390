"""Read sources to runs (see `runs`).

Reading is the costly step, so every source is read once, several side by side. An Extract counts what a source has;
it is written last of all, and a later merge takes it and the runs as they are.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.parallel import give_back
from labelwise.base.text import decode_counter
from labelwise.corpus.ledger import SPAN_OUTCOMES, Ledger, Problem, outcome_of, problem_line
from labelwise.corpus.tasks import PREDICTED
from labelwise.merge.rules.answers import annotator
from labelwise.merge.rules.policies import Policies, unknown_annotators
from labelwise.merge.rules.settings import Settings
from labelwise.merge.runs import Run, RunWriter, Source, run_path
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.files import FileStat, printable, stat_of
from labelwise.sources.formats import read_items
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import DOCUMENT, Task, check_task, rename_labels

LONGEST = 10**7  # characters of a text, each of which takes some 60 bytes in the merge


class ReadJob(msgspec.Struct):
    """A source to be read.

    stat (list[FileStat]): of the source when this was planned.
    out (Path): runs and extract are written to this path with other suffixes.
    """

    source: Source
    stat: list[FileStat]
    out: Path
    normalize: bool
    split_by: str

    def __str__(self) -> str:
        """Name the source."""
        return str(self.source.path)


class Extract(msgspec.Struct):
    """The content of a source, in counts.

    runs (list[int]): the number of tasks of each run.
    sizes (dict[str, int]): the bytes of each other file, by name.
    annotators (set[str]): who answered, as the answers name them.
    ledger (Ledger): rows and spans read, and the outcomes of those that can't be used; each is a line of `.problems`.
    """

    runs: list[int] = []
    sizes: dict[str, int] = {}
    annotators: set[str] = set()
    ledger: Ledger = msgspec.field(default_factory=Ledger)


def plan_reading(sources: Sequence[Source], folder: Path, settings: Settings) -> list[ReadJob]:
    """Plan the reading of sources, in order.

    folder (Path): that of the cache for their runs.
    """
    jobs = []
    for source in sources:
        stat = stat_of(source.path, READ_SUFFIXES)
        place = printable(Path(os.path.relpath(source.path, folder)))  # a project may be moved
        dataset = source.dataset
        declared = dataset.name, dataset.database, dataset.rename, dataset.key, source.name
        fingerprint = msgspec.json.encode([place, stat, settings.normalize, settings.split_by, *declared])
        out = folder / hashlib.blake2b(fingerprint, digest_size=16).hexdigest()
        jobs.append(ReadJob(source, stat, out, settings.normalize, settings.split_by))
    return jobs


def read_source(job: ReadJob) -> Extract:
    """Read a source and write its runs, or take those of an earlier merge.

    RAISES (InputError): the source changed in the meantime, or can't be read.
    """
    if (known := _read_extract(job.out)) is not None:
        return known
    extract, writer = Extract(), RunWriter(job.out)
    dataset, ledger = job.source.dataset, extract.ledger
    keys = [key for key in (DOCUMENT, PREDICTED, job.split_by) if key]
    with job.out.with_suffix(".problems").open("wb") as problems:
        for item in read_items(job.source.path, dataset.database, dataset.key):
            too_long = _too_long(item.task)
            if item.task is not None and not too_long:
                for old, spans in rename_labels(item.task, dataset.rename).items() if dataset.rename else ():
                    ledger.renamed[f"{dataset.name}: {old} to {dataset.rename[old]}"] += spans
                ledger.rows_read += 1
                ledger.spans_read += len(item.task.spans or ())
                task = normalize_task(item.task) if job.normalize else item.task
                check_task(task, keys)
                extract.annotators.add(task.annotator_id or "")
                writer.add(item.line, task)
            for problem in filter(None, (item.problem, too_long)):
                _note(Problem(dataset.name, job.source.name, item.line, problem), ledger, problems)
    writer.write()
    ledger.datasets[dataset.name] = ledger.rows_read
    extract.runs = writer.runs
    runs = [run_path(job.out, number) for number in range(len(writer.runs))]
    files = [job.out.with_suffix(".problems"), *(run.with_suffix(end) for run in runs for end in (".index", ".tasks"))]
    extract.sizes = {file.name: file.stat().st_size for file in files}
    # A query sees a database as it was when it began.
    if not dataset.database and stat_of(job.source.path, READ_SUFFIXES) != job.stat:
        raise InputError(f"{job.source.path}: the file changed while it was read; run the merge again")
    job.out.with_suffix(".extract").write_bytes(msgspec.json.encode(extract))
    give_back()
    return extract


def _read_extract(out: Path) -> Extract | None:
    """Read the extract of an earlier merge; None if there is none, or not all of its files."""
    try:
        content = out.with_suffix(".extract").read_bytes()
        extract = msgspec.json.decode(content, type=Extract, dec_hook=decode_counter)
        whole = all((out.parent / name).stat().st_size == size for name, size in extract.sizes.items())
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return extract if whole else None


def _note(problem: Problem, ledger: Ledger, lines: IO[bytes]) -> None:
    """Count and list a row or a span that can't be used."""
    outcome = outcome_of(problem.reason)
    if outcome in SPAN_OUTCOMES:
        ledger.spans_read += 1
        ledger.spans[outcome] += 1
    else:
        ledger.rows_read += 1
        ledger.rows[outcome] += 1
    lines.write(problem_line(problem))


def _too_long(task: Task | None) -> str:
    """Say why a task's text would take more memory than a merge should; empty if it doesn't."""
    length = len(task.text or "") if task else 0
    return f"malformed: a text of {length:,} characters; cut it into texts of {LONGEST:,} at most" * (length > LONGEST)


def collect_extracts(
    jobs: Sequence[ReadJob], extracts: Iterable[Extract], policies: Policies, ledger: Ledger, problems: IO[bytes]
) -> list[Run]:
    """Add up what was read, list what can't be used, and return the runs.

    RAISES (InputError): the policy `annotators` names nobody who answered.
    """
    runs: list[Run] = []
    names: set[str] = set()
    for job, extract in zip(jobs, extracts, strict=True):
        names.update(annotator(name, job.source.dataset)[0] for name in extract.annotators)
        runs += [Run(run_path(job.out, number), job.source, tasks) for number, tasks in enumerate(extract.runs)]
        ledger.add(extract.ledger)
        with job.out.with_suffix(".problems").open("rb") as lines:
            shutil.copyfileobj(lines, problems)
    ledger.unknown_annotators.update(unknown_annotators(policies.annotators, names))
    return runs

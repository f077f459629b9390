"""Read sources to runs (see `runs`).

Reading is the costly step, so every source is read once, in slices that are read side by side. An Extract counts
what a slice has; it is written last of all.
"""

from collections import Counter
from pathlib import Path

import msgspec

from labelwise.common.decoding import decode_counter
from labelwise.common.errors import InputError
from labelwise.corpus.tasks import PREDICTED
from labelwise.merge.jobs import ReadJob
from labelwise.merge.rules.ledger import PROBLEM_SPANS, Problem, outcome_of, problem_line
from labelwise.merge.runs import ENTRY, RunWriter, run_path
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.files import stat_of
from labelwise.sources.formats import read_items
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import DOCUMENT, Task, check_task, rename_labels

BREAK = 600  # seconds
LONGEST = 10**7  # characters of a text, each of which takes some 60 bytes in the merge


class Extract(msgspec.Struct):
    """The content of one slice of a source, in counts.

    lines (int): lines in it, so that counting can continue in the next slice; 0 where a source is read as a whole.
    runs (list[tuple[int, int]]): for each run the number of tasks, and the bytes of its `.tasks` file.
    spans_read (int): spans of these tasks.
    rows, spans (Counter): unusable ones, by reason; each is a line of the `.problems` file.
    problems (int): the bytes of that file.
    renamed (Counter): spans by the label that they were renamed from.
    seconds (Counter): the times between successive answers of an annotator; longer than BREAK, it was none.
    """

    lines: int = 0
    runs: list[tuple[int, int]] = []
    spans_read: int = 0
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    spans: Counter[str] = msgspec.field(default_factory=Counter)
    problems: int = 0
    renamed: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def tasks(self) -> int:
        """The number of tasks in all runs."""
        return sum(tasks for tasks, _ in self.runs)


def read_extract(out: Path) -> Extract | None:
    """Read the extract of an earlier run; None if there is none, or not all of its files."""
    try:
        content = out.with_suffix(".extract").read_bytes()
        extract = msgspec.json.decode(content, type=Extract, dec_hook=decode_counter)
        for number, (tasks, size) in enumerate(extract.runs):
            path = run_path(out, number)
            sizes = [path.with_suffix(suffix).stat().st_size for suffix in (".index", ".tasks")]
            if sizes != [tasks * ENTRY.itemsize, size]:
                return None
        whole = out.with_suffix(".problems").stat().st_size == extract.problems
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return extract if whole else None


def read_slice(job: ReadJob) -> Extract:
    """Read a slice of a source and write its runs, or take those of an earlier merge.

    RAISES (InputError): the source changed in the meantime, or can't be read.
    """
    if (known := read_extract(job.out)) is not None:
        return known
    extract = Extract()
    writer = RunWriter(job.out)
    answered: dict[str | None, float] = {}
    keys = [key for key in (DOCUMENT, PREDICTED, job.split_by) if key]
    with job.out.with_suffix(".problems").open("wb") as problems:
        for item in read_items(job.path, job.dataset, job.start, job.end, job.key):
            extract.lines = item.line
            too_long = _too_long(item.task)
            if item.task is not None and not too_long:
                extract.renamed += rename_labels(item.task, job.rename)
                extract.spans_read += len(item.task.spans or ())
                task = normalize_task(item.task) if job.normalize else item.task
                check_task(task, keys)
                if passed := _since(task, answered):
                    extract.seconds[passed] += 1
                writer.add(item.line, task)
            for problem in filter(None, (item.problem, too_long)):
                outcome = outcome_of(problem)
                (extract.spans if outcome in PROBLEM_SPANS else extract.rows)[outcome] += 1
                extract.problems += problems.write(problem_line(Problem("", item.file, item.line, problem)))
    writer.write()
    extract.runs = writer.runs
    # A query sees a database as it was when it began.
    if not job.dataset and stat_of(job.path, READ_SUFFIXES) != job.stat:
        raise InputError(f"{job.path}: the file changed while it was read; run the merge again")
    unfinished = job.out.with_suffix(".extract.tmp")
    unfinished.write_bytes(msgspec.json.encode(extract))
    unfinished.replace(job.out.with_suffix(".extract"))
    return extract


def _too_long(task: Task | None) -> str:
    """Say why a task's text would take more memory than a merge should; empty if it doesn't."""
    length = len(task.text or "") if task else 0
    return f"malformed: a text of {length:,} characters; cut it into texts of {LONGEST:,} at most" * (length > LONGEST)


def median_seconds(seconds: Counter[str]) -> int:
    """Find the lower median of `Extract.seconds`, of which there are some."""
    left = (seconds.total() + 1) // 2
    for time in sorted(map(int, seconds)):
        left -= seconds[str(time)]
        if left <= 0:
            break
    return time


def _since(task: Task, answered: dict[str | None, float]) -> str:
    """Tell the seconds since its annotator's last answer, if it was made in one go with it; empty if it wasn't.

    answered (dict): the time of the last answer of each annotator, which is brought up to date.
    """
    time = task.timestamp
    if time is None or not 0 < time < 2**53:
        return ""
    passed = time - answered.get(task.annotator_id, time)
    answered[task.annotator_id] = time
    return str(round(passed)) if 1 <= passed <= BREAK else ""

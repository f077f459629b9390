"""Read sources to task files (see `task_store`).

Reading is the costly step, so every source is read once, in slices that are read side by side. An Extract counts
what a slice has; it is written last of all.
"""

from collections import Counter
from pathlib import Path

import msgspec

from labelwise.common.decoding import decode_counter
from labelwise.common.errors import InputError
from labelwise.common.spans import is_integer
from labelwise.corpus.tasks import PREDICTED
from labelwise.merge.jobs import ReadJob
from labelwise.merge.rules.ledger import PROBLEM_SPANS, Problem, outcome_of, problem_line
from labelwise.merge.task_store import ENTRY, TaskWriter, task_file_path
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.files import stat_of
from labelwise.sources.formats import read_items
from labelwise.sources.normalize import normalize_task
from labelwise.sources.prodigy import DOCUMENT, Task, annotator_of, rename_labels

BUFFER_BYTES = 2**24  # of tasks that wait to be sorted
BREAK = 600  # seconds
LONGEST = 10**7  # characters of a text, each of which takes some 60 bytes in the merge


class Extract(msgspec.Struct):
    """The content of one slice of a source, in counts.

    lines (int): lines in it, so that counting can continue in the next slice; 0 where a source is read as a whole.
    files (list[tuple[int, int]]): for each task file the number of tasks, and the bytes of its `.tasks` file.
    rows, spans (Counter): unusable ones, by reason; each is a line of the `.problems` file.
    problems (int): the bytes of that file.
    renamed (Counter): spans by the label that they were renamed from.
    seconds (Counter): the times between successive answers of an annotator; longer than BREAK, it was none.
    """

    lines: int = 0
    files: list[tuple[int, int]] = []
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    spans: Counter[str] = msgspec.field(default_factory=Counter)
    problems: int = 0
    renamed: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def tasks(self) -> int:
        """The number of tasks in all task files."""
        return sum(tasks for tasks, _ in self.files)


def read_extract(out: Path) -> Extract | None:
    """Read the extract of an earlier run; None if there is none, or not all of its files."""
    try:
        content = out.with_suffix(".extract").read_bytes()
        extract = msgspec.json.decode(content, type=Extract, dec_hook=decode_counter)
        for number, (tasks, size) in enumerate(extract.files):
            path = task_file_path(out, number)
            sizes = [path.with_suffix(suffix).stat().st_size for suffix in (".index", ".tasks")]
            if sizes != [tasks * ENTRY.itemsize, size]:
                return None
        whole = out.with_suffix(".problems").stat().st_size == extract.problems
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return extract if whole else None


def read_slice(job: ReadJob) -> Extract:
    """Read a slice of a source and write its task files, or take those of an earlier run.

    RAISES (InputError): the source changed in the meantime, or can't be read.
    """
    if (known := read_extract(job.out)) is not None:
        return known
    extract = Extract()
    waiting = TaskWriter(job.out)
    answered: dict[str, float] = {}
    with job.out.with_suffix(".problems").open("wb") as problems:
        for item in read_items(job.path, job.dataset, job.start, job.end, job.key):
            extract.lines = item.line
            too_long = _too_long(item.task)
            if item.task is not None and not too_long:
                extract.renamed += rename_labels(item.task, job.rename)
                task = _only_needed(item.task, job)
                extract.seconds.update(_since(task, answered))
                waiting.add(item.line, task)
                if waiting.size > BUFFER_BYTES:
                    extract.files.append(waiting.write(len(extract.files)))
            for problem in filter(None, (item.problem, too_long)):
                outcome = outcome_of(problem)
                (extract.spans if outcome in PROBLEM_SPANS else extract.rows)[outcome] += 1
                extract.problems += problems.write(problem_line(Problem("", item.file, item.line, problem)))
    if waiting.tasks:
        extract.files.append(waiting.write(len(extract.files)))
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


def _since(task: Task, answered: dict[str, float]) -> list[str]:
    """Tell the seconds since its annotator's last answer, if it was made in one go with it.

    answered (dict): the time of the last answer of each annotator, which is brought up to date.
    """
    name, time = str(task.annotator_id or ""), task.timestamp
    if not (is_integer(time) or isinstance(time, float)) or not 0 < time < 2**53:
        return []
    passed = time - answered.get(name, time)
    answered[name] = time
    return [str(round(passed))] if 1 <= passed <= BREAK else []


def _only_needed(task: Task, job: ReadJob) -> Task:
    """Keep only the values of `meta` that may be needed, and the annotator's name; normalize the text if asked."""
    meta = task.meta if isinstance(task.meta, dict) else {}
    task.meta = {
        key: str(meta[key]) for key in (DOCUMENT, PREDICTED, job.split_by) if meta.get(key) is not None
    } or None
    task.annotator_id, task.session_id = annotator_of(task) or None, None
    return normalize_task(task) if job.normalize else task

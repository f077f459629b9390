"""Tasks on disk, sorted by the keys of their texts: what is left of the data sets once they have been read.

Reading is the dear part, so every source is read once, in parts that are read side by side. What the merge needs of a
part goes to chunks, a tenth of it or so, since tokens aren't needed: each is held in memory once, sorted, and written.
The tasks of one text then lie together in every chunk, and a merge of any range of keys reads just what it needs.

A chunk is two files. `.index` has an ENTRY of 32 bytes for each task; `.tasks` the tasks themselves as MessagePack,
each with its text behind it, in the same order. An Extract says what was found; it is written last of all.
"""

import hashlib
import os
import struct
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from labelwise.books import PROBLEM_SPANS, Problem, bucket_of, decode_counter, problem_line
from labelwise.errors import InputError
from labelwise.keys import key_parts, text_key
from labelwise.normalize import normalize_task
from labelwise.output import replace
from labelwise.prodigy import Task, annotator_of
from labelwise.sources import read_items, stat_of

# The key in two parts, the line in its source, a digest of the task without text, and the lengths of task and text.
ENTRY = np.dtype(
    [("high", "<u8"), ("low", "<u4"), ("line", "<u4"), ("digest", "<u8"), ("task", "<u4"), ("text", "<u4")]
)
_ENTRY = struct.Struct("<QIIQII")
TASK_OVERHEAD = 400  # bytes of Python objects for a task that waits to be sorted, about

Entries = npt.NDArray[np.void]

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class ReadJob(msgspec.Struct):
    """A part of a source to be read.

    number (int): the source's position among all.
    path, dataset, start, end: what `sources.read_items` takes; `stat` is the source's `stat_of` when this was planned.
    size (int): bytes to be read, compressed ones where the file is compressed.
    out (Path): chunks and extract are written to this path with other suffixes.
    buffer (int): bytes of tasks to hold before a chunk is written.
    """

    number: int
    path: Path
    dataset: str
    start: int
    end: int | None
    size: int
    stat: list[tuple[str, int, int, int]]
    out: Path
    buffer: int
    normalize: bool
    split_by: str


class Extract(msgspec.Struct):
    """What was read of one part of a source.

    lines (int): lines in it, so that the next part's can be counted on; 0 where a source is read as a whole.
    chunks (list[tuple[int, int]]): for each chunk the number of tasks, and the bytes of its `.tasks` file.
    rows, spans (Counter): what can't be used, by reason; each is a line of the `.problems` file.
    problems (int): the bytes of that file.
    """

    lines: int = 0
    chunks: list[tuple[int, int]] = []
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    spans: Counter[str] = msgspec.field(default_factory=Counter)
    problems: int = 0

    @property
    def tasks(self) -> int:
        """The number of tasks in all chunks."""
        return sum(tasks for tasks, _ in self.chunks)


def read_extract(out: Path) -> Extract | None:
    """Read what an earlier run found; None if there is none, or not all of its files."""
    try:
        content = out.with_suffix(".extract").read_bytes()
        extract = msgspec.json.decode(content, type=Extract, dec_hook=decode_counter)
        for number, (tasks, size) in enumerate(extract.chunks):
            path = chunk_path(out, number)
            sizes = [path.with_suffix(suffix).stat().st_size for suffix in (".index", ".tasks")]
            if sizes != [tasks * ENTRY.itemsize, size]:
                return None
        whole = out.with_suffix(".problems").stat().st_size == extract.problems
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return extract if whole else None


def chunk_path(out: Path, number: int) -> Path:
    """Name a chunk of an extract; its two files have suffixes."""
    return out.with_name(f"{out.name}-{number}")


def read_part(job: ReadJob) -> Extract:
    """Read a part of a source and write its chunks, or take what an earlier run left.

    RAISES (InputError): the source was changed meanwhile, or can't be read.
    """
    if (known := read_extract(job.out)) is not None:
        return known
    extract = Extract()
    sorter = _Sorter(job.out)
    with job.out.with_suffix(".problems").open("wb") as problems:
        for item in read_items(job.path, job.dataset, job.start, job.end):
            extract.lines = item.line
            if item.task is not None:
                sorter.add(item.line, _only_needed(item.task, job))
                if sorter.size > job.buffer:
                    extract.chunks.append(sorter.write(len(extract.chunks)))
            if item.problem:
                bucket = bucket_of(item.problem)
                (extract.spans if bucket in PROBLEM_SPANS else extract.rows)[bucket] += 1
                extract.problems += problems.write(problem_line(Problem("", item.file, item.line, item.problem)))
    if sorter.tasks:
        extract.chunks.append(sorter.write(len(extract.chunks)))
    # A query sees a database as it was when it began.
    if not job.dataset and stat_of(job.path) != job.stat:
        raise InputError(f"{job.path}: the file changed while it was read; run the merge again")
    staged = job.out.with_suffix(".extract.tmp")
    staged.write_bytes(msgspec.json.encode(extract))
    replace(staged, job.out.with_suffix(".extract"))
    return extract


def _only_needed(task: Task, job: ReadJob) -> Task:
    """Leave of `meta` the one value that may be needed, and the annotator's name; normalize the text if asked to."""
    value = task.meta.get(job.split_by) if isinstance(task.meta, dict) and job.split_by else None
    task.meta = None if value is None else {job.split_by: str(value)}
    task.annotator_id, task.session_id = annotator_of(task) or None, None
    return normalize_task(task) if job.normalize else task


def _fit(task: Task) -> Task:
    """Replace values with integers of more than 64 bits, which MessagePack doesn't have; none is right anyway."""
    for item in (task, *(task.spans or ())):
        for name in item.__struct_fields__:
            value = getattr(item, name)
            try:
                encode_task(value)
            except OverflowError:
                if name != "spans":
                    setattr(item, name, [str(value)])
    return task


class _Sorter:
    """Tasks that wait to be written, sorted, as a chunk."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.tasks: list[tuple[bytes, int, bytes, bytes]] = []
        self.size = 0

    def add(self, line: int, task: Task) -> None:
        """Take one task, which loses its text."""
        text = (task.text or "").encode("utf8", "surrogatepass")
        task.text = None
        try:
            encoded = encode_task(task)
        except OverflowError:
            encoded = encode_task(_fit(task))
        self.tasks.append((text_key(text), line, encoded, text))
        self.size += len(encoded) + len(text) + TASK_OVERHEAD

    def write(self, number: int) -> tuple[int, int]:
        """Write a chunk, forget its tasks, and give their number and bytes."""
        self.tasks.sort()
        path = chunk_path(self.out, number)
        with path.with_suffix(".tasks").open("wb") as tasks, path.with_suffix(".index").open("wb") as index:
            for key, line, encoded, text in self.tasks:
                digest = int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")
                index.write(_ENTRY.pack(*key_parts(key), line, digest, len(encoded), len(text)))
                tasks.write(encoded)
                tasks.write(text)
            written = len(self.tasks), tasks.tell()
        self.tasks, self.size = [], 0
        return written


class Slice(msgspec.Struct):
    """The tasks of a range of keys in one chunk.

    source (int): the position of its source among all.
    base (int): the number of lines before the part of the source.
    first, count (int): the entries in the index.
    offset, size (int): the bytes in the `.tasks` file.
    """

    path: Path
    source: int
    base: int
    first: int
    count: int
    offset: int
    size: int


def count_texts(chunks: list[tuple[Path, int]], limit: int = 2**17) -> tuple[int, int]:
    """Count the distinct texts, and their bytes, in chunks of so many tasks.

    More than `limit` tasks are estimated from a part of the keys: the estimate follows from the texts, and not from how
    they lie in chunks.
    """
    shift = 0
    while sum(count for _, count in chunks) >> shift > limit:
        shift += 1
    highs, lengths = [np.zeros(0, "<u8")], [np.zeros(0, "<u4")]
    for path, _ in chunks:
        index = read_index(path)
        end = np.searchsorted(index["high"], np.uint64((2**64 >> shift) - 1), side="right")
        # Copies, since a part keeps the whole in memory.
        highs.append(index["high"][:end].copy())
        lengths.append(index["text"][:end].copy())
    distinct, first = np.unique(np.concatenate(highs), return_index=True)
    return len(distinct) << shift, int(np.concatenate(lengths)[first].sum()) << shift


def read_index(path: Path, first: int = 0, count: int = -1) -> Entries:
    """Read entries of a chunk."""
    return np.fromfile(path.with_suffix(".index"), ENTRY, count, offset=first * ENTRY.itemsize)


def cut_chunk(path: Path, parts: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut a chunk into ranges of keys of equal width, a power of two of them.

    RETURNS (tuple): for each part, and the end, the number of its first entry, and its offset in the `.tasks` file.
    """
    index = read_index(path)
    bounds = np.array([(part << 64) // parts for part in range(1, parts)], "<u8")
    cuts = np.concatenate([[0], np.searchsorted(index["high"], bounds), [len(index)]]).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(index["task"].astype(np.int64) + index["text"])])
    return cuts, ends[cuts]


class TaskReader:
    """Reads tasks of chunks by offset; the files are opened when first read from, and not too many at a time."""

    MOST = 200

    def __init__(self, suffix: str = ".tasks") -> None:
        """Take the suffix of the files to read."""
        self.suffix = suffix
        self.files: dict[Path, int] = {}

    def __enter__(self) -> "TaskReader":
        """Open nothing yet."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close all files."""
        for file in self.files.values():
            os.close(file)

    def read(self, path: Path, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset` of a chunk."""
        if path not in self.files:
            if len(self.files) == self.MOST:
                os.close(self.files.pop(next(iter(self.files))))
            self.files[path] = os.open(path.with_suffix(self.suffix), os.O_RDONLY)
        return os.pread(self.files[path], length, offset)

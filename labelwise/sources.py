"""Read the tasks of a data set from whatever holds them, one by one.

| what | is read as |
|---|---|
| `.jsonl`, `.jsonl.gz`, `.jsonl.zst`, any other file | Prodigy tasks, one a line (see `prodigy`) |
| a Prodigy database (`db:`) | the tasks of the data set of that name, in the order of their ids, which count as lines |
| `.spacy` | Docs, each an accepted task: `doc.spans["gold"]` if there, else `doc.ents`; a merge's with all they carry |
| a folder | brat documents, each an accepted task, by the converter's default policies (see `brat`) |

They are read one by one, but for a `.spacy` file, whose format wants it in memory as a whole.
"""

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple

from backports import zstd

from labelwise.annotation import GOLD, INCORRECT, is_merged, uncovered
from labelwise.brat import NOT_CONVERTED, find_documents, read_document
from labelwise.errors import InputError
from labelwise.prodigy import Task, TaskSpan, parse_task

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it
HEADERS = {
    b"SQLite format 3\0": "this is a database; declare it as `db:`, with the data set's name as `name:`",
    b"\x1f\x8b": "this is compressed by gzip; give its name the ending .gz",
    b"\x28\xb5\x2f\xfd": "this is compressed by zstd; give its name the ending .zst",
    b"\xff\xfe": "this is UTF-16; save it as UTF-8",
    b"\xfe\xff": "this is UTF-16; save it as UTF-8",
}


class Item(NamedTuple):
    """One line, or what counts as one: a task with a text, a problem, or nothing (a blank line).

    line (int): from 1.
    problem (str): why the row, or a span of it, can't be used.
    file (str): where the problem is, if the source is a folder.
    """

    line: int
    task: Task | None
    problem: str = ""
    file: str = ""


def can_be_cut(path: Path) -> bool:
    """Tell whether parts of a file can be read by themselves: those of plain JSONL can."""
    return path.is_file() and path.suffix not in (".gz", ".zst", ".spacy")


def stat_of(path: Path) -> list[tuple[str, int, int, int]]:
    """Tell by name, inode, size and time of change whether what a path names was changed, as DVC does."""
    if path.is_dir():
        found = sorted(Path(folder, name) for folder, _, names in os.walk(path, followlinks=True) for name in names)
    else:
        wal = path.with_name(path.name + "-wal")  # what SQLite hasn't written to the database yet
        found = [path, wal] if wal.exists() and wal.stat().st_size else [path]
    stats = [(str(file), file.stat()) for file in found]
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def read_items(path: Path, dataset: str = "", start: int = 0, end: int | None = None) -> Iterator[Item]:
    """Yield what a file or folder holds.

    dataset (str): the data set's name in a Prodigy database; empty for all else.
    start, end (int): of a file that can be cut: the lines that begin there, counted from there.
    RAISES (InputError): nothing can be read: no database, a schema that isn't Prodigy's, a damaged file.
    """
    try:
        if dataset:
            yield from read_database(path, dataset)
        elif path.is_dir():
            yield from read_brat(path)
        elif path.suffix == ".spacy":
            yield from read_spacy(path)
        else:
            with _open(path) as lines:
                yield from read_jsonl(lines, start, end)
    except sqlite3.OperationalError as error:
        raise InputError(
            f"{path}: the database can't be read now: {error}; end what writes to it, or try again"
        ) from error
    except (EOFError, zlib.error, zstd.ZstdError, gzip.BadGzipFile, sqlite3.DatabaseError) as error:
        raise InputError(f"{path}: it can't be read to its end: {error}; make it again") from error


def _open(path: Path) -> IO[bytes]:
    if path.suffix in (".xz", ".bz2", ".zip", ".7z", ".lz4"):
        raise InputError(f"{path}: this compression isn't known; use .gz or .zst")
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zst":
        return zstd.open(path, "rb")  # type: ignore[return-value]
    with path.open("rb") as file:
        begin = file.read(16)
    for header, remedy in HEADERS.items():
        if begin.startswith(header):
            raise InputError(f"{path}: {remedy}")
    return path.open("rb", buffering=2**20)


def read_jsonl(lines: IO[bytes], start: int = 0, end: int | None = None) -> Iterator[Item]:
    """Yield the rows of Prodigy's JSONL that begin at `start` or behind, before `end`."""
    position = start
    if start:
        # The line that the byte before belongs to is the part before's.
        lines.seek(start - 1)
        position += len(lines.readline()) - 1
    for number, line in enumerate(lines, 1):
        if end is not None and position >= end:
            return
        row = line.removeprefix(BOM) if position == 0 else line
        position += len(line)
        yield Item(number, None) if row.isspace() else Item(number, *parse_task(row))


SCHEMA = {"dataset": {"id", "name"}, "example": {"id", "content"}, "link": {"example_id", "dataset_id"}}


def read_database(path: Path, dataset: str) -> Iterator[Item]:
    """Yield a data set's tasks from Prodigy's SQLite database, in the order of their ids, which count as lines.

    RAISES (InputError): the tables aren't Prodigy's, or have no such data set.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        tables = {
            name: {column[1] for column in connection.execute(f"pragma table_info('{name}')")}
            for (name,) in found
            if name in SCHEMA
        }
        if not all(columns <= tables.get(name, set()) for name, columns in SCHEMA.items()):
            names = ", ".join(name for (name,) in found) or "none"
            raise InputError(
                f"{path}: this isn't Prodigy's schema, which has the tables dataset, example and link; the tables "
                f"found are: {names}; export the data set with `prodigy db-out` and declare the file as `path:`"
            )
        named = connection.execute("select id from dataset where name = ?", (dataset,)).fetchone()
        if named is None:
            names = ", ".join(repr(name) for (name,) in connection.execute("select name from dataset order by name"))
            raise InputError(f"{path}: it has no data set {dataset!r}, but {names or 'none'}; mend its `name`")
        query = (
            "select example.id, example.content from link join example on example.id = link.example_id "
            "where link.dataset_id = ? group by example.id order by example.id"
        )
        for number, content in connection.execute(query, named):
            yield Item(number, *parse_task(content if isinstance(content, bytes | str) else b""))


def read_spacy(path: Path) -> Iterator[Item]:
    """Yield the Docs of a `.spacy` file as tasks; where tokens have the missing value, only what is marked is known."""
    # spaCy is needed for this alone: a process that reads JSONL doesn't load it.
    import spacy
    from spacy.tokens import DocBin

    vocab = spacy.blank("xx").vocab
    try:
        docs = DocBin().from_disk(path)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: spaCy can't read it: {error}; make it again") from error
    for number, doc in enumerate(docs.get_docs(vocab), 1):
        task = Task(doc.text, _doc_spans(doc), view_id="spans_manual")
        if is_merged(doc):
            task.uncovered = dict(uncovered(doc))
        elif any(token.ent_iob == 0 for token in doc):
            task.is_binary = True
        yield Item(number, task) if not doc.text.isspace() and doc.text else Item(number, None, "no text")


def _doc_spans(doc: Any) -> list[TaskSpan]:
    """List the accepted spans of a Doc, with those in characters that a merge kept, and the rejected ones."""
    if is_merged(doc):
        spans = [TaskSpan(*span[:3]) for span in doc.user_data["labelwise"]["gold"]]
    else:
        accepted = doc.spans.get(GOLD, doc.ents)
        spans = [TaskSpan(span.start_char, span.end_char, span.label_) for span in accepted]
    rejected = doc.spans.get(INCORRECT, ())
    return spans + [TaskSpan(span.start_char, span.end_char, span.label_, "reject") for span in rejected]


def read_brat(folder: Path) -> Iterator[Item]:
    """Yield the annotated documents of a folder as tasks, and as a problem each line that gave nothing.

    A document's number among all of the folder counts as its line.
    """
    for number, stem in enumerate(find_documents(folder), 1):
        document = read_document(stem, folder)
        for problem in document.problems:
            # Without a text, the document is the problem, and its lines don't count.
            if document.text is None and problem.line == 0:
                bucket = "not annotated" if problem.reason == "no annotation file" else "malformed"
                yield Item(0, None, f"{bucket}: {problem.reason}", problem.file)
            elif document.text is not None and problem.reason in NOT_CONVERTED:
                yield Item(problem.line, None, f"invalid: {problem.reason}: {problem.row}", problem.file)
        if document.text is not None:
            spans = [TaskSpan(mention.start, mention.end, mention.label) for mention in document.mentions]
            task = Task(
                document.text, spans, view_id="spans_manual", meta={"doc": document.path}, document=document.path
            )
            yield Item(number, task) if not document.text.isspace() else Item(number, None, "no text")

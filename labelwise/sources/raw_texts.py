"""Read texts that nobody has annotated: `.txt` files and JSONL, plain or compressed, by themselves or in folders.

What there is to read is found first, as Pieces: whole files, and lines of plain JSONL, which several processes read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.errors import InputError
from labelwise.sources.files import find_files, printable, read_file
from labelwise.sources.formats import JSONL, can_be_cut, read_items
from labelwise.sources.jsonl import open_jsonl
from labelwise.sources.prodigy import DOCUMENT

TEXTS = (".txt", ".TXT")
SUFFIXES = (*TEXTS, *JSONL.suffixes)


class Piece(NamedTuple):
    """A file, or some lines of one.

    name (str): its path in its folder.
    stamp (tuple[int, ...]): inode, size and time of the file when it was found.
    lines (int): how many texts it has, at most; of a compressed file, that isn't known.
    start, end (int, int | None): the bytes of these lines; None for all that follow.
    before (int): the lines before them.
    """

    file: Path
    name: str
    stamp: tuple[int, ...] = ()
    lines: int = 1
    start: int = 0
    end: int | None = None
    before: int = 0


class RawText(NamedTuple):
    """A text, and where it is from: a file's path in its folder, the name that a task gives, or a file and a line.

    text (str | None): None if it can't be used, for the reason that `problem` says.
    """

    text: str | None
    name: str
    problem: str = ""


def find_pieces(inputs: Sequence[Path], lines: int) -> Iterator[Piece]:
    """Find the pieces of files and folders, of plain JSONL with so many lines.

    RAISES (InputError): an input isn't there, or can't be read.
    """
    for path in inputs:
        if not path.exists():
            raise InputError(f"{printable(path)}: there is no such file or folder")
        for file in find_files(path, SUFFIXES) if path.is_dir() else [path]:
            name = printable(file.relative_to(path) if path.is_dir() else Path(path.name))
            whole = Piece(file.absolute(), name, _stamp(file), 1 if name.endswith(TEXTS) else lines)
            if name.endswith(TEXTS) or not can_be_cut(file):
                yield whole
            else:
                yield from _cut(whole)


def _cut(whole: Piece) -> Iterator[Piece]:
    """Cut plain JSONL after each `lines` lines of a piece."""
    start = end = before = count = 0
    with open_jsonl(whole.file) as lines:
        for line in lines:
            if count >= whole.lines:
                yield whole._replace(lines=count, start=start, end=end, before=before)
                start, before, count = end, before + count, 0
            end += len(line)
            count += len(line.splitlines()) if b"\r" in line else 1
    if count:
        yield whole._replace(lines=count, start=start, before=before)


def _stamp(file: Path) -> tuple[int, ...]:
    """Tell a file from a changed one; nothing of one that isn't there, as of a link to nothing."""
    if not file.exists():
        return ()
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_piece(piece: Piece) -> Iterator[RawText]:
    """Yield the texts of a piece, one by one.

    RAISES (InputError): the file has changed, or can't be read.
    """
    file, name = piece.file, piece.name
    if _stamp(file) != piece.stamp:
        raise InputError(f"{printable(file)}: the file changed while it was read; run this again")
    if name.endswith(TEXTS):
        yield _read_text(file, name)
        return
    for item in read_items(file, start=piece.start, end=piece.end):
        line = piece.before + item.line
        if item.task is not None:
            meta = item.task.meta if isinstance(item.task.meta, dict) else {}
            yield RawText(item.task.text, str(meta.get(DOCUMENT) or f"{name}:{line}"))
        elif item.problem:
            yield RawText(None, f"{name}:{line}", item.problem)


def _read_text(file: Path, name: str) -> RawText:
    try:
        text = read_file(file).decode("utf8")
    except UnicodeDecodeError:
        return RawText(None, name, "not UTF-8")
    except InputError as error:
        return RawText(None, name, str(error))
    return RawText(text, name) if text.strip() else RawText(None, name, "no text")

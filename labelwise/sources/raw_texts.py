"""Read texts that nobody has annotated: `.txt` files and JSONL, plain or compressed, by themselves or in folders.

What there is to read is found first, as Pieces: whole files, and lines of JSONL, which several processes read.
"""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backports import zstd

from labelwise.errors import InputError
from labelwise.sources.files import find_files, printable, read_file
from labelwise.sources.formats import is_jsonl, read_items, refuse_damaged
from labelwise.sources.jsonl import UNREADABLE, cut_jsonl
from labelwise.sources.prodigy import DOCUMENT

TEXTS = (".txt", ".txt.gz", ".txt.zst", ".TXT")
SUFFIXES = (*TEXTS, ".jsonl", ".jsonl.gz", ".jsonl.zst")
DECOMPRESS = {".gz": gzip.decompress, ".zst": zstd.decompress}


class Piece(NamedTuple):
    """A file, or some lines of one.

    name (str): its path in its folder.
    stamp (tuple[int, ...]): inode, size and time of the file when it was found.
    lines (int): how many texts it has, at most.
    start, end (int, int | None): the bytes of these lines, of what isn't compressed any more; None for a whole file.
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
    """Find the pieces of files and folders, of JSONL with at most so many lines.

    RAISES (InputError): an input isn't there, or can't be read.
    """
    for path in inputs:
        if path.is_dir():
            for file in find_files(path, SUFFIXES):
                yield from _cut(file, printable(file.relative_to(path)), lines)
        elif not path.is_file():
            raise InputError(f"{printable(path)}: there is no such file or folder")
        else:
            yield from _cut(path, printable(Path(path.name)), lines)


def _cut(file: Path, name: str, lines: int) -> Iterator[Piece]:
    """Cut a file into pieces, if it is JSONL."""
    whole = Piece(file.absolute(), name, _stamp(file))
    if file.name.endswith(TEXTS):
        yield whole
    elif is_jsonl(file):
        with refuse_damaged(file):
            for start, end, before, count in cut_jsonl(file, lines):
                yield whole._replace(lines=count, start=start, end=end, before=before)
    else:
        yield whole._replace(lines=lines)


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
        yield _read_text(file, name.removesuffix(".gz").removesuffix(".zst"))
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
        text = DECOMPRESS.get(file.suffix, bytes)(read_file(file)).decode("utf8")
    except UnicodeDecodeError:
        return RawText(None, name, "not UTF-8")
    except InputError as error:
        return RawText(None, name, str(error))
    except UNREADABLE as error:
        return RawText(None, name, f"damaged: {error}")
    return RawText(text, name) if text.strip() else RawText(None, name, "no text")

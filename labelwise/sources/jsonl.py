"""Read JSONL, plain or compressed: a task per line, each by its own keys (see `rows`)."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec
from backports import zstd

from labelwise.errors import InputError
from labelwise.sources.items import Item, miscounted
from labelwise.sources.rows import Shape, parse_row, shape_of
from labelwise.text import DECODE_ERRORS

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it
LONGEST = 2**24  # bytes that a row may have by which the format of those that say nothing is decided
DECIDING = 50  # rows that are looked at for that
COMPRESSED = (".gz", ".zst")
_HELD: dict[tuple[Path, int], IO[bytes]] = {}
UNREADABLE = (OSError, EOFError, zlib.error, zstd.ZstdError)
HEADERS = {
    b"SQLite format 3\0": "this is a database; declare it as `db:`, with the data set's name as `name:`",
    b"\x1f\x8b": "this is compressed with gzip; give its name the suffix .gz",
    b"\x28\xb5\x2f\xfd": "this is compressed with zstd; give its name the suffix .zst",
    b"\xff\xfe": "this is UTF-16; save it as UTF-8",
    b"\xfe\xff": "this is UTF-16; save it as UTF-8",
    b"{\0": "this is UTF-16; save it as UTF-8",
    b"\0{": "this is UTF-16; save it as UTF-8",
}


def read_jsonl_file(path: Path, start: int = 0, end: int | None = None) -> Iterator[Item]:
    """Yield the rows of a file, or those that begin at `start` or after it, before `end`, as it is decompressed.

    RAISES (InputError): it isn't JSONL, but a database, or compressed in a way that its name doesn't tell.
    """
    with nullcontext(_hold(path, start)) if end is not None and path.suffix in COMPRESSED else _open(path) as lines:
        yield from read_jsonl(lines, start, end, _first_shape(path))


def cut_jsonl(path: Path, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a file after each `most` lines or a few more: yield the bytes of each part, and its lines and those before.

    RAISES (InputError): see `read_jsonl_file`.
    """
    start = end = before = count = 0
    with _open(path) as lines:
        for line in lines:
            if count >= most:
                yield start, end, before, count
                start, before, count = end, before + count, 0
            end += len(line)
            count += len(line.splitlines()) if b"\r" in line else 1
    if count:
        yield start, end, before, count


def _hold(path: Path, start: int) -> IO[bytes]:
    """Open a compressed file, or take it where this process left it: to come to a place, all before it is read."""
    held = path, os.getpid()  # a forked process would move this one's
    if held not in _HELD:
        for lines in _HELD.values():
            lines.close()
        _HELD.clear()
        _HELD[held] = BufferedReader(_open(path), 2**20)  # type: ignore[type-var]
    if not start:
        _HELD[held].seek(0)
    return _HELD[held]


def _first_shape(path: Path) -> Shape:
    """Find the format of the first row of a file, among the first ones, whose keys say what it is."""
    return next(filter(None, map(shape_of, _first_rows(path))), "prodigy")


def _first_rows(path: Path) -> Iterator[Any]:
    """Decode the first rows of a file, but for blank ones, as long as they are JSON."""
    try:
        with _open(path) as lines:
            rows = (line.strip(BOM).strip() for line in iter(lambda: lines.readline(LONGEST), b""))
            for row in islice(filter(None, rows), DECIDING):
                yield msgspec.json.decode(row)
    except (InputError, *DECODE_ERRORS, *UNREADABLE):
        return


def read_jsonl(lines: IO[bytes], start: int = 0, end: int | None = None, unsaid: Shape = "prodigy") -> Iterator[Item]:
    """Yield the rows of JSONL that begin at `start` or after it, before `end`.

    unsaid (Shape): see `parse_row`.
    """
    position = start
    if start:
        # The line that the byte before belongs to is the previous slice's.
        lines.seek(start - 1)
        position += len(lines.readline()) - 1
    number = 0
    ahead = 0  # bytes that were read and are the next slice's
    for line in lines:
        if end is not None and position >= end:
            ahead = len(line)
            break
        # As Prodigy reads it, CR alone ends a line, too; JSON has none in its strings. Here, all that LF ends is cut as
        # one, so such rows are the slice's that the first of them is in.
        for row in line.splitlines() if b"\r" in line else (line,):
            number += 1
            content = row.removeprefix(BOM) if position == 0 and number == 1 else row
            yield Item(number, None) if not content or content.isspace() else Item(number, *parse_row(content, unsaid))
        position += len(line)
    if (there := lines.tell() - ahead) != position:
        yield miscounted(number, there - start, "bytes", position - start)


def _open(path: Path) -> IO[bytes]:
    if path.suffix in (".xz", ".bz2", ".zip", ".7z", ".lz4"):
        raise InputError(f"{path}: this compression isn't supported; use .gz or .zst")
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

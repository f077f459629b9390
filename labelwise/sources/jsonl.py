"""Read JSONL, plain or compressed by gzip: a task per line, each by its own keys (see `rows`)."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from labelwise.base.errors import InputError
from labelwise.sources.items import Item, miscounted
from labelwise.sources.rows import parse_row

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it
HEADERS = {
    b"SQLite format 3\0": "this is a database; declare it as `db:`, with the data set's name as `name:`",
    b"\x1f\x8b": "this is compressed with gzip; give its name the suffix .gz",
    b"\x28\xb5\x2f\xfd": "this is compressed with zstd; decompress it, or use gzip",
    b"PK\3\4": "this is a ZIP file; unpack it",
    b"\xff\xfe": "this is UTF-16; save it as UTF-8",
    b"\xfe\xff": "this is UTF-16; save it as UTF-8",
}


def read_jsonl_file(path: Path) -> Iterator[Item]:
    """Yield the rows of a file.

    RAISES (InputError): it isn't JSONL, but a database, or compressed in a way that its name doesn't tell.
    """
    with open_jsonl(path) as lines:
        yield from read_jsonl(lines)


def read_jsonl(lines: IO[bytes]) -> Iterator[Item]:
    """Yield the rows of JSONL."""
    position = number = 0
    for line in lines:
        # As Prodigy reads it, CR alone ends a line, too; JSON has none in its strings.
        for row in line.splitlines() if b"\r" in line else (line,):
            number += 1
            content = row.removeprefix(BOM) if position == 0 and number == 1 else row
            yield Item(number, None) if not content or content.isspace() else Item(number, *parse_row(content))
        position += len(line)
    if (there := lines.tell()) != position:
        yield miscounted(number, there, "bytes", position)


def open_jsonl(path: Path) -> IO[bytes]:
    """Open a file, which is decompressed as it is read.

    RAISES (InputError): see `read_jsonl_file`.
    """
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    with path.open("rb") as file:
        begin = file.read(16)
    for header, remedy in HEADERS.items():
        if begin.startswith(header):
            raise InputError(f"{path}: {remedy}")
    return path.open("rb", buffering=2**20)

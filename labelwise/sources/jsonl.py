"""Read JSONL, plain or compressed by gzip: a row per line, each by its own keys (see `keys`).

A row whose keys contradict one another is of no format that can be known: it is counted as `other format`.
"""

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from labelwise.annotations import Found, Problem, Reason, miscounted
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.sources.doccano import parse_doccano
from labelwise.sources.json_text import BOM, find_repeated
from labelwise.sources.keys import find_contradiction, shape_of
from labelwise.sources.prodigy import ProdigyRow, parse_prodigy, task_of
from labelwise.sources.tagged_rows import parse_tagged

HEADERS = {
    b"SQLite format 3\0": "this is a database; declare it as `db:`, with the data set's name as `name:`",
    b"\x1f\x8b": "this is compressed with gzip; give its name the suffix .gz",
    b"\x28\xb5\x2f\xfd": "this is compressed with zstd; decompress it, or use gzip",
    b"PK\3\4": "this is a ZIP file; unpack it",
    b"\xff\xfe": "this is UTF-16; save it as UTF-8",
    b"\xfe\xff": "this is UTF-16; save it as UTF-8",
}
TOKENS_END = re.compile(rb'\}\],"[A-Za-z_]')


def read_jsonl_file(path: Path) -> Iterator[Found]:
    """Yield the rows of a file.

    RAISES (InputError): it isn't JSONL, but a database, or compressed in a way that its name doesn't tell.
    """
    with open_jsonl(path) as lines:
        yield from read_jsonl(lines)


def read_jsonl(lines: IO[bytes]) -> Iterator[Found]:
    """Yield the rows of JSONL."""
    position = number = 0
    for line in lines:
        # As Prodigy reads it, CR alone ends a line, too; JSON has none in its strings.
        for row in line.splitlines() if b"\r" in line else (line,):
            number += 1
            content = row.removeprefix(BOM) if position == 0 and number == 1 else row
            if content and not content.isspace():
                yield from parse_row(number, content)
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


class _Row(ProdigyRow, gc=False):
    """A row with the keys of other formats' annotation; False, which no row has, where one is absent."""

    label: Any = False
    labels: Any = False
    entities: Any = False
    annotations: Any = False
    ner_tags: Any = False
    ner: Any = False
    tags: Any = False

    def is_plain(self) -> bool:
        """Tell whether all of them are absent."""
        one_value = self.label is self.labels is self.entities is self.annotations is self.ner_tags is self.ner
        return one_value and self.ner is self.tags is False


_decode = msgspec.json.Decoder(_Row).decode


def parse_row(line: int, row: bytes) -> Sequence[Found]:
    """Decode a row: its task, or why it can't be used, or both."""
    short = without_tokens(row)
    if _may_repeat(short) and (key := find_repeated(row)):
        return (_repeated(line, key),)
    # Nearly all rows have Prodigy's keys alone, and are decoded once, without their tokens.
    try:
        if (prodigys := _decode(short)).is_plain():
            return (task_of(line, prodigys),)
    except msgspec.ValidationError:
        pass
    except DECODE_ERRORS:
        return (Problem(line, Reason.BAD_JSON),)
    # Others are decoded once more, with all that they have.
    try:
        content = msgspec.json.decode(row)
    except DECODE_ERRORS:
        return (Problem(line, Reason.BAD_JSON),)
    if key := find_repeated(row):
        return (_repeated(line, key),)
    if contradiction := find_contradiction(content):
        return (Problem(line, Reason.OTHER_FORMAT, contradiction),)
    shape = shape_of(content)
    if shape == "tags":
        return parse_tagged(line, content)
    return parse_doccano(line, content) if shape == "doccano" else (parse_prodigy(line, row),)


def without_tokens(row: bytes) -> bytes:
    """Cut the tokens, nine tenths of a row, out of one that is written as Prodigy does it.

    They have no list inside, and `]` ends them: were it a part of a string, the quote behind it would end that, and no
    letter could follow.
    """
    start = row.find(b',"tokens":[{')
    end = row.find(b"]", start)
    if start > 0 and TOKENS_END.match(row, end - 1) and row.find(b"[", start + len(b',"tokens":['), end) < 0:
        return row[:start] + row[end + 1 :]
    return row


def _may_repeat(row: bytes) -> bool:
    """Tell whether a row without its tokens may have a key twice."""
    return b'"tokens"' not in row and (
        row.count(b'"text"') > 1 or row.count(b'"spans"') > 1 or row.count(b'"answer"') > 1
    )


def _repeated(line: int, key: str) -> Problem:
    return Problem(line, Reason.MALFORMED, f"{key!r} is there twice; write it once")

"""Read rows of JSON, each by its own keys (see `keys`): JSONL, plain or compressed by gzip, and arrays.

A row is counted as `other format` if its keys contradict one another, or if its spans are under an unknown key.
"""

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from labelwise.annotations import Found, Problem, Reason, miscounted
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS
from labelwise.sources.doccano import choose_offsets, is_doccanos, parse_doccano
from labelwise.sources.json_text import BOM, find_repeated, read_elements, why_not_json
from labelwise.sources.keys import TAGS, TOKENS, find_contradiction, first_of, marked_lists, no_text, shape_of
from labelwise.sources.label_studio import is_label_studios, read_element
from labelwise.sources.other_rows import name_other, rewrite
from labelwise.sources.prodigy import ProdigyRow, parse_prodigy, task_of
from labelwise.sources.tagged_rows import named_task

HEADERS = {
    b"SQLite format 3\0": "this is a database; declare it as `db:`, with the data set's name as `name:`",
    b"\x1f\x8b": "this is compressed with gzip; give its name the suffix .gz",
    b"\x28\xb5\x2f\xfd": "this is compressed with zstd; decompress it, or use gzip",
    b"PK\3\4": "this is a ZIP file; unpack it",
    b"\xff\xfe": "this is UTF-16; save it as UTF-8",
    b"\xfe\xff": "this is UTF-16; save it as UTF-8",
}
KEY = re.compile(rb'"([A-Za-z_%]+)"\s*:')
TOKENS_END = re.compile(rb'\}\],"[A-Za-z_]')


class How(NamedTuple):
    """The options of a reader of rows.

    offsets (str): the declared reading of offsets.
    doccanos (str): that of doccano's rows, declared or guessed.
    key (str): that of Label Studio's texts.
    array (bool): the rows are elements of an array; Label Studio's may lack its keys.
    """

    offsets: str = ""
    doccanos: str = ""
    key: str = ""
    array: bool = False


LINES = How()


def read_rows(path: Path, key: str = "", offsets: str = "") -> Iterator[Found]:
    """Yield the rows of JSONL, or the elements of an array, whose numbers count as lines.

    key (str): see `label_studio.read_element`.
    offsets (str): see `clean`; empty for code points, or for a guess from doccano's rows.
    RAISES (InputError): see `open_jsonl` and `is_array`.
    """
    how = How(offsets, offsets or guess_offsets(path), key, is_array(path))
    if how.array:
        for number, raw in enumerate(read_elements(path), 1):
            yield from parse_row(number, raw, how)
        return
    with open_jsonl(path) as lines:
        yield from read_jsonl(lines, how)


def is_array(path: Path) -> bool:
    """Return whether a file is an array, rather than JSONL whose rows are arrays.

    RAISES (InputError): it is one object.
    """
    with open_jsonl(path) as file:
        begin = file.read(2**16).removeprefix(BOM).lstrip()
    if begin.startswith(b"{") and not begin.split(b"\n", 1)[0][1:].strip():
        keys: dict[str, Any] = {key.decode(): [] for key in KEY.findall(begin)}
        why = name_other(keys) or "write an array of tasks, or JSONL, a row per line"
        raise InputError(f"{path}: it is one JSON object; {why}")
    return begin.startswith(b"[") and (path.suffix == ".json" or begin[1:].lstrip()[:1] in (b"[", b"{"))


def guess_offsets(path: Path) -> str:
    """Guess the reading of doccano's offsets; empty if the first row with spans isn't doccano's, or if all agree."""
    if is_array(path):
        return choose_offsets(_doccanos(read_elements(path)))
    with open_jsonl(path) as lines:
        return choose_offsets(_doccanos(lines))


def _doccanos(rows: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield doccano's rows that have other characters than ASCII, if the first row with spans is doccano's."""
    known = False
    for raw in rows:
        if known and raw.isascii() and b"\\u" not in raw:
            continue
        with suppress(*DECODE_ERRORS):
            row = msgspec.json.decode(raw.removeprefix(BOM))
            if shape_of(row) == "doccano" and is_doccanos(row):
                known = True
                yield row
            elif not known and (shape_of(row) != "doccano" or any(marked_lists(row) or ())):
                return


def read_jsonl(lines: IO[bytes], how: How = LINES) -> Iterator[Found]:
    """Yield the rows of JSONL."""
    position = number = 0
    for line in lines:
        # As in Prodigy, CR alone ends a line, too; JSON's strings have none.
        for row in line.splitlines() if b"\r" in line else (line,):
            number += 1
            content = row.removeprefix(BOM) if position == 0 and number == 1 else row
            if content and not content.isspace():
                yield from parse_row(number, content, how)
        position += len(line)
    if (there := lines.tell()) != position:
        yield miscounted(number, there, "bytes", position)


def open_jsonl(path: Path) -> IO[bytes]:
    """Open a file, which is decompressed as it is read.

    RAISES (InputError): it is a database, or its name hides that it is compressed.
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
    """A row with the keys of other formats' annotation; an absent one is False, which no row has."""

    label: Any = False
    labels: Any = False
    entities: Any = False
    annotations: Any = False
    ner_tags: Any = False
    ner: Any = False
    tags: Any = False

    def is_plain(self) -> bool:
        """Return whether all of them are absent."""
        one_value = self.label is self.labels is self.entities is self.annotations is self.ner_tags is self.ner
        return one_value and self.ner is self.tags is False


_decode = msgspec.json.Decoder(_Row).decode


def parse_row(line: int, row: bytes, how: How = LINES) -> Iterable[Found]:
    """Decode a row to its tasks and problems."""
    short = without_tokens(row)
    lists = short.count(b"[") > (b'"spans":[]' in short)  # there may be lists other than an empty one of spans
    if _may_repeat(short) and (key := find_repeated(row)):
        return (_repeated(line, key),)
    try:
        # Nearly all rows have Prodigy's keys alone, and are decoded once, without their tokens.
        with suppress(msgspec.ValidationError):
            prodigys = None if how.array else _decode(short)
            if prodigys and prodigys.problem:
                return (prodigys.problem,)
            if prodigys and prodigys.is_plain() and prodigys.text and (prodigys.spans or not lists):
                return (task_of(line, prodigys, how.offsets),)
        # Others are decoded again, with all of their keys.
        content = rewrite(msgspec.json.decode(row))
    except DECODE_ERRORS:
        return (Problem(line, Reason.BAD_JSON, why_not_json(row)),)
    if key := find_repeated(row):
        return (_repeated(line, key),)
    if not isinstance(content, dict):
        return (Problem(line, Reason.MALFORMED, f"a task is an object, not {type(content).__name__}"),)
    shape = shape_of(content)
    if shape != "prodigy" and is_label_studios(content):
        return read_element(line, content, how.key, how.offsets)
    if other := find_contradiction(content) or name_other(content):
        return (Problem(line, Reason.OTHER_FORMAT, other),)
    if shape == "tags":
        return named_task(line, first_of(content, TOKENS), first_of(content, TAGS), ())
    if shape == "doccano":
        return parse_doccano(line, content, how.doccanos if is_doccanos(content) else how.offsets)
    if how.array and shape is None:
        return read_element(line, content, how.key, how.offsets)
    if not content.get("text"):
        return (no_text(line, content),)
    return (parse_prodigy(line, msgspec.json.encode(content), how.offsets),)


def without_tokens(row: bytes) -> bytes:
    """Cut the tokens, nine tenths of a row, out of one that Prodigy has written.

    They have no list inside, and end with `]`: if that were part of a string, no letter could follow the quote behind
    it.
    """
    start = row.find(b',"tokens":[{')
    end = row.find(b"]", start)
    if start > 0 and TOKENS_END.match(row, end - 1) and row.find(b"[", start + len(b',"tokens":['), end) < 0:
        return row[:start] + row[end + 1 :]
    return row


def _may_repeat(row: bytes) -> bool:
    """Return whether a row without its tokens may have a key twice."""
    return b'"tokens"' not in row and (
        row.count(b'"text"') > 1 or row.count(b'"spans"') > 1 or row.count(b'"answer"') > 1
    )


def _repeated(line: int, key: str) -> Problem:
    return Problem(line, Reason.MALFORMED, f"{key!r} is there twice; write it once")

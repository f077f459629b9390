"""Read rows of JSON, each by its keys (see `shapes`): JSONL, also gzipped, and arrays.

A file is read twice if its tool may count offsets in several ways.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from labelwise.annotations import Item, Problem, Reason, UnreadRow, incomplete_read
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, is_integer
from labelwise.sources.clean import strings_of
from labelwise.sources.foreign import name_keys
from labelwise.sources.json_text import BOM, find_repeated, open_json, read_elements, why_not_json, without_nan
from labelwise.sources.offsets import READINGS, choose_counted
from labelwise.sources.prodigy_row import Converted, ProdigyRow, task_of, tasks_of
from labelwise.sources.shapes import (
    TEXTS,
    How,
    convert_row,
    counts_in_several_ways,
    first_of,
    has_usual_keys,
    marked_lists,
    read_doccano,
    rewrite,
    shape_of,
    tags_of,
)
from labelwise.sources.tags import Scheme, find_scheme

HEAD = 2**16  # bytes that show whether a file is an array
KEY = re.compile(rb'"([A-Za-z_%]+)"\s*:')
# An object with a list after numbers and strings.
LIST = re.compile(rb'\{(?:\s*"\w+"\s*:\s*(?:"[^"]*"|[\w.-]+)\s*,)*\s*"(\w+)"\s*:\s*\[')
PRODIGYS = re.compile(rb'"(?:text|spans|answer)"')
SEVERAL = re.compile(rb"\n\}\s*\{")  # an object ends, and another one begins
TOKENS_END = re.compile(rb'\}\],"[A-Za-z_]')
LINES = How()


def read_rows(path: Path, key: str = "", offsets: str = "") -> Iterator[Item]:
    """Yield the rows of JSONL, or the elements of an array, numbered like lines.

    offsets (str): see `clean`; "" for code points, or as the rows show.
    RAISES (InputError): if it is one object, or an incomplete array; or see `open_json`.
    """
    with open_json(path) as file:
        array = is_array(path, file.read(HEAD))

        def rows() -> Iterable[bytes]:
            file.seek(0)
            return read_elements(path, file) if array else file

        inclusive = offsets == "inclusive"
        counted = choose_counted(_counted_in_several_ways(rows(), inclusive)) if inclusive or not offsets else ""
        both = f"{counted}-{offsets}"  # a declared end doesn't say how the tool counts
        shown = both if both in READINGS else offsets or counted
        how = How(offsets, shown, key, array, _find_scheme(rows()))
        if array:
            for number, raw in enumerate(rows(), 1):
                yield from parse_row(number, raw, how)
        else:
            file.seek(0)
            yield from _read_lines(file, how)


def is_array(path: Path, head: bytes) -> bool:
    """Return whether a file is an array, and not JSONL with arrays as rows; refuse one object."""
    begin = head.removeprefix(BOM).lstrip()
    if begin.startswith(b"{") and not begin.split(b"\n", 1)[0][1:].strip():
        why = "it is one JSON object; write an array of tasks, or JSONL, a row per line: jq -c ."
        if SEVERAL.search(begin):
            why = "its JSON objects have several lines; write each on a line of its own: jq -c ."
        elif first := LIST.match(begin):
            why = (
                f"it is one JSON object; write its list `{first[1].decode()}` alone to a file: jq .{first[1].decode()}"
            )
        known = name_keys(key.decode() for key in KEY.findall(begin))
        raise InputError(f"{path}: {known or why}")
    return begin.startswith(b"[") and (path.suffix == ".json" or begin[1:].lstrip()[:1] in (b"[", b"{"))


def _counted_in_several_ways(rows: Iterable[bytes], inclusive: bool) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield non-ASCII texts with offsets, ends exclusive; none if the first spans' tool counts in one way."""
    known = False
    for raw in rows:
        if known and raw.isascii() and b"\\u" not in raw:
            continue
        with suppress(*DECODE_ERRORS):
            row = msgspec.json.decode(raw.removeprefix(BOM))
            doccanos = isinstance(row, dict) and shape_of(row) == "doccano"
            if doccanos and counts_in_several_ways(row):
                known = True
                if isinstance(converted := read_doccano(0, row, LINES), Converted):
                    spans = [(span.start, span.end) for span in converted.row.spans or ()]
                    whole = [span for span in spans if all(map(is_integer, span))]
                    yield converted.row.text or "", [(start, end + inclusive) for start, end in whole]
            elif not known and (not doccanos or any(marked_lists(row) or ())):
                return


def _find_scheme(rows: Iterable[bytes]) -> Scheme | None:
    """Find the notation of the rows' tags; None if the first row has no tags."""
    tags: Counter[str] = Counter()
    for raw in rows:
        with suppress(*DECODE_ERRORS):
            row = rewrite(msgspec.json.decode(raw.removeprefix(BOM)))
            row_tags = tags_of(row) if isinstance(row, dict) and shape_of(row) == "tags" else None
            if row_tags is None and not tags:
                return None
            tags.update(tag for tag in row_tags or () if isinstance(tag, str))
    return find_scheme(tags) if tags else None


def _read_lines(file: IO[bytes], how: How) -> Iterator[Item]:
    position = number = 0
    for line in file:
        # As in Prodigy, CR alone ends a line, too; JSON's strings have none.
        for row in line.splitlines() if b"\r" in line else (line,):
            number += 1
            content = row.removeprefix(BOM)  # joined files may each begin with one
            if content and not content.isspace():
                yield from parse_row(number, content, how)
        position += len(line)
    if (size := file.tell()) != position:
        yield incomplete_read(number, size, "bytes", position)


class _Row(ProdigyRow, gc=False):
    """A row with the keys of other tools; absent keys are False, which no row has."""

    labels: Any = False
    entities: Any = False
    annotations: Any = False
    ner_tags: Any = False
    ner: Any = False
    tags: Any = False

    def is_plain(self) -> bool:
        one_value = self.label is self.labels is self.entities is self.annotations is self.ner_tags is self.ner
        return one_value and self.ner is self.tags is False


_decode = msgspec.json.Decoder(_Row).decode


def parse_row(line: int, row: bytes, how: How = LINES) -> Iterable[Item]:
    """Decode a row to its tasks and problems."""
    short = without_tokens(row)
    repeated = find_repeated(row) if _may_repeat(short) else ""
    try:
        # Nearly all rows have Prodigy's keys alone, once each, and are decoded once, without their tokens.
        with suppress(msgspec.ValidationError):
            prodigys = None if how.array or repeated else _decode(short)
            if prodigys and prodigys.problem:
                return (prodigys.problem,)
            if (
                prodigys
                and prodigys.is_plain()
                and prodigys.text
                and (prodigys.spans or not _may_list(short))
                and (not prodigys.spans or has_usual_keys(prodigys.spans[0].start, prodigys.spans[0].label))
                and (prodigys.spans is not None or b"B-" not in short)  # there may be tags in a string
            ):
                return (task_of(line, prodigys, how.offsets),)
        # Others are decoded again, with all of their keys.
        content = msgspec.json.decode(row)
    except DECODE_ERRORS:
        finite = without_nan(row)
        return parse_row(line, finite, how) if finite != row else (Problem(line, Reason.BAD_JSON, why_not_json(row)),)
    if key := repeated or find_repeated(row):
        return (Problem(line, Reason.MALFORMED, f"{key!r} is there twice; write it once"),)
    items = [*tasks_of(line, convert_row(line, content, how))]
    text = first_of(content, TEXTS) if isinstance(content, dict) else None
    match items:
        case [Problem() as problem] if isinstance(text, str) and text.strip():
            return (UnreadRow(line, problem.reason, problem.detail, text=text, meta=strings_of(content.get("meta"))),)
    return items


def without_tokens(row: bytes) -> bytes:
    """Remove the tokens, nine tenths of a row by Prodigy.

    They have no list inside, and end with `]`. Inside a string, no letter could follow the quote after it.
    """
    start = row.find(b',"tokens":[{')
    end = row.find(b"]", start)
    if start > 0 and TOKENS_END.match(row, end - 1) and row.find(b"[", start + len(b',"tokens":['), end) < 0:
        return row[:start] + row[end + 1 :]
    return row


def _may_list(row: bytes) -> bool:
    """Return whether a row may have other lists than an empty one of spans."""
    return row.count(b"[") > (b'"spans":[]' in row)


def _may_repeat(row: bytes) -> bool:
    keys = PRODIGYS.findall(row)
    return len({*keys}) < len(keys) and b'"tokens"' not in row

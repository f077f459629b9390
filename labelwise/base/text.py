"""Texts and character spans: keys, trimming, overlaps; counts in words.

A key is the digest of a text's bytes: tasks are merged, and Docs sorted, by it. Texts that differ only in white space
or Unicode composition are one text, with the key of the first.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeGuard, TypeVar

import msgspec

from labelwise.base.errors import InputError

SpanKey = tuple[int, int, str]  # start and end, label
Kind = TypeVar("Kind")
Ranged = TypeVar("Ranged", bound=tuple[Any, ...])  # start and end come first
State = Literal["partial", "none"]  # of a label that a text isn't complete for
# msgspec's errors for JSON: other exceptions for bytes that aren't UTF-8, and for deep nesting.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
KEY_BYTES = 12
MAX_CONTEXT_CHARS = 200  # characters of a sentence on either side of a span
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*\n\s*")


def text_key(text: str) -> bytes:
    """Digest a text. 95 bits vary: two of a million texts share a key with a chance of 1 in 10^17."""
    return bytes_key(text.encode("utf8", "surrogatepass"))


def bytes_key(text: bytes) -> bytes:
    """Digest a text in UTF-8; see `text_key`."""
    digest = hashlib.blake2b(text, digest_size=KEY_BYTES).digest()
    return digest[:-1] + bytes([digest[-1] | 1])


def form_of(text: str) -> str:
    """Normalize a text: NFC, white space to single spaces, stripped.

    >>> form_of("  New  York ")
    'New York'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip white space from a span's edges; an all-white-space span becomes empty."""
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return start, end
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is an int and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def overlapping_groups(one: Iterable[Ranged], other: Iterable[Ranged]) -> Iterator[tuple[list[Ranged], list[Ranged]]]:
    """Yield (one, other) for each stretch of a text whose borders no span crosses, sorted."""
    group: tuple[list[Ranged], list[Ranged]] = ([], [])
    end = 0
    for span, side in sorted([*((span, 0) for span in one), *((span, 1) for span in other)]):
        if span[0] >= end and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        end = max(end, span[1])
    if any(group):
        yield group


def evaluable(spans: Iterable[SpanKey], judged: Iterable[SpanKey], uncovered: Mapping[str, str]) -> set[SpanKey]:
    """Keep spans that can be scored: of fully annotated labels, or accepted or rejected one by one.

    judged (Iterable): spans that annotators accepted or rejected.
    uncovered (Mapping[str, str]): labels that aren't fully annotated: "partial" or "none".
    """
    if not uncovered:
        return set(spans)
    known = {span for span in judged if uncovered.get(span[2]) == "partial"}
    return {span for span in spans if span[2] not in uncovered or span in known}


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    r"""Return start and end of a span's sentence, which may have line breaks; at most MAX_CONTEXT_CHARS away.

    >>> sentence_around("Stop. Add 5\nml now! Go", 10, 14)
    (6, 19)
    """
    least = max(0, start - MAX_CONTEXT_CHARS)
    ends = [match.end() for match in SENTENCE_END.finditer(text, least, start)]
    behind = SENTENCE_END.search(text, end, end + MAX_CONTEXT_CHARS)
    return ends[-1] if ends else least, behind.start() if behind else min(len(text), end + MAX_CONTEXT_CHARS)


def counter_field() -> Any:
    """Return a Struct field whose default is an empty Counter."""
    return msgspec.field(default_factory=Counter)


def encode_json(content: Any, indent: int = 2) -> bytes:
    """Encode JSON, indented, with a line end behind it."""
    return msgspec.json.format(msgspec.json.encode(content), indent=indent) + b"\n"


def decode_json(content: bytes, kind: type[Kind], problem: str, remedy: str) -> Kind:
    """Decode JSON, and maps to Counters where `kind` has those.

    problem (str): for the error: the file, and what it isn't.
    RAISES (InputError): if the content isn't JSON, or has another form.
    """
    try:
        return msgspec.json.decode(content, type=kind, dec_hook=lambda custom, value: custom(value))
    except DECODE_ERRORS as error:
        raise InputError(f"{problem} ({error}); {remedy}") from error


def times(count: int) -> str:
    """Format a count: "once", "3 times"."""
    return "once" if count == 1 else counted(count, "time")


def describe_seconds(seconds: float) -> str:
    """Format a duration, rounded.

    >>> describe_seconds(3), describe_seconds(44), describe_seconds(89), describe_seconds(100)
    ('5 seconds', '45 seconds', '90 seconds', '2 minutes')
    >>> describe_seconds(5000), describe_seconds(6000), describe_seconds(200_000)
    ('83 minutes', '2 hours', '56 hours')
    """
    if seconds < 92.5:
        return counted(max(5, 5 * round(seconds / 5)), "second")
    return counted(round(seconds / 60), "minute") if seconds < 90 * 60 else counted(round(seconds / 3600), "hour")


def name_counts(counts: Counter[Any], most: int | None = None) -> str:
    """Format counts, the most frequent first.

    >>> name_counts(Counter(LOC=3, PER=1200))
    'PER (1,200), LOC (3)'
    """
    return ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(most))


def figure(value: float | None, form: str = ".3f", none: str = "") -> str:
    """Format a score; `none` for None.

    >>> figure(0.76923), figure(0.5, "+.2f"), figure(None, none="–")
    ('0.769', '+0.50', '–')
    """
    return none if value is None else format(value, form)


def place(file: str, line: int) -> str:
    """Format the place of a line; 0 is the whole file.

    >>> place("a.ann", 3), place("a.txt", 0)
    ('a.ann, line 3', 'a.txt')
    """
    return f"{file}, line {line}" if line else file


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Format a number with its noun.

    >>> counted(1, "text"), counted(2000, "text"), counted(2, "row or span", "rows or spans")
    ('1 text', '2,000 texts', '2 rows or spans')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"

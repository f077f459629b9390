"""Texts and the spans of characters in them: a text's key, trimmed spans, groups that overlap; counts in words.

A key is the digest of a text's bytes, by which tasks are merged and Docs are sorted. Texts that differ only in white
space or Unicode composition have one form; they are one text, with the key of the first of them.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeGuard, TypeVar

import msgspec

SpanKey = tuple[int, int, str]  # start and end, label
Ranged = TypeVar("Ranged", bound=tuple[Any, ...])  # start and end come first
State = Literal["partial", "none"]  # of a label that a text isn't complete for
# The errors of msgspec for JSON: bytes that aren't UTF-8 and deep nesting have exceptions of their own.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
KEY_BYTES = 12
MAX_CONTEXT_CHARS = 200  # characters of a sentence on either side of a span
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*\n\s*")


def text_key(text: str) -> bytes:
    """Digest a text; 95 bits vary, so the chance that two of a million texts share a key is 1 in 10^17."""
    return bytes_key(text.encode("utf8", "surrogatepass"))


def bytes_key(text: bytes) -> bytes:
    """Digest a text in UTF-8; see `text_key`."""
    digest = hashlib.blake2b(text, digest_size=KEY_BYTES).digest()
    return digest[:-1] + bytes([digest[-1] | 1])


def form_of(text: str) -> str:
    """Compose a text's characters (Unicode NFC), and make one space of each run of white space, and none at the edges.

    >>> form_of("  New  York ")
    'New York'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Move the edges of a span inwards past white space (any Unicode white space); one of only that becomes empty."""
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return start, end
    inside = text[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is an integer; true and false aren't, though Python takes them for 1 and 0."""
    return isinstance(value, int) and not isinstance(value, bool)


def overlapping_groups(one: Iterable[Ranged], other: Iterable[Ranged]) -> Iterator[tuple[list[Ranged], list[Ranged]]]:
    """Yield (one, other) for each stretch of a text whose borders no span crosses, in text order, sorted."""
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
    """Keep the spans that can be judged.

    Those are the spans of labels that a text is complete for; where single spans were judged, those spans.

    judged (Iterable): the spans that annotators accepted or rejected.
    uncovered (Mapping[str, str]): the labels that the text isn't complete for, each "partial" or "none".
    """
    if not uncovered:
        return set(spans)
    known = {span for span in judged if uncovered.get(span[2]) == "partial"}
    return {span for span in spans if span[2] not in uncovered or span in known}


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    r"""Find where the sentence of a span begins and ends, which may have line ends; at most MAX_CONTEXT_CHARS away.

    >>> sentence_around("Stop. Add 5\nml now! Go", 10, 14)
    (6, 19)
    """
    least = max(0, start - MAX_CONTEXT_CHARS)
    ends = [match.end() for match in SENTENCE_END.finditer(text, least, start)]
    behind = SENTENCE_END.search(text, end, end + MAX_CONTEXT_CHARS)
    return ends[-1] if ends else least, behind.start() if behind else min(len(text), end + MAX_CONTEXT_CHARS)


def counter_field() -> Any:
    """Make a field of a Struct whose default is an empty Counter."""
    return msgspec.field(default_factory=Counter)


def decode_counter(kind: type[Counter[str]], value: dict[str, int]) -> Counter[str]:
    """Convert the map that msgspec wrote back to a Counter, as its `dec_hook`."""
    return kind(value)


def times(count: int) -> str:
    """Write how often something is so."""
    return "once" if count == 1 else counted(count, "time")


def describe_seconds(seconds: float) -> str:
    """Write a time in words, as exactly as somebody who waits needs it.

    >>> describe_seconds(3), describe_seconds(44), describe_seconds(89), describe_seconds(100)
    ('5 seconds', '45 seconds', '90 seconds', '2 minutes')
    >>> describe_seconds(5000), describe_seconds(6000), describe_seconds(200_000)
    ('83 minutes', '2 hours', '56 hours')
    """
    if seconds < 92.5:
        return counted(max(5, 5 * round(seconds / 5)), "second")
    return counted(round(seconds / 60), "minute") if seconds < 90 * 60 else counted(round(seconds / 3600), "hour")


def name_counts(counts: Counter[Any], most: int | None = None) -> str:
    """Write what was counted, the most frequent first.

    most (int | None): how many are named; None for all.

    >>> name_counts(Counter(LOC=3, PER=1200))
    'PER (1,200), LOC (3)'
    """
    return ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(most))


def place(file: str, line: int) -> str:
    """Write the place of a line; 0 is the whole file.

    >>> place("a.ann", 3), place("a.txt", 0)
    ('a.ann, line 3', 'a.txt')
    """
    return f"{file}, line {line}" if line else file


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Write a number with what it counts.

    nouns (str): the plural, if it isn't just an s more.

    >>> counted(1, "text"), counted(2000, "text"), counted(2, "row or span", "rows or spans")
    ('1 text', '2,000 texts', '2 rows or spans')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"

"""Move spans between texts that differ only in white space or Unicode composition, by their normal form.

1. Canonical composition (Unicode NFC): e with a combining acute accent is é.
2. White space: a run of it is one line feed if a line ends in it (so CR LF is LF), else one space; none at the edges.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import cache
from sys import maxunicode

import msgspec

from labelwise.annotations import Task

RUNS = re.compile(r"\s+|\S+")
LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")  # as in str.splitlines


class Move:
    """Moves spans from one text to an equal one, except for white space and composition."""

    def __init__(self, text: str, other: str) -> None:
        _, self._starts, self._ends = normalize(text)
        _, self._new_starts, self._new_ends = normalize(other)

    def offsets(self, start: int, end: int) -> tuple[tuple[int, int], bool]:
        """Return a stripped span's offsets in the other text, and False if that adds a separated letter or accent."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end) - 1
        separate = (self._starts[first], self._ends[last]) == (start, end)
        separate &= self._new_starts[first] not in self._new_starts[first - 1 : first]
        separate &= self._new_ends[last] not in self._new_ends[last + 1 : last + 2]
        return (self._new_starts[first], self._new_ends[last]), separate

    def task(self, task: Task) -> Task:
        """Return a task with spans in the other text; spans that separate a letter from its accent are unusable."""
        spans, unusable = [], [*task.unusable]
        for span in task.spans:
            (start, end), separate = self.offsets(span.start, span.end)
            if separate:
                spans.append(msgspec.structs.replace(span, start=start, end=end))
            else:
                why = f"[{span.start}, {span.end}] separates a letter from its accent, one character in another source"
                unusable.append(msgspec.structs.replace(span, start=0, end=0, problem=why))
        return msgspec.structs.replace(task, spans=tuple(spans), unusable=tuple(unusable))


def normalize(text: str) -> tuple[str, list[int], list[int]]:
    """Return a text's normal form, and each of its characters' start and end in `text`."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in RUNS.finditer(text):
        start, end = match.span()
        run = match[0]
        if run.isspace():
            if start > 0 and end < len(text):
                pieces.append("\n" if LINE_ENDS & set(run) else " ")
                starts.append(start)
                ends.append(end)
        elif unicodedata.is_normalized("NFC", run):
            pieces.append(run)
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            begins = [i for i in range(start, end) if i == start or text[i] not in _joins()]
            for begin, after in zip(begins, [*begins[1:], end], strict=True):
                composed = unicodedata.normalize("NFC", text[begin:after])
                pieces.append(composed)
                starts += [begin] * len(composed)
                ends += [after] * len(composed)
    return "".join(pieces), starts, ends


@cache
def _joins() -> frozenset[str]:
    """Return the characters that can combine with the one before: combining marks, and later parts of composed ones.

    A mark composed of others, such as U+0F73, isn't a mark by its own class.
    """
    joins: set[str] = set()
    for code in range(maxunicode + 1):
        parts = unicodedata.normalize("NFD", chr(code))
        joins.update(parts[1:])
        if unicodedata.combining(parts[0]):
            joins.add(chr(code))
    # Hangul syllables are composed of a leading consonant with a vowel, and that with a trailing consonant.
    joins.update(map(chr, range(0x1161, 0x1176)), map(chr, range(0x11A8, 0x11C3)))
    return frozenset(joins)

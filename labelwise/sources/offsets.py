"""Offsets in different counts: choose a reading, and find quoted mentions."""

import html
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, combinations, takewhile
from typing import TypeVar

Fragments = list[tuple[int, int]]
OffsetTable = list[int]
Reading = Callable[[str, tuple[int, int]], tuple[int, int] | None]
Name = TypeVar("Name", bound=Hashable)  # of a reading
Mention = TypeVar("Mention")

# The readings of brat's offsets other than code points: \r\n as one, \n as two (it was \r\n when the text was annotated
# on Windows, before git stored it), in UTF-16 code units, bytes of UTF-8 or graphemes (the text was decomposed since),
# without the byte order mark. Several can occur together, but for UNITS.
UNITS = ("utf-16", "bytes", "graphemes")
BRAT_READINGS = ("crlf", "lf as two", *UNITS, "bom")
DOCCANO_READINGS = ("utf-16", "code-points", "graphemes")  # the readings of doccano's offsets
OTHER_TEXTS = ("html", "stripped")  # the readings of texts that were escaped or stripped after, or before, annotation
LF = re.compile(r"(?<!\r)\n")
ENTITY = re.compile(r"&(#\d{1,7}|#x[\da-fA-F]{1,6}|[A-Za-z]\w{1,31});")
# Parts of the grapheme before: joiners, skin tones, tags, LF after CR, a flag's second letter, joined emoji.
JOINED = re.compile(
    "(?<=.)[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|(?<=\r)\n|[\U0001f1e6-\U0001f1ff]{2}|"
    "(?<=\u200d)[\u2190-\u2bff\U0001f000-\U0001faff]",
    re.DOTALL,
)
LETTERS_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uf900-\ufaff"
UNSPACED = re.compile(f"[{LETTERS_UNSPACED}]")  # of scripts without spaces, such as Chinese and Thai
# Inside a word, except in these scripts, where a span can end anywhere.
INSIDE = re.compile(rf"[^\W_][\u0300-\u036f]?[^\W_{LETTERS_UNSPACED}]|.[\u0300-\u036f]")


def possible_readings(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the combinations of BRAT_READINGS that differ from code points in this text."""
    differs = {
        "crlf": "\r\n" in text,
        "lf as two": LF.search(text) is not None,
        "utf-16": max(text, default="") > "\uffff",
        "bytes": not text.isascii(),
        "graphemes": 0 in _graphemes(text),
        "bom": text.startswith("\ufeff"),
    }
    names = [name for name in BRAT_READINGS if differs[name]]
    for size in range(1, len(names) + 1):
        yield from (chosen for chosen in combinations(names, size) if len({*chosen} & {*UNITS}) < 2)


@lru_cache(maxsize=1)
def offset_table(text: str, reading: tuple[str, ...]) -> OffsetTable:
    """List the code point of each unit that a reading counts."""
    unit = next((name for name in reading if name in UNITS), "")
    widths = WIDTHS[unit](text) if unit else [1] * len(text)
    if "crlf" in reading:
        for match in re.finditer("\r\n", text):
            widths[match.start()] = 0
    if "lf as two" in reading:
        for match in LF.finditer(text):
            widths[match.start()] = 2
    if "bom" in reading:
        widths[0] = 0
    return [index for index, width in enumerate(widths) for _ in range(width)]


def _lines(text: str) -> list[int]:
    return [int(not text.startswith("\r\n", place - 1)) if place else 1 for place in range(len(text))]


def _graphemes(text: str) -> list[int]:
    """Give the width to the first character of each grapheme (https://www.unicode.org/reports/tr29/, without jamo)."""
    widths = [1] * len(text)
    for match in JOINED.finditer(text):
        widths[match.end() - 1] = 0
    marks = (place for place, char in enumerate(text) if place and unicodedata.category(char)[0] == "M")
    for place in marks:
        widths[place] = 0
    return widths


def _unescaped(text: str) -> list[int]:
    """Give an HTML entity, such as &amp;, the width of its characters."""
    widths = [1] * len(text)
    for match in ENTITY.finditer(text):
        width = len(html.unescape(match[0]))
        widths[match.start() + width : match.end()] = [0] * (len(match[0]) - width)
    return widths


def _stripped(text: str) -> list[int]:
    before = len(text) - len(text.lstrip())
    return [0] * before + [1] * (len(text) - before)


WIDTHS: Mapping[str, Callable[[str], list[int]]] = {
    "utf-16": lambda text: [2 if char > "\uffff" else 1 for char in text],
    "bytes": lambda text: [len(char.encode("utf8", "surrogatepass")) for char in text],
    "graphemes": _graphemes,
    "crlf": _lines,
    "html": _unescaped,
    "stripped": _stripped,
}


@lru_cache(maxsize=8)
def _table(text: str, unit: str) -> Mapping[int, int]:
    """Map the units where characters begin, and the text's end, to code points."""
    return {start: place for place, start in enumerate([0, *accumulate(WIDTHS[unit](text))])}


def _by(unit: str) -> Reading:
    def read(text: str, offsets: tuple[int, int]) -> tuple[int, int] | None:
        if unit not in OTHER_TEXTS and text.isascii() and "\r" not in text:
            return offsets
        start, end = (_table(text, unit).get(offset) for offset in offsets)
        return None if start is None or end is None else (start, end)

    return read


def _inclusive(unit: str) -> Reading:
    read = _by(unit)
    return lambda text, offsets: read(text, (offsets[0], offsets[1] + 1))


# The readings of a dataset's offsets, by their names in `datasets.yml`: each takes a text, with start and end as
# written, and returns them in code points, the end exclusive; None if they contradict the reading. OTHER_TEXTS can't be
# declared: the file should have the annotated text.
READINGS: Mapping[str, Reading] = {
    "code-points": lambda _, offsets: offsets,
    "inclusive": lambda _, offsets: (offsets[0], offsets[1] + 1),
    "one-based": lambda _, offsets: (offsets[0] - 1, offsets[1] - 1),
    "one-based-inclusive": lambda _, offsets: (offsets[0] - 1, offsets[1]),
    **{unit: _by(unit) for unit in WIDTHS},
    **{f"{unit}-inclusive": _inclusive(unit) for unit in (*UNITS, "crlf")},
}


def ends_at_words(text: str, offsets: tuple[int, int] | None) -> bool:
    """Return whether offsets are inside a text, cut no word, and include no outer white space."""
    if offsets is None or not 0 <= offsets[0] < offsets[1] <= len(text):
        return False
    inside = text[slice(*offsets)]
    return inside == inside.strip() and not any(INSIDE.match(text, max(at - 1, 0)) and at for at in offsets)


def is_inside(text: str, offsets: tuple[int, int]) -> bool:
    """Return whether both offsets in a text are inside words."""
    return all(at and INSIDE.match(text, at - 1) for at in offsets)


def choose(
    rows: Iterable[tuple[str, Sequence[Mention]]],
    readings: Callable[[str], Iterable[Name]],
    fits: Callable[[str, Name, Mention], bool],
) -> Name | None:
    """Choose the reading that fits most spans, the first of equal ones; None without a row."""
    fitting: dict[Name, int] = {}
    for text, mentions in rows:
        for reading in readings(text):
            fitting[reading] = fitting.get(reading, 0) + sum(fits(text, reading, mention) for mention in mentions)
    return max(fitting, key=lambda reading: fitting[reading], default=None)


def choose_counted(rows: Iterable[tuple[str, Sequence[tuple[int, int]]]]) -> str:
    """Choose the reading that ends most offsets at words: UTF-16 units, code points or graphemes.

    RETURNS (str): name; in a tie the first of these three, "" if they never differ.
    """
    differing = (
        (text, [offsets for offsets in spans if len({READINGS[name](text, offsets) for name in DOCCANO_READINGS}) > 1])
        for text, spans in rows
        if not text.isascii()
    )
    chosen = choose(
        (row for row in differing if row[1]),
        lambda _: DOCCANO_READINGS,
        lambda text, name, offsets: ends_at_words(text, READINGS[name](text, offsets)),
    )
    return chosen or ""


def to_code_points(text: str, fragments: Fragments, table: OffsetTable | None) -> Fragments:
    """Map fragments through an offset table, if any, unless they exceed it."""
    if table is None or last_end(fragments) > len(table):
        return fragments
    # The end is that of the last character inside: of uncounted characters after it, only accents are part of the span.
    lasts = ((start, table[end - 1] + 1, table[end] if end < len(table) else len(text)) for start, end in fragments)
    return [(table[start], last + _count_accents(text[last:following])) for start, last, following in lasts]


def _count_accents(text: str) -> int:
    return sum(1 for _ in takewhile(lambda char: unicodedata.category(char)[0] == "M", text))


def choose_reading(text: str, mentions: Sequence[tuple[Fragments, str | None]]) -> tuple[OffsetTable | None, str]:
    """Choose the reading that makes most mentions quote the text at their offsets; without quotes, code points.

    mentions (Sequence): sorted fragments, with the quoted mention, if any.
    RETURNS (tuple): offset table and name; None and "" for code points.
    """
    if all(quoted is None for _, quoted in mentions) or all(_quotes(text, (), mention) for mention in mentions):
        return None, ""
    reading = choose([(text, mentions)], lambda text: [(), *possible_readings(text)], _quotes)
    return (offset_table(text, reading), "+".join(reading)) if reading else (None, "")


def _quotes(text: str, reading: tuple[str, ...], mention: tuple[Fragments, str | None]) -> bool:
    """Return whether a mention quotes the text at its offsets, without cutting a surrogate pair."""
    fragments, quoted = mention
    table = offset_table(text, reading) if reading else None
    if table and last_end(fragments) <= len(table):
        inner = (offset for fragment in fragments for offset in fragment if 0 < offset < len(table))
        if any(table[offset] == table[offset - 1] and ord(text[table[offset]]) > 0xFFFF for offset in inner):
            return False
    return says(text, to_code_points(text, fragments, table), quoted)


def last_end(fragments: Fragments) -> int:
    """Return the furthest end of fragments."""
    return max(end for _, end in fragments)


def says(text: str, fragments: Fragments, quoted: str | None) -> bool:
    """Return whether fragments are inside a text and match the quoted mention, folded."""
    if last_end(fragments) > len(text):
        return False
    return quoted is None or fold(" ".join(text[start:end] for start, end in fragments)) == fold(quoted)


def fold(text: str) -> str:
    """Compose characters (Unicode NFC), and normalize white space to single spaces, none at the edges."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def join(text: str, fragments: Fragments) -> Fragments:
    """Join sorted fragments that overlap, touch, or have only white space between them."""
    joined = fragments[:1]
    for start, end in fragments[1:]:
        last_start, last_end = joined[-1]
        if not text[last_end:start].strip():
            joined[-1] = (last_start, max(last_end, end))
        else:
            joined.append((start, end))
    return joined


def nearest_occurrence(text: str, quoted: str, start: int) -> tuple[int, int] | None:
    """Find the nearest occurrence of a mention, white space folded; None without one, or in a tie."""
    pattern = r"\s+".join(re.escape(word) for word in quoted.split())
    occurrences = sorted((abs(match.start() - start), match.span()) for match in re.finditer(pattern, text))
    if not occurrences or (len(occurrences) > 1 and occurrences[0][0] == occurrences[1][0]):
        return None
    return occurrences[0][1]

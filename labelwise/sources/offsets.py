"""How annotation tools count characters, and where a quoted mention is in its text."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

Fragments = list[tuple[int, int]]
OffsetTable = list[int]
Reading = Callable[[str, tuple[int, int]], tuple[int, int] | None]

# How brat's documents are counted when code points aren't: \r\n as one, \n as two (it was \r\n when the text was
# annotated on Windows, before git stored it), in UTF-16 code units or in bytes of UTF-8, without the byte order mark.
# They can occur together.
BRAT_READINGS = ("crlf", "lf as two", "utf-16", "bytes", "bom")
LF = re.compile(r"(?<!\r)\n")


def possible_readings(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the combinations of BRAT_READINGS that count this text differently from code points."""
    differs = {
        "crlf": "\r\n" in text,
        "lf as two": LF.search(text) is not None,
        "utf-16": has_astral(text),
        "bytes": not text.isascii(),
        "bom": text.startswith("\ufeff"),
    }
    names = [name for name in BRAT_READINGS if differs[name]]
    for size in range(1, len(names) + 1):
        yield from (some for some in combinations(names, size) if not {"utf-16", "bytes"} <= {*some})


def has_astral(text: str) -> bool:
    """Tell whether a text has characters that are two units of UTF-16."""
    return not text.isascii() and max(text) > "\uffff"


def offset_table(text: str, reading: Sequence[str]) -> OffsetTable:
    """List, for each character that a reading counts, the code point that it belongs to."""
    widths = [1] * len(text)
    if "utf-16" in reading:
        widths = _utf16(text)
    if "bytes" in reading:
        widths = _utf8(text)
    if "crlf" in reading:
        for match in re.finditer("\r\n", text):
            widths[match.start()] = 0
    if "lf as two" in reading:
        for match in LF.finditer(text):
            widths[match.start()] = 2
    if "bom" in reading:
        widths[0] = 0
    return [index for index, width in enumerate(widths) for _ in range(width)]


JOINER = "\u200d"


def _utf16(text: str) -> list[int]:
    return [2 if ord(char) > 0xFFFF else 1 for char in text]


def _utf8(text: str) -> list[int]:
    return [len(char.encode("utf8", "surrogatepass")) for char in text]


def _graphemes(text: str) -> list[int]:
    """Give a width to the first character of each grapheme: marks, parts of an emoji and LF after CR have none.

    https://www.unicode.org/reports/tr29/, but for jamo and the prepended marks of Indic scripts.
    """
    widths: list[int] = []
    flags = 0
    for before, char in zip(" " + text, text, strict=False):
        flags = flags + 1 if "\U0001f1e6" <= char <= "\U0001f1ff" else 0
        joined = (
            unicodedata.category(char)[0] == "M"
            or char in (JOINER, "\u200c")
            or (before == JOINER and unicodedata.category(char) == "So")
            or "\U0001f3fb" <= char <= "\U0001f3ff"
            or "\U000e0020" <= char <= "\U000e007f"
            or (before, char) == ("\r", "\n")
            or (flags and flags % 2 == 0)
        )
        widths.append(0 if joined and widths else 1)
    return widths


@lru_cache(maxsize=8)
def _table(text: str, widths: Callable[[str], list[int]]) -> Mapping[int, int]:
    """Map the units at which characters begin, and that at the end of the text, to code points."""
    table: dict[int, int] = {}
    unit = 0
    for place, width in enumerate(widths(text)):
        table.setdefault(unit, place)
        unit += width
    return table | {unit: len(text)}


def _by(widths: Callable[[str], list[int]]) -> Reading:
    def read(text: str, offsets: tuple[int, int]) -> tuple[int, int] | None:
        """Read offsets in units; None where a character has several, and one begins or ends between them."""
        if text.isascii() and "\r" not in text:
            return offsets
        table = _table(text, widths)
        start, end = table.get(offsets[0]), table.get(offsets[1])
        return None if start is None or end is None else (start, end)

    return read


def _inclusive(text: str, offsets: tuple[int, int]) -> tuple[int, int] | None:
    start, end = offsets
    return (start, end + 1) if end < len(text) else None


def _as_written(text: str, offsets: tuple[int, int]) -> tuple[int, int] | None:
    return offsets


def _one_based(text: str, offsets: tuple[int, int]) -> tuple[int, int] | None:
    start, end = offsets
    return (start - 1, end - 1) if start else None


# How the offsets of a data set may count, by the names in `datasets.yml`: each takes a text, and start and end as they
# are written, and returns them in code points, the end exclusive; None where they can't be meant so.
READINGS: Mapping[str, Reading] = {
    "code-points": _as_written,
    "inclusive": _inclusive,
    "utf-16": _by(_utf16),
    "graphemes": _by(_graphemes),
    "bytes": _by(_utf8),
    "one-based": _one_based,
}


# Scripts without spaces between words: where a span ends there says nothing about how offsets count.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def ends_at_words(text: str, place: tuple[int, int] | None) -> bool:
    """Tell whether offsets are inside a text, and neither end cuts a word or is white space."""
    if place is None or not 0 <= place[0] < place[1] <= len(text):
        return False
    start, end = place
    cuts = any(
        0 < at < len(text) and is_in_word(text[at - 1]) and is_in_word(text[at]) and not UNSPACED.match(text[at])
        for at in (start, end)
    )
    return not cuts and not text[start].isspace() and not text[end - 1].isspace()


def is_in_word(char: str) -> bool:
    """Tell whether a character is a letter, a digit, or a mark on one."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def choose_counted(rows: Iterable[tuple[str, Sequence[tuple[int, int]]]]) -> str:
    """Find how the offsets in texts count, by where they end if they count UTF-16 units, code points or graphemes.

    RETURNS (str): one of READINGS, of equally good ones the first of these three; empty if all say the same.
    """
    names = ("utf-16", "code-points", "graphemes")
    fitting = dict.fromkeys(names, 0)
    differs = False
    for text, offsets in rows:
        if text.isascii():
            continue
        for place in offsets:
            places = {name: READINGS[name](text, place) for name in names}
            if len({*places.values()}) > 1:
                differs = True
                for name, found in places.items():
                    fitting[name] += ends_at_words(text, found)
    return max(names, key=lambda name: fitting[name]) if differs else ""


def to_code_points(fragments: Fragments, table: OffsetTable | None) -> Fragments:
    """Map fragments through an offset table; they stay as they are without one, and if they reach past its end."""
    if table is None or last_end(fragments) > len(table):
        return fragments
    # The end comes from the last character inside: uncounted ones after it aren't the span's.
    return [(table[start], table[end - 1] + 1) for start, end in fragments]


def choose_reading(text: str, mentions: Sequence[tuple[Fragments, str | None]]) -> tuple[OffsetTable | None, str]:
    """Find how offsets count a text: the reading by which most mentions quote the text at their offsets.

    mentions (Sequence): fragments, sorted, with the mention as quoted, or None where it isn't quoted.
    RETURNS (tuple): an offset table, None if code points are counted, and the reading's name, empty if they are.
    """

    def count(table: OffsetTable | None) -> int:
        """Count the mentions that agree with a reading."""
        return sum(
            not cuts_character(text, fragments, table) and says(text, to_code_points(fragments, table), quoted)
            for fragments, quoted in mentions
        )

    best, best_table, name = count(None), None, ""
    for reading in possible_readings(text) if best < len(mentions) else ():
        table = offset_table(text, reading)
        if (agree := count(table)) > best:
            best, best_table, name = agree, table, "+".join(reading)
    return best_table, name


def cuts_character(text: str, fragments: Fragments, table: OffsetTable | None) -> bool:
    """Tell whether an offset is in the middle of a surrogate pair, where no span can begin or end."""
    if table is None or last_end(fragments) > len(table):
        return False
    inner = (offset for fragment in fragments for offset in fragment if 0 < offset < len(table))
    return any(table[offset] == table[offset - 1] and ord(text[table[offset]]) > 0xFFFF for offset in inner)


def last_end(fragments: Fragments) -> int:
    """Return the end of the fragment that reaches farthest."""
    return max(end for _, end in fragments)


def says(text: str, fragments: Fragments, quoted: str | None) -> bool:
    """Check that fragments are inside a text and match the quoted mention, white space folded."""
    if last_end(fragments) > len(text):
        return False
    return quoted is None or fold(" ".join(text[start:end] for start, end in fragments)) == fold(quoted)


def fold(text: str) -> str:
    """Fold white space: one space for each run of it, none at the edges."""
    return " ".join(text.split())


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
    """Find the occurrence of a mention, white space folded, nearest to an offset; None if there is none or a tie."""
    pattern = r"\s+".join(re.escape(word) for word in quoted.split())
    found = sorted((abs(match.start() - start), match.span()) for match in re.finditer(pattern, text))
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1]

"""How annotation tools count characters, and where a quoted mention is in its text."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

Fragments = list[tuple[int, int]]
OffsetTable = list[int]

# How annotation tools count characters when they don't count code points: \r\n as one, \n as two (it was \r\n when the
# text was annotated on Windows, before git stored it), in UTF-16 code units, without the byte order mark. They can
# occur together.
READINGS = ("crlf", "lf as two", "utf16", "bom")
LF = re.compile(r"(?<!\r)\n")


def possible_readings(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the combinations of READINGS that count this text differently from code points."""
    differs = {
        "crlf": "\r\n" in text,
        "lf as two": LF.search(text) is not None,
        "utf16": any(ord(char) > 0xFFFF for char in text),
        "bom": text.startswith("\ufeff"),
    }
    names = [name for name in READINGS if differs[name]]
    for size in range(1, len(names) + 1):
        yield from combinations(names, size)


def offset_table(text: str, reading: Sequence[str]) -> OffsetTable:
    """List, for each character that a reading counts, the code point that it belongs to."""
    widths = [1] * len(text)
    if "crlf" in reading:
        for match in re.finditer("\r\n", text):
            widths[match.start()] = 0
    if "lf as two" in reading:
        for match in LF.finditer(text):
            widths[match.start()] = 2
    if "utf16" in reading:
        widths = [2 if ord(char) > 0xFFFF else width for char, width in zip(text, widths, strict=True)]
    if "bom" in reading:
        widths[0] = 0
    return [index for index, width in enumerate(widths) for _ in range(width)]


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

"""Find the columns of tokens and of tags in the first lines of a CoNLL file, and the spelling of its tags.

1. A comment such as `# global.columns = ID FORM NER` (CoNLL-U Plus: https://universaldependencies.org/ext-format.html),
   or a first line of names, such as `Word POS Tag`. In a column `Sentence #`, a value begins a sentence.
2. The only column that has nothing but tags, other than chunks such as B-NP; of two that share labels, the first. All
   tags may be spelled B-PER, B_PER, PER-B, b-per, or NE=B-PER among other features; brackets such as `(PER*` are
   CoNLL-2012's.
3. The last column, if it may have labels without B and I.

The token is in the first column, or in the second, if the first numbers the tokens or has the tags.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from labelwise.base.errors import InputError
from labelwise.sources.tags import OUTSIDE, PREFIXED

DOCUMENT_START = "-DOCSTART-"
WHITE = " \t\r\n\f\v"  # a line of nothing else is blank
HEAD = 1000  # lines that tell the layout of a file
NAMED_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*([^\t]+)")
TOKENS = ("FORM", "TOKEN", "TOKENS", "WORD", "WORDS", "TEXT")
TAGS = ("NE", "NER", "ENTITY", "ENTITIES", "IOB", "IOB2", "BIO", "TAG", "TAGS", "LABEL", "LABELS")  # the best first
SPACES = re.compile("[ \t]+")
WORD_ENDS = re.compile("[-_ .]+")
FIRST = re.compile(r"[01]($|[-.])")  # the number of a sentence's first token
CHUNKS = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "PC", "NC", "VC", "AC"}
# The spellings of tags. All but the first two count only if all tags of a column have them, and a label has B and I.
PLAIN = re.compile(r"(?P<prefix>[BIUSLE])-(?P<label>.+)", re.DOTALL)
BARE = re.compile(r"(?P<prefix>[BIUSLE])(?P<label>)")
FEATURE = re.compile(r"(?:.*\|)?(?:NE|NER|name)=(?P<prefix>[BIUSLE])-(?P<label>[^|]+)(?:\|.*)?", re.IGNORECASE)
BELOW, BEHIND = re.compile(r"(?P<prefix>[BIUSLE])_(?P<label>.+)"), re.compile(r"(?P<label>.+)-(?P<prefix>[BIUSLE])")
SMALL = re.compile(r"(?P<prefix>[biusle])-(?P<label>.+)")
BRACKETED = re.compile(r"\*|\((?P<label>[A-Za-z_][\w.-]*)\*?\)?|\*\)")
Shape = tuple[bool, int]  # of a line: whether tabs separate its columns, and how many there are


class Layout(NamedTuple):
    """The layout of a file, as its first lines show it.

    shape (Shape | None): that of its first token; None if no line is certain to be one.
    spelled (re.Pattern): the spelling of tags.
    names (list[str]): the cells of a line of names; empty without.
    sentence (int): the column in which a value begins a sentence; -1 for none.
    untagged (str): the cell of a token that nobody has tagged; empty if there is none.
    """

    shape: Shape | None
    token: int = 0
    tag: int = -1
    spelled: re.Pattern[str] = PLAIN
    names: list[str] = []
    sentence: int = -1
    untagged: str = ""


def cells_of(line: str) -> list[str]:
    """Cut a line into its columns; a tab at its end is none."""
    cells = line.split("\t") if "\t" in line else SPACES.split(line.strip(" "))
    return cells[:-1] if len(cells) > 2 and not cells[-1] else cells


def shape_of(line: str) -> Shape:
    """Return whether tabs separate the columns of a line, and how many it has, as all lines of its sentence do."""
    return "\t" in line, len(cells_of(line))


def is_marked(line: str) -> bool:
    """Return whether a line may not be a token."""
    return line.startswith(("#", DOCUMENT_START))


def find_layout(path: Path, head: Sequence[str]) -> Layout:
    """Find the layout of a file.

    head (Sequence[str]): its first lines.
    RAISES (InputError): the column of tags can't be found.
    """
    tokens = [line for line in head if line.strip(WHITE) and not is_marked(line)]
    shape = shape_of(tokens[0]) if tokens else None
    named = next((found[1].split() for line in head if (found := NAMED_COLUMNS.fullmatch(line))), [])
    first = cells_of(tokens[0]) if tokens else []
    names = first if tokens and not named and _are_names(first) else []
    rows = [cells_of(line) for line in tokens[bool(names) :]]
    width = max(map(len, rows), key=Counter(map(len, rows)).__getitem__, default=0)
    columns = [
        [cell.strip() for cell in column] for column in zip(*(row for row in rows if len(row) == width), strict=True)
    ]
    if named or names:
        token, tag = _named_columns(named or names)
        spelling = _spelling_of(columns[tag]) if tag < len(columns) else None
        sentence = next((place for place, name in enumerate(names) if name.upper().startswith("SENTENCE")), -1)
        return Layout(shape, token, tag, spelling or PLAIN, names, sentence, _untagged(columns, tag))
    tags = {place: spelled for place, column in enumerate(columns) if (spelled := _spelling_of(column))}
    tag = _choose_column(path, columns, tags)
    if tags.get(tag) is BRACKETED:
        return Layout(shape, 3 if width > tag >= 10 else 0, tag, BRACKETED)
    numbered = _are_numbered(head) and width > 2
    token, last = int(numbered or tag == 0), tag == width - 1
    return Layout(shape, token, -1 if last else tag, tags.get(tag, PLAIN), untagged=_untagged(columns, tag))


def _untagged(columns: Sequence[Sequence[str]], tag: int) -> str:
    """Return `_` if `O` is outside all spans in the column of tags: then `_` says nothing, as in HIPE's files."""
    return "_" if columns and tag < len(columns) and "O" in columns[tag] else ""


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether a line names its columns: one name is that of tags, and no cell is a tag. "Tag" is German, too."""
    named = any(_rank(name) < len(TAGS) for name in cells[cells[-1].upper() not in TOKENS :])
    return named and not any(cell in OUTSIDE[:2] or PREFIXED.fullmatch(cell) for cell in cells)


def _rank(name: str) -> int:
    """Return the rank of a column's name among those of tags, from 0; NE-COARSE-LIT and ner_tags count, too."""
    first = WORD_ENDS.split(name.upper().rpartition(":")[2].strip())[0]
    return TAGS.index(first) if first in TAGS else len(TAGS)


def _are_numbered(lines: Iterable[str]) -> bool:
    """Return whether the first column numbers the tokens, from 1 in each longer sentence, such as 1, 2-3, 4.1."""
    blocks = groupby(lines, lambda line: not line.strip(WHITE))
    sentences = ([cells_of(line) for line in block if not blank and not is_marked(line)] for blank, block in blocks)
    first, *others = [[cells[0] for cells in rows if len(cells) > 2] for rows in sentences if len(rows) > 1] or [[]]
    numbered = bool(first) and first == [str(place) for place in range(1, len(first) + 1)]
    return numbered and all(map(FIRST.match, (numbers[0] if numbers else "" for numbers in others)))


def _spelling_of(column: Sequence[str]) -> re.Pattern[str] | None:
    """Return the spelling of a column's tags; None if it has other content, or no tag."""
    marked = [cell for cell in column if cell not in (*OUTSIDE, "o")]
    plain = [found for cell in marked if (found := PLAIN.fullmatch(cell))]
    if plain and len(plain) >= 0.9 * len(marked):
        return None if {found["label"] for found in plain} <= CHUNKS else PLAIN
    if {"B", "I"} <= {*marked} <= {*"BIUSLE"}:
        return BARE
    if any(map(FEATURE.fullmatch, marked)) and all("=" in cell for cell in marked):
        return FEATURE
    if any(cell.startswith("(") for cell in column) and all(map(BRACKETED.fullmatch, column)):
        return BRACKETED
    for spelled in (BELOW, BEHIND, SMALL):
        matches = [spelled.fullmatch(cell) for cell in marked]
        pairs = {(one["label"], one["prefix"].upper() == "B") for one in matches if one}
        if all(matches) and any((label, not begins) in pairs for label, begins in pairs):
            return spelled
    return None


def _choose_column(path: Path, columns: Sequence[Sequence[str]], tags: Mapping[int, re.Pattern[str]]) -> int:
    """Choose the column of tags among those that have some; else the last column, if it may have labels alone.

    RAISES (InputError): several have tags, and share no label; or none has, and the last one has other content.
    """
    labels = [{label_of(cell, tags[place]) for cell in columns[place]} - {""} for place in tags]
    shared = all(any(one.startswith(tuple(labels[0])) for one in other) for other in labels[1:])
    if tags and (shared or BRACKETED in tags.values()):
        return next(iter(tags))
    last = {*columns[-1]} - {*OUTSIDE} if columns else set()
    odd = any(sign in cell for cell in last for sign in "=|(*") or len(last) > max(10, sum(map(len, columns[:1])) / 4)
    odd = odd or (not last and any(cell[:1] == "(" and cell[-1:] == "*" for cell in chain(*columns)))
    if not tags and not odd:
        return len(columns) - 1
    which = f"columns {' and '.join(str(place + 1) for place in tags)} have tags" if tags else "no column has tags"
    samples = (f"{n}: {', '.join([*dict.fromkeys(column)][:4])}" for n, column in enumerate(columns, 1))
    raise InputError(
        f"{path}: {which}, such as B-PER, I-PER and O; name the columns in a first line, such as `# global.columns = "
        f"{' '.join(['FORM', *['_'] * (len(columns) - 2), 'NER'])}`. The columns are {'; '.join(samples)}"
    )


def label_of(cell: str, spelled: re.Pattern[str]) -> str:
    """Return the label of a tag as it is spelled; empty if it has none."""
    found = spelled.fullmatch(cell)
    return (found["label"] or "") if found else ""


def _named_columns(names: Sequence[str]) -> tuple[int, int]:
    """Find the columns of tokens and tags by their names; by default the first and the last one."""
    token = next((place for place, name in enumerate(names) if name.upper().rpartition(":")[2] in TOKENS), 0)
    ranks = [(_rank(name), place) for place, name in enumerate(names) if place != token]
    best, place = min(ranks, default=(len(TAGS), -1))
    return token, place if best < len(TAGS) else -1

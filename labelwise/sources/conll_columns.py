"""The columns of CoNLL files: where token and tag are, and which lines that begin with `#` are comments."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import NamedTuple

DOCUMENT_START = "-DOCSTART-"
WHITE = " \t\r\n\f\v"  # a line of nothing else is blank
HEAD = 1000  # lines that tell the layout of a file
NAMED_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*([^\t]+)")
# Such as `# sent_id = 3`, `# id 5b4a domain=train`, or `#begin document (a); part 000`, unless the columns fit.
COMMENT = re.compile(r"#\s*\S+\s*=.*|#\s*|#(?:begin|end) document.*|# .*")
# Comments also where labels alone are tags.
STANDARD = re.compile(r"#\s*(?:\S+\s*=\s|new(?:doc|par)\b|(?:begin|end) document).*")
TOKENS, TAGS = ("FORM", "TOKEN", "WORD"), ("NER", "TAG", "NER_TAG", "LABEL")
PREFIXED = re.compile(r"([BIUSLE])-(.+)", re.DOTALL)
BEGINS = re.compile(r"[BUS]-.", re.DOTALL)  # a tag that begins a span, whatever is before it
OUTSIDE = ("O", "_", "-", "")
SPACES = re.compile("[ \t]+")
FIRST = re.compile(r"[01]($|[-.])")  # the number of a sentence's first token

Columns = tuple[int, int]  # of the token and of the tag
Shape = tuple[bool, int]  # of a line: whether tabs separate its columns, and how many there are


class Layout(NamedTuple):
    """The layout of a file, as its first lines tell it.

    shape (Shape | None): of its first token; None if no line is certain to be one.
    numbered (bool): the first column numbers the tokens, from 1 in each sentence of several.
    prefixed (bool): tags have prefixes, such as `B-`.
    """

    shape: Shape | None
    numbered: bool
    prefixed: bool


def cells_of(line: str) -> list[str]:
    """Cut a line into its columns; a tab at its end is none."""
    cells = line.split("\t") if "\t" in line else SPACES.split(line.strip(" "))
    return cells[:-1] if len(cells) > 2 and not cells[-1] else cells


def shape_of(line: str) -> Shape:
    """Tell what lines of one sentence have in common."""
    return "\t" in line, len(cells_of(line))


def is_marked(line: str) -> bool:
    """Tell whether a line may be something else than a token."""
    return line.startswith(("#", DOCUMENT_START))


def layout_of(lines: Iterable[str]) -> Layout:
    """Find out the layout of a file."""
    shape, numbered, prefixed = None, None, False
    for blank, block in groupby(islice(lines, HEAD), lambda line: not line.strip(WHITE)):
        tokens = [line for line in block if not blank and not is_marked(line)]
        rows = [cells_of(line) for line in tokens]
        shape = shape or (shape_of(tokens[0]) if tokens else None)
        prefixed = prefixed or any(PREFIXED.fullmatch(cell) for cells in rows for cell in cells[1:])
        if len(rows) > 1 and numbered is None:
            numbered = all(len(cells) > 2 and cells[0] == str(place) for place, cells in enumerate(rows, 1))
        elif len(rows) > 1:  # numbers such as 2-3 and 4.1 may follow
            numbered = numbered and bool(FIRST.match(rows[0][0]))
    return Layout(shape, bool(numbered), prefixed)


def is_comment(line: str, shape: Shape | None, tag: int, layout: Layout) -> bool:
    """Tell whether a line before the tokens of a sentence is a comment, which may look like a token, or the other way.

    A token has as many columns as others, and its tag is one of those that the file has: with a prefix, or without.

    shape (Shape | None): of the tokens; None if that isn't known.
    tag (int): the column of tags.
    """
    if not COMMENT.fullmatch(line):
        return False
    cells = cells_of(line)
    if len(cells) < 2 or len(cells) <= tag or shape not in (None, shape_of(line)):
        return True
    label = cells[tag].strip()
    if label in OUTSIDE or PREFIXED.fullmatch(label):
        return False
    return shape is None or layout.prefixed or "=" in label or bool(STANDARD.fullmatch(line))


def numbered_columns(rows: Sequence[Sequence[str]]) -> Columns:
    """Find the tags of a sentence whose tokens are numbered: the last column with nothing else."""
    width = min(map(len, rows), default=0)
    tags = [
        place
        for place in range(2, width)
        if all(cells[place] == "O" or PREFIXED.fullmatch(cells[place]) for cells in rows)
    ]
    return 1, tags[-1] if tags else -1


def named_columns(names: Sequence[str]) -> Columns:
    """Find token and tag among the names of columns; the first and the last one, if there is none of a known name."""
    names = [name.upper().rpartition(":")[2] for name in names]
    token = next((place for place, name in enumerate(names) if name in TOKENS), 0)
    return token, next((place for place, name in enumerate(names) if name in TAGS), -1)

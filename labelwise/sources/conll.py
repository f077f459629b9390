"""Read CoNLL files: a token and its tag a line, a blank line after each sentence, which becomes a text.

    -DOCSTART- -X- -X- O

    U.N. NNP I-NP I-ORG
    official NN I-NP O
    Ekeus NNP I-NP I-PER

Columns are cut at tabs, where a line has any, or else at spaces; all rows of a sentence have as many. The first is the
token and the last one the tag, unless a comment such as `# global.columns = ID FORM NER` names them (CoNLL-U Plus:
https://universaldependencies.org/ext-format.html). Where the first one numbers the tokens, the second is the token, and
the tag is in the last one that has nothing but tags, as Universal NER has it. What tags mean: see `tags`.

Files don't have the text: it is the tokens with one space between them. After -DOCSTART-, `meta.doc` is the number of
the document; `split_by: doc` keeps its sentences in one split.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from labelwise.annotations import Found, Problem, Reason
from labelwise.corpus.tasks import DOCUMENT
from labelwise.sources.tags import OUTSIDE, PREFIXED, tagged_task

DOCUMENT_START = "-DOCSTART-"
WHITE = " \t\r\n\f\v"  # a line of nothing else is blank
HEAD = 1000  # lines that tell the layout of a file
NAMED_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*([^\t]+)")
# Such as `# sent_id = 3`, `# id 5b4a domain=train`, or `#begin document (a); part 000`, unless the columns fit.
COMMENT = re.compile(r"#\s*\S+\s*=.*|#\s*|#(?:begin|end) document.*|# .*")
TOKENS, TAGS = ("FORM", "TOKEN", "WORD"), ("NER", "TAG", "NER_TAG", "LABEL")
SPACES = re.compile("[ \t]+")
NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes, as `surrogateescape` decodes them
FIRST = re.compile(r"[01]($|[-.])")  # the number of a sentence's first token

NumberedRow = tuple[int, list[str]]  # the number of a line, and its columns
Columns = tuple[int, int]  # of the token and of the tag
Shape = tuple[bool, int]  # of a line: whether tabs separate its columns, and how many there are


class Layout(NamedTuple):
    """The layout of a file, as its first lines tell it.

    shape (Shape | None): of its first token; None if no line is certain to be one.
    numbered (bool): the first column numbers the tokens, from 1 in each sentence of several.
    """

    shape: Shape | None
    numbered: bool


def read_conll(path: Path) -> Iterator[Found]:
    """Yield the sentences of a file as tasks; a sentence with a line that can't be read is a problem of that line."""
    layout = _layout_of(_lines(path))
    named: Columns | None = None
    document = 0
    for blank, block in groupby(enumerate(_lines(path), 1), lambda item: not item[1].strip(WHITE)):
        lines = [] if blank else list(block)
        shape = next((shape_of(line) for _, line in lines if not is_marked(line)), layout.shape)
        rows: list[NumberedRow] = []
        problem = None
        for number, line in lines:
            if NOT_UTF8.search(line):
                problem = problem or Problem(number, Reason.MALFORMED, "not UTF-8")
            elif line.startswith(DOCUMENT_START):
                document += 1
            elif rows or not _is_comment(line, shape, named[1] if named else -1):
                rows.append((number, cells_of(line)))
            elif found := NAMED_COLUMNS.fullmatch(line):
                named = _named_columns(found[1].split())
        if problem or rows:
            columns = named or (_numbered_columns([cells for _, cells in rows]) if layout.numbered else (0, -1))
            yield problem or _read_sentence(rows, columns, document)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, without their ends, which are LF, CR, or CRLF."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for line in file:
            yield line.removesuffix("\n")


def cells_of(line: str) -> list[str]:
    """Cut a line into its columns; a tab at its end is none."""
    cells = line.split("\t") if "\t" in line else SPACES.split(line.strip(" "))
    return cells[:-1] if len(cells) > 2 and not cells[-1] else cells


def shape_of(line: str) -> Shape:
    """Return what all lines of a sentence share: whether tabs separate their columns, and how many there are."""
    return "\t" in line, len(cells_of(line))


def is_marked(line: str) -> bool:
    """Tell whether a line may be something else than a token."""
    return line.startswith(("#", DOCUMENT_START))


def _layout_of(lines: Iterable[str]) -> Layout:
    """Find out the layout of a file."""
    shape, numbered = None, None
    for blank, block in groupby(islice(lines, HEAD), lambda line: not line.strip(WHITE)):
        tokens = [line for line in block if not blank and not is_marked(line)]
        shape = shape or (shape_of(tokens[0]) if tokens else None)
        rows = [cells_of(line) for line in tokens]
        if len(rows) > 1 and numbered is None:
            numbered = all(len(cells) > 2 and cells[0] == str(place) for place, cells in enumerate(rows, 1))
        elif len(rows) > 1:  # numbers such as 2-3 and 4.1 may follow
            numbered = numbered and bool(FIRST.match(rows[0][0]))
    return Layout(shape, bool(numbered))


def _is_comment(line: str, shape: Shape | None, tag: int) -> bool:
    """Tell whether a line before the tokens of a sentence is a comment: it isn't if its columns fit, and end in a tag.

    shape (Shape | None): of the tokens; None if that isn't known.
    tag (int): the column of tags.
    """
    if not COMMENT.fullmatch(line):
        return False
    cells = cells_of(line)
    if len(cells) < 2 or len(cells) <= tag or shape not in (None, shape_of(line)):
        return True
    label = cells[tag].strip()
    return label not in OUTSIDE and not PREFIXED.fullmatch(label)


def _numbered_columns(rows: Sequence[Sequence[str]]) -> Columns:
    """Find the tags of a sentence whose tokens are numbered: the last column with nothing else."""
    width = min(map(len, rows), default=0)
    tags = [
        place
        for place in range(2, width)
        if all(cells[place] == "O" or PREFIXED.fullmatch(cells[place]) for cells in rows)
    ]
    return 1, tags[-1] if tags else -1


def _named_columns(names: Sequence[str]) -> Columns:
    """Find token and tag among the names of columns; the first and the last one, if there is none of a known name."""
    names = [name.upper().rpartition(":")[2] for name in names]
    token = next((place for place, name in enumerate(names) if name in TOKENS), 0)
    return token, next((place for place, name in enumerate(names) if name in TAGS), -1)


def _read_sentence(rows: Sequence[NumberedRow], columns: Columns, document: int) -> Found:
    """Make a task of a sentence; its line is that of its first token."""
    token, tag = columns
    for number, cells in rows:
        if len(cells) < 2 or len(cells) <= max(token, tag):
            return Problem(number, Reason.MALFORMED, "no tag; a line has a token and its tag")
        if len(cells) != len(rows[0][1]):
            first = f"the sentence's first line has {len(rows[0][1])}"
            return Problem(number, Reason.MALFORMED, f"{len(cells)} columns, where {first}")
    words, tags = ([cells[place].strip() for _, cells in rows] for place in columns)
    return tagged_task(rows[0][0], words, tags, {DOCUMENT: str(document)} if document else None)

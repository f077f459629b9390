"""Read CoNLL files: a token and its tag a line, a blank line after each sentence, which becomes a text.

    -DOCSTART- -X- -X- O

    U.N. NNP I-NP I-ORG
    official NN I-NP O
    Ekeus NNP I-NP I-PER

Columns are cut at tabs, where a line has any, or else at spaces; all rows of a sentence have as many. The first is the
token and the last one the tag, unless a comment such as `# global.columns = ID FORM NER` names them (CoNLL-U Plus:
https://universaldependencies.org/ext-format.html). Where the first one numbers the tokens, the second is the token, and
the tag is in the last one that has nothing but tags, as Universal NER has it.

Tags are read as conlleval reads them (https://www.clips.uantwerpen.be/conll2002/ner/bin/conlleval.txt), so that all of
BIO (also called IOB2), IOB1, BILOU (BILUO, BIOES, IOBES), and labels alone mean what they say: B, U and S begin a span,
and so does any tag after another label or outside; L, E, U and S end it.

Files don't have the text: it is the tokens with one space between them. After -DOCSTART-, `meta.doc` is the number of
the document; `split_by: doc` keeps its sentences in one split.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from pathlib import Path

from labelwise.sources.conll_columns import (
    DOCUMENT_START,
    NAMED_COLUMNS,
    OUTSIDE,
    PREFIXED,
    WHITE,
    Columns,
    cells_of,
    is_comment,
    is_marked,
    layout_of,
    named_columns,
    numbered_columns,
    shape_of,
)
from labelwise.sources.items import Item
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

NumberedRow = tuple[int, list[str]]  # the number of a line, and its columns


def read_conll(path: Path) -> Iterator[Item]:
    """Yield the sentences of a file as tasks; a sentence with a line that can't be read is a problem of that line."""
    layout = layout_of(_lines(path))
    named: Columns | None = None
    document = 0
    for blank, block in groupby(enumerate(_lines(path), 1), lambda item: not item[1].strip(WHITE)):
        lines = [] if blank else list(block)
        shape = layout.shape
        if lines and is_marked(lines[0][1]):
            shape = next((shape_of(line) for _, line in lines if not is_marked(line)), shape)
        rows: list[NumberedRow] = []
        problem = None
        for number, line in lines:
            if not line.isascii() and (why := _not_utf8(line)):
                problem = problem or Item(number, None, f"malformed: not UTF-8 ({why})")
            elif line.startswith(DOCUMENT_START):
                document += 1
            elif rows or not is_comment(line, shape, named[1] if named else -1, layout):
                rows.append((number, cells_of(line)))
            elif found := NAMED_COLUMNS.fullmatch(line):
                named = named_columns(found[1].split())
        if problem or rows:
            columns = named or (numbered_columns([cells for _, cells in rows]) if layout.numbered else (0, -1))
            yield problem or _read_sentence(rows, columns, document)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, which end in LF, CR, CRLF, or CR CRLF, as CRLF becomes where it is converted again."""
    after_cr = False
    with path.open(encoding="utf8", errors="surrogateescape", newline="") as file:
        for line in file:
            if not (after_cr and line == "\r\n"):
                yield line.removeprefix("\ufeff").rstrip("\r\n")
            after_cr = line.endswith("\r")


def _not_utf8(line: str) -> str:
    """Say why the bytes of a line aren't UTF-8; empty if they are."""
    try:
        line.encode("utf8", "surrogateescape").decode("utf8")
    except UnicodeDecodeError as error:
        return error.reason
    return ""


def _read_sentence(rows: Sequence[NumberedRow], columns: Columns, document: int) -> Item:
    """Make a task of a sentence; its line is that of its first token."""
    token, tag = columns
    for number, cells in rows:
        if len(cells) < 2 or len(cells) <= max(token, tag):
            return Item(number, None, "malformed: no tag; a line has a token and its tag")
        if len(cells) != len(rows[0][1]):
            first = f"the sentence's first line has {len(rows[0][1])}"
            return Item(number, None, f"malformed: {len(cells)} columns, where {first}")
    task, problem = make_task([cells[token].strip() for _, cells in rows], [cells[tag].strip() for _, cells in rows])
    if task and document:
        task.meta = {DOCUMENT: str(document)}
    return Item(rows[0][0], task, problem)


def make_task(words: Sequence[str], tags: Sequence[str]) -> tuple[Task | None, str]:
    """Make a task of tokens and their tags: the text has one space between them; or say that there is no text."""
    text = " ".join(words)
    if not text.strip():
        return None, "no text"
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    spans = [TaskSpan(starts[start], starts[end] - 1, label) for start, end, label in decode_tags(tags)]
    return Task(text, spans, view_id="spans_manual"), ""


def decode_tags(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans that tags stand for, in tokens.

    >>> list(decode_tags(["I-PER", "I-PER", "B-PER", "O", "U-LOC", "ORG"]))
    [(0, 2, 'PER'), (2, 3, 'PER'), (4, 5, 'LOC'), (5, 6, 'ORG')]
    """
    start, within = 0, ""  # the label of the span that tokens are in
    for place, tag in enumerate([*tags, "O"]):
        found = PREFIXED.fullmatch(tag)
        prefix, label = (found[1], found[2]) if found else ("I", "" if tag in OUTSIDE else tag)
        if within and (label != within or prefix in "BUS"):
            yield start, place, within
            within = ""
        if label and not within:
            start, within = place, label
        if within and prefix in "LEUS":
            yield start, place + 1, within
            within = ""

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

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from pathlib import Path

from labelwise.sources.items import Item
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

SUFFIXES = (".conll", ".bio", ".iob", ".iob2", ".bioes", ".iobes", ".bilou")
BOM = b"\xef\xbb\xbf"
NAMED_COLUMNS = re.compile(r"#\s*global\.columns\s*=\s*(.+)")
# Such as `# sent_id = 3`, `# id 5b4a domain=train`, or `#begin document (a); part 000`; `#` with a tag is a token.
COMMENT = re.compile(r"#\s*\S+\s*=.*|#\s*|#(?:begin|end) document.*|# .*(?<![ \t]O)(?<![ \t]_)")
TOKENS, TAGS = ("FORM", "TOKEN", "WORD"), ("NER", "TAG", "NER_TAG", "LABEL")
PREFIXED = re.compile(r"([BIUSLE])-(.+)", re.DOTALL)
SPACES = re.compile("[ \t]+")
OUTSIDE = ("O", "_", "-", "")

Columns = tuple[int, int]  # of the token and of the tag
NumberedRow = tuple[int, list[str]]  # the number of a line, and its columns


def read_conll(path: Path) -> Iterator[Item]:
    """Yield the sentences of a file as tasks; a sentence with a line that can't be read is a problem of that line."""
    columns: Columns | None = None
    document, numbered_tokens = 0, _is_numbered(path)
    with path.open("rb") as file:
        numbered = enumerate((line.removeprefix(BOM) for line in file), 1)
        for blank, lines in groupby(numbered, lambda item: not item[1].strip()):
            rows: list[NumberedRow] = []
            problem = None
            for number, content in () if blank else lines:
                try:
                    line = content.decode("utf8").strip("\r\n")
                except UnicodeDecodeError as error:
                    problem = problem or Item(number, None, f"malformed: not UTF-8 ({error.reason})")
                    continue
                if line.startswith("-DOCSTART-"):
                    document += 1
                elif not rows and (found := NAMED_COLUMNS.fullmatch(line)):
                    columns = _named_columns(found[1].split())
                elif rows or not _is_comment(line):
                    rows.append((number, _cells(line)))
            if problem or rows:
                place = columns or (_numbered_columns(rows) if numbered_tokens else (0, -1))
                yield problem or _read_sentence(rows, place, document)


def _cells(line: str) -> list[str]:
    """Cut a line into its columns; a tab at its end is none."""
    cells = line.split("\t") if "\t" in line else SPACES.split(line.strip(" "))
    return cells[:-1] if len(cells) > 2 and not cells[-1] else cells


def _is_comment(line: str) -> bool:
    return bool(COMMENT.fullmatch(line)) and not (line.startswith("# ") and PREFIXED.fullmatch(_cells(line)[-1]))


def _is_numbered(path: Path) -> bool:
    """Tell whether the first column numbers the tokens, by the first sentence of several."""
    rows: list[list[str]] = []
    with path.open("rb") as file:
        for content in file:
            line = content.removeprefix(BOM).decode("utf8", "replace").strip("\r\n")
            if line.strip() and (rows or not (_is_comment(line) or line.startswith("-DOCSTART-"))):
                rows.append(_cells(line))
            elif not line.strip():
                if len(rows) > 1:
                    break
                rows = []
    return len(rows) > 1 and all(len(row) > 2 and row[0] == str(n) for n, row in enumerate(rows, 1))


def _numbered_columns(rows: Sequence[NumberedRow]) -> Columns:
    """Find the tags of a sentence whose tokens are numbered: the last column with nothing else."""
    width = min(len(cells) for _, cells in rows)
    tags = [
        place
        for place in range(2, width)
        if all(cells[place] == "O" or PREFIXED.fullmatch(cells[place]) for _, cells in rows)
    ]
    return 1, tags[-1] if tags else -1


def _named_columns(names: Sequence[str]) -> Columns:
    """Find token and tag among the names of columns; the first and the last one, if there is none of a known name."""
    names = [name.upper().rpartition(":")[2] for name in names]
    token = next((place for place, name in enumerate(names) if name in TOKENS), 0)
    return token, next((place for place, name in enumerate(names) if name in TAGS), -1)


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

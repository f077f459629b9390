"""A second count of CoNLL and WebAnno files from their bytes: what a reader must find.

CoNLL's shares the division into columns with the reader. Of lines that begin with `#`, it counts only certain tokens,
so a file may have more, never less.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import groupby
from pathlib import Path

from labelwise.annotations import Item, Reason, Task
from labelwise.sources.conll_layout import DOCUMENT_START, WHITE, cells_of, is_marked, shape_of
from labelwise.sources.tags import BEGINS

ROW = re.compile(rb"[0-9]+-[0-9.]+\t")
ESCAPED = re.compile(rb"\\.", re.DOTALL)
NUMBER = re.compile(rb"\[[0-9]+\]$")


# A blank line, or one that begins a document or a sentence; and a line of CoNLL-U that isn't a word.
BETWEEN = re.compile(rf"[{WHITE}]*\Z|-DOCSTART-|#\s*(?:sent_id|newdoc id|(?:\w+:)?document_id)\s*=|#begin document")
REPEATED = re.compile(r"\d+[-.]\d+\s")


def lost_of_conll(path: Path, items: Iterable[Item], tag: int | None = -1) -> Counter[str]:
    """Count the file's spans that the read items lack.

    tag (int | None): column of tags; None counts no tag.
    """
    read = {item.line: item for item in items}
    lost: Counter[str] = Counter()
    with path.open(encoding="utf8", errors="surrogateescape") as file:
        lines = [line.removeprefix("\ufeff").rstrip("\n") for line in file]
    for blank, block in groupby(enumerate(lines, 1), lambda numbered: BETWEEN.match(numbered[1]) is not None):
        sentence = dict(block)
        names = [*sentence] == [1] and sentence[1].isupper()  # of columns, as in HIPE's files
        if blank or names or all(map(is_marked, sentence.values())):
            continue
        item = next((read[number] for number in sentence if number in read), None)
        lost["sentences"] += item is None
        if isinstance(item, Task):
            tokens = sum(not is_marked(line) and not REPEATED.match(line) for line in sentence.values())
            lost["tokens"] += max(tokens - item.text.count(" ") - 1, 0)
            begun = 0 if tag is None else _count_begun(list(sentence.values()), tag)
            lost["tags"] += max(begun - len(item.spans), 0)
    return +lost


def _count_begun(lines: list[str], tag: int) -> int:
    """Count a sentence's tags that begin a span."""
    begun = 0
    for line in lines:
        cells = cells_of(line)
        if line.startswith(DOCUMENT_START) or len(cells) <= max(tag, 1) or not BEGINS.match(cells[tag].strip()):
            continue
        begun += not is_marked(line) or (tag == -1 and shape_of(line) == shape_of(lines[-1]))
    return begun


def lost_of_webanno(path: Path, items: Iterable[Item], columns: Collection[int]) -> Counter[str]:
    """Count the file's annotations that the read task lacks.

    columns (Collection[int]): columns of features with labels, from 0.
    """
    document, *problems = items
    if not isinstance(document, Task):
        return Counter()
    rows = [line.split(b"\t") for line in path.read_bytes().splitlines() if ROW.match(line)]
    single, numbered = 0, set()  # those with the same number in a column are one
    for row in rows:
        for column in columns:
            cell = ESCAPED.sub(b"x", row[column + 3]) if column + 3 < len(row) else b"_"
            for value in cell.split(b"|") if cell != b"_" else ():
                if number := NUMBER.search(value):
                    numbered.add((column, number[0]))
                else:
                    single += bool(value)
    invalid = sum(problem.reason == Reason.INVALID for problem in problems) + len(document.unusable)
    return +Counter(annotations=single + len(numbered) - len(document.spans) - invalid)

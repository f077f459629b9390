"""A second count of a WebAnno file, straight from its bytes: sentences, annotations, and the characters of these."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from labelwise.sources.items import Item
from labelwise.sources.webanno import unescape

ROW = re.compile(rb"[0-9]+-[0-9.]+\t")
TEXT = b"#Text="
ESCAPED = re.compile(rb"\\.", re.DOTALL)
NUMBER = re.compile(rb"\[[0-9]+\]$")


def count_lost(path: Path, items: Iterable[Item], columns: Collection[int]) -> Counter[str]:
    """Count what a file has and the task that was read of it lacks.

    Characters are compared where all values can be read, and offsets count the same in every unit.

    columns (Collection[int]): those of features that have labels, from 0.
    """
    document, *problems = items
    task = document.task
    if task is None:
        return Counter()
    lines = path.read_bytes().splitlines()
    texts = [line.removeprefix(TEXT) for line in lines if line.startswith(TEXT)]
    extents = _extents([line.split(b"\t") for line in lines if ROW.match(line)], columns)
    text, spans = task.text or "", task.spans or ()
    invalid = sum(item.problem.startswith("invalid") for item in problems)
    lost = Counter(sentences=len(texts) - _count_texts(texts, text), annotations=len(extents) - len(spans) - invalid)
    if not invalid and max(text) <= "\uffff":
        covered = sum(span.end - span.start for span in spans)
        lost["characters"] = sum(end - start for start, end in extents) - covered
    return +lost


def _count_texts(texts: Sequence[bytes], whole: str) -> int:
    """Count the sentences that a text has one after another, apart from white space."""
    bare, place, read = "".join(whole.split()), 0, 0
    for text in texts:
        sentence = "".join(unescape(text.decode()).split())
        if bare.startswith(sentence, place):
            place += len(sentence)
            read += 1
    return read


def _extents(rows: Iterable[Sequence[bytes]], columns: Collection[int]) -> list[tuple[int, int]]:
    """List the annotations, each from its first offset to its last: those with the same number in a column are one."""
    single: list[tuple[int, int]] = []
    numbered: dict[tuple[int, bytes], tuple[int, int]] = {}
    for row in rows:
        start, end = map(int, row[1].split(b"-"))
        for column in columns:
            cell = ESCAPED.sub(b"x", row[column + 3]) if column + 3 < len(row) else b"_"
            for value in cell.split(b"|") if cell != b"_" else ():
                if number := NUMBER.search(value):
                    first, last = numbered.get((column, number[0]), (start, end))
                    numbered[column, number[0]] = min(first, start), max(last, end)
                elif value:
                    single.append((start, end))
    return [*single, *numbered.values()]

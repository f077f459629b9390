"""A second count of a WebAnno file, straight from its bytes: its sentences, rows of tokens, and annotations."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from labelwise.sources.items import Item, miscounted
from labelwise.sources.prodigy import Task
from labelwise.sources.webanno_cells import unescape

ROW = re.compile(rb"[0-9]+-[0-9.]+\t")
TEXT = b"#Text="
ESCAPED = re.compile(rb"\\.", re.DOTALL)
NUMBER = re.compile(rb"\[[0-9]+\]$")


def compare(path: Path, columns: Collection[int], task: Task, rows: int, invalid: int) -> Iterator[Item]:
    """Yield a problem if a file has more sentences, rows or annotations than were read of it.

    columns (Collection[int]): those of features that have labels.
    task (Task): made of the file.
    rows (int): that were read.
    invalid (int): annotations that were counted as such.
    """
    lines = path.read_bytes().splitlines()
    texts = [line.removeprefix(TEXT) for line in lines if line.startswith(TEXT)]
    found = [line.split(b"\t")[3:] for line in lines if ROW.match(line)]
    for there, what, read in (
        (len(texts), "sentences", _count_texts(texts, task.text or "")),
        (len(found), "rows of tokens", rows),
        (_count_annotations(found, columns), "annotations", len(task.spans or ()) + invalid),
    ):
        if there > read:
            yield miscounted(0, there, what, read)
            return


def _count_texts(texts: Sequence[bytes], whole: str) -> int:
    """Count the sentences that a text has one after another, apart from white space."""
    bare, place, read = "".join(whole.split()), 0, 0
    for text in texts:
        sentence = "".join(unescape(text.decode()).split())
        if bare.startswith(sentence, place):
            place += len(sentence)
            read += 1
    return read


def _count_annotations(rows: Sequence[Sequence[bytes]], columns: Collection[int]) -> int:
    """Count the annotations: those with the same number in a column are one."""
    single = 0
    numbered = set()
    for row in rows:
        for column in columns:
            cell = ESCAPED.sub(b"x", row[column]) if column < len(row) else b"_"
            for value in cell.split(b"|") if cell != b"_" else ():
                if number := NUMBER.search(value):
                    numbered.add((column, number[0]))
                else:
                    single += value != b""
    return single + len(numbered)

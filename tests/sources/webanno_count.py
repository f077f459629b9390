"""A second count of the annotations of a WebAnno file, straight from its bytes."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from labelwise.sources.items import Item

ROW = re.compile(rb"[0-9]+-[0-9.]+\t")
ESCAPED = re.compile(rb"\\.", re.DOTALL)
NUMBER = re.compile(rb"\[[0-9]+\]$")


def count_lost(path: Path, items: Iterable[Item], columns: Collection[int]) -> Counter[str]:
    """Count the annotations that a file has and the task that was read of it lacks.

    columns (Collection[int]): those of features that have labels, from 0.
    """
    document, *problems = items
    if document.task is None:
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
    invalid = sum(item.problem.startswith("invalid") for item in problems)
    return +Counter(annotations=single + len(numbered) - len(document.task.spans or ()) - invalid)

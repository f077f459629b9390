"""The items of a source, whatever its format: one task after another, or why there is none."""

from typing import NamedTuple

from labelwise.sources.prodigy import Task


class Item(NamedTuple):
    """One line, or a unit that counts as one: a task with a text, a problem, or nothing (a blank line).

    line (int): from 1.
    problem (str): why the row, or a span of it, can't be used.
    file (str): where the problem is, if the source is a folder.
    """

    line: int
    task: Task | None
    problem: str = ""
    file: str = ""

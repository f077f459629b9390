"""The items of a source, whatever its format: one task after another, or why there is none."""

from typing import NamedTuple

from labelwise.sources.prodigy import Task

MISCOUNTED = "miscounted"  # the outcome of a file, or a row, that has more than was read of it


class Item(NamedTuple):
    """One line, or a unit that counts as one: a task with a text, a problem, nothing (a blank line), or the first two.

    line (int): from 1.
    problem (str): why the row, or a span of it, can't be used.
    file (str): where the problem is, if the source is a folder.
    """

    line: int
    task: Task | None
    problem: str = ""
    file: str = ""


def miscounted(line: int, there: int, what: str, read: int) -> Item:
    """Make the problem of a file, or a row, that has more than was read of it.

    line (int): where the first of it that wasn't read is; 0 if that isn't known.
    there (int): how many there are, by a count of its own, straight from the file's content.
    what (str): what was counted, such as "sentences".
    """
    return Item(line, None, f"{MISCOUNTED}: {there:,} {what}, of which {read:,} were read")

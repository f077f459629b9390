"""The items of a source, whatever its format: one task after another, or why there is none."""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from labelwise.base.text import State
from labelwise.corpus.tasks import REJECTED, UNCOVERED
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

MISCOUNTED = "miscounted"  # the outcome of a file, or a row, that has more than was read of it


class Item(NamedTuple):
    """One line, or a unit that counts as one: a task with a text, a problem, nothing (a blank line), or the first two.

    line (int): from 1.
    problem (str): why the row, or a span of it, can't be used.
    """

    line: int
    task: Task | None
    problem: str = ""


def miscounted(line: int, there: int, what: str, read: int) -> Item:
    """Make the problem of a file, or a row, that has more than was read of it.

    line (int): where the first of it that wasn't read is; 0 if that isn't known.
    there (int): how many there are, by a count of its own, straight from the file's content.
    what (str): what was counted, such as "sentences".
    """
    return Item(line, None, f"{MISCOUNTED}: {there:,} {what}, of which {read:,} were read")


def name_of(task: Mapping[str, Any], data: Mapping[str, Any], text: str) -> str | None:
    """Name the document that a text is: as its data say, such as our exports have them, or else by the task's id."""
    name = data.get(DOCUMENT)
    if isinstance(name, str) and name and name != text:
        return name
    return str(task["id"]) if "id" in task else None


def uncovered_of(data: Mapping[str, Any]) -> dict[str, State] | None:
    """Return the labels that a text isn't complete for, if its data say so, as our exports do."""
    found = data.get(UNCOVERED)
    if not isinstance(found, dict):
        return None
    return {label: state for label, state in found.items() if state in get_args(State)} or None


def rejected_of(data: Mapping[str, Any]) -> list[TaskSpan]:
    """List the spans that annotators rejected, if a text's data have them, as our exports do."""
    found = data.get(REJECTED)
    spans = (one for one in found if isinstance(one, list) and len(one) == 3) if isinstance(found, list) else ()
    return [TaskSpan(start, end, label, "reject") for start, end, label in spans]

"""What our exports have other tools carry along with a text: its document, and the labels it isn't complete for."""

from collections.abc import Mapping
from typing import Any, get_args

from labelwise.corpus.tasks import UNCOVERED
from labelwise.sources.prodigy import DOCUMENT
from labelwise.text import State


def name_of(task: Mapping[str, Any], data: Mapping[str, Any], text: str) -> str | None:
    """Name the document that a text is: as its data say, or else by the task's id."""
    name = data.get(DOCUMENT)
    if isinstance(name, str) and name and name != text:
        return name
    return str(task["id"]) if "id" in task else None


def uncovered_of(data: Mapping[str, Any]) -> dict[str, State] | None:
    """Return the labels that a text isn't complete for, if its data say so."""
    found = data.get(UNCOVERED)
    if not isinstance(found, dict):
        return None
    return {label: state for label, state in found.items() if state in get_args(State)} or None

"""The keys of rows of JSON: those that distinguish formats, and those that our own exports add to any of them.

    {"text": "Add 5 mL", "spans": [...], "answer": "accept"}      Prodigy's
    {"text": "Add 5 mL", "label": [[4, 8, "Amount"]]}             doccano's
    {"tokens": ["Add", "5"], "ner_tags": ["O", "B-Amount"]}       tokens and tags

A row without any of them, such as `{"text": "Add"}`, is Prodigy's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from labelwise.annotations import DOCUMENT, REJECTED, UNCOVERED, Problem, Reason
from labelwise.base.text import State
from labelwise.sources.clean import ANSWERS, RawSpan
from labelwise.sources.tags import OUTSIDE

Shape = Literal["prodigy", "doccano", "tags"]

PRODIGYS = {"spans", "_input_hash", "_task_hash", "_view_id", "_session_id", "_annotator_id", "_timestamp"}
# doccano's, and those of similar tools: `Doc.to_json` of spaCy writes "ents".
LISTS, TEXTS = ("label", "labels", "entities", "ents"), ("text", "data")
STARTS, ENDS = ("start", "start_offset", "start_char", "begin"), ("end", "end_offset", "end_char", "stop")
NAMES = ("label", "labels", "type", "entity", "entity_group", "entity_type", "category", "class", "tag")
TOKENS, TAGS = ("tokens", "words"), ("ner_tags", "ner", "tags", "labels")


def shape_of(row: Any) -> Shape | None:
    """Name the tool whose keys a row has; None if no key is a tool's."""
    if not isinstance(row, dict):
        return None
    if PRODIGYS & row.keys() or row.get("answer") in ANSWERS:
        return "prodigy"
    if tags_of(row) is not None:
        return "tags"
    return "doccano" if marked_lists(row) is not None else None


def find_contradiction(row: Any) -> str:
    """Explain why the keys of a row can't belong to one format; empty if they can."""
    if not isinstance(row, dict):
        return ""
    tags, marked = tags_of(row), next(filter(None, marked_lists(row) or ()), [])
    # Prodigy's tasks may have a list of the labels that were shown.
    spans = any(isinstance(one, list | dict) for one in marked)
    if shape_of(row) != "prodigy":
        return "its labels are those of the text, and have no offsets" if marked and not spans and tags is None else ""
    if spans or (tags is not None and not row.get("spans") and any(tag not in (*OUTSIDE, 0) for tag in tags)):
        return "it has Prodigy's keys, and other annotation under another tool's; keep one of the two"
    return ""


def marked_lists(row: Mapping[str, Any]) -> list[list[Any]] | None:
    """Return the lists under doccano's keys; none if all of these are null, and None if the row isn't doccano's."""
    if not any(isinstance(row.get(key), str) for key in TEXTS):
        return None
    found = [row[key] for key in LISTS if isinstance(row.get(key), list)]
    null = any(row.get(key, ...) is None for key in LISTS)
    return found if found or null or isinstance(row.get("annotations"), list) else None


def tags_of(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the tags of a row that has tokens; None if it hasn't both."""
    tokens, tags = first_of(row, TOKENS), first_of(row, TAGS)
    if not isinstance(tokens, list) or not isinstance(tags, list):
        return None
    # Beside a text, lists may have another meaning, such as spans.
    kinds = (str, int) if "text" in row else object
    is_it = all(isinstance(token, str) for token in tokens) and all(isinstance(tag, kinds) for tag in tags)
    return tags if is_it else None


def first_of(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value of the first of some keys that a row has; None without any."""
    return next((row[key] for key in keys if key in row), None)


def no_text(line: int, row: Mapping[str, Any]) -> Problem:
    """Make the problem of a row without a text, which names the row's keys."""
    there = ", ".join(sorted(row)[:8])
    return Problem(line, Reason.NO_TEXT, f"its keys are {there}" if there and "text" not in row else "")


def name_of(row: Mapping[str, Any], data: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the name of a document, as a part of `meta`: that in its data, or else the row's id."""
    name = data.get(DOCUMENT)
    if isinstance(name, str) and name and name != text:
        return {DOCUMENT: name}
    return {DOCUMENT: str(row["id"])} if "id" in row else {}


def uncovered_of(data: Mapping[str, Any]) -> dict[str, State]:
    """Return the labels that a text isn't complete for, if its data say so."""
    found = data.get(UNCOVERED)
    states = found.items() if isinstance(found, dict) else ()
    return {label: state for label, state in states if state in get_args(State)}


def rejected_of(data: Mapping[str, Any]) -> list[RawSpan]:
    """List the spans that annotators rejected, if a text's data have them."""
    found = data.get(REJECTED)
    spans = (one for one in found if isinstance(one, list) and len(one) == 3) if isinstance(found, list) else ()
    return [RawSpan(start, end, label, "reject") for start, end, label in spans]

"""Read a row of JSONL by its own keys, whatever the rows beside it are.

    {"text": "Add 5 mL", "spans": [...], "answer": "accept"}      Prodigy's
    {"text": "Add 5 mL", "label": [[4, 8, "Amount"]]}             doccano's
    {"tokens": ["Add", "5"], "ner_tags": ["O", "B-Amount"]}       tokens and tags

A row whose keys contradict one another is of no format that can be known: it is counted as `other format`. One whose
keys say nothing, such as `{"text": "Add"}`, is Prodigy's.

Rows with Prodigy's keys alone are decoded once, without their tokens; others, once more, with all that they have.
"""

import json
import re
from collections import Counter
from typing import Any, Literal

import msgspec

from labelwise.base.text import DECODE_ERRORS
from labelwise.sources.conll import OUTSIDE
from labelwise.sources.doccano import marked_lists, parse_doccano
from labelwise.sources.prodigy import ANSWERS, Task, check_text, parse_task
from labelwise.sources.tagged_rows import parse_tagged, tags_of

Shape = Literal["prodigy", "doccano", "tags"]

TOKENS_END = re.compile(rb'\}\],"[A-Za-z_]')
PRODIGYS = {"spans", "_input_hash", "_task_hash", "_view_id", "_session_id", "_annotator_id", "_timestamp"}


class _Row(Task, omit_defaults=True):
    """A task with the keys of other formats' annotation; False, which no row has, where one is absent."""

    label: Any = False
    labels: Any = False
    entities: Any = False
    annotations: Any = False
    ner_tags: Any = False
    ner: Any = False
    tags: Any = False


_decode = msgspec.json.Decoder(_Row).decode


def parse_row(row: bytes) -> tuple[Task | None, str]:
    """Decode a row, or say why it can't be used; see `prodigy.parse_task`."""
    short = without_tokens(row)
    if _may_repeat(short) and (key := find_repeated(row)):
        return None, f"malformed: {key!r} is there twice; write it once"
    try:
        task = _decode(short)
        # One comparison, as nearly all rows come this way; all are False.
        if (
            task.label is task.labels is task.entities is task.annotations is task.ner_tags is task.ner is task.tags
        ) and task.label is False:
            return check_text(task)
    except msgspec.ValidationError:  # as Prodigy's
        pass
    except DECODE_ERRORS:
        return None, "bad JSON"
    try:
        content = msgspec.json.decode(row)
    except DECODE_ERRORS:
        return None, "bad JSON"
    if key := find_repeated(row):
        return None, f"malformed: {key!r} is there twice; write it once"
    if contradiction := find_contradiction(content):
        return None, f"other format: {contradiction}"
    shape = shape_of(content)
    if shape == "tags":
        return parse_tagged(content)
    return parse_doccano(content) if shape == "doccano" else parse_task(row)


def without_tokens(row: bytes) -> bytes:
    """Cut the tokens, nine tenths of a row, out of one that is written as Prodigy does it.

    They have no list inside, and `]` ends them: were it a part of a string, the quote behind it would end that, and no
    letter could follow.
    """
    start = row.find(b',"tokens":[{')
    end = row.find(b"]", start)
    if start > 0 and TOKENS_END.match(row, end - 1) and row.find(b"[", start + len(b',"tokens":['), end) < 0:
        return row[:start] + row[end + 1 :]
    return row


def _may_repeat(row: bytes) -> bool:
    """Tell whether a row of Prodigy's may have a key twice. With tokens it is as Prodigy wrote it, from a dict."""
    return b'"tokens"' not in row and any(row.count(key) > 1 for key in (b'"text"', b'"spans"', b'"answer"'))


def find_repeated(row: bytes) -> str:
    """Find a key that an object in JSON has twice, of which decoders take the last; empty if there is none."""

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object of its keys and values."""
        found = dict(pairs)
        if len(found) < len(pairs):
            raise KeyError(next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1))
        return found

    try:
        json.loads(row, object_pairs_hook=check)
    except KeyError as error:
        return str(error.args[0])
    except (ValueError, RecursionError):
        return ""
    return ""


def shape_of(row: Any) -> Shape | None:
    """Tell whose keys a row has; None if they say nothing."""
    if not isinstance(row, dict):
        return None
    if PRODIGYS & row.keys() or row.get("answer") in ANSWERS:
        return "prodigy"
    if tags_of(row) is not None:
        return "tags"
    return "doccano" if marked_lists(row) is not None else None


def find_contradiction(row: Any) -> str:
    """Say why the keys of a row can't be of one format; empty if they can."""
    if not isinstance(row, dict):
        return ""
    tags, marked = tags_of(row), next(filter(None, marked_lists(row) or ()), [])
    # Prodigy's tasks may have a list of the labels that were shown.
    spans = any(isinstance(one, list | dict) for one in marked)
    if shape_of(row) != "prodigy":
        return "its labels are the text's, and have no offsets" if marked and not spans and tags is None else ""
    if spans or (tags is not None and not row.get("spans") and any(tag not in (*OUTSIDE, 0) for tag in tags)):
        return "it has Prodigy's keys, and other annotation in those of another tool; keep one of them"
    return ""

"""Read Prodigy tasks, without what the project doesn't need, and compute the hashes that Prodigy gives them.

A task is one line of JSONL:

    {"text": "Add 5 mL", "tokens": [...], "spans": [{"start": 4, "end": 8, "label": "Amount"}], "answer": "accept",
     "_view_id": "ner_manual", "_input_hash": 1903341263, "_task_hash": -1016463132, "_timestamp": 1700000000}

`tokens`, the bulk of the bytes, are skipped by the decoder, and so is `token_end`, which recipes write in different
ways: only character offsets count. The interface: https://prodi.gy/docs/api-interfaces
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import murmurhash
import srsly

Kind = Literal["complete", "binary", "other"]
ANSWERS = ("accept", "reject", "ignore")

BOM = b"\xef\xbb\xbf"  # some editors begin a file with it
COMPLETE_VIEWS = ("ner_manual", "spans_manual", "blocks", None)
BINARY_VIEWS = ("ner", "spans")


class TaskSpan(msgspec.Struct):
    """A span of a task, as read: anything, so that a bad span doesn't cost its task. What is missing is None."""

    start: Any = None
    end: Any = None
    label: Any = None
    answer: Any = None  # old binary data answers each span


class Task(msgspec.Struct):
    """One answered question about one text.

    spans (list[TaskSpan] | None): None means that nothing was marked, just as an empty list does.
    answer (Any): one of ANSWERS, if it is right.
    no_missing (bool | None): old versions' switch for "what is unmarked is no entity".
    """

    text: str
    spans: list[TaskSpan] | None = None
    answer: Any = "accept"
    input_hash: Any = msgspec.field(default=None, name="_input_hash")
    timestamp: Any = msgspec.field(default=None, name="_timestamp")
    view_id: Any = msgspec.field(default=None, name="_view_id")
    reviewed_view_id: Any = msgspec.field(default=None, name="view_id")
    is_binary: Any = msgspec.field(default=None, name="_is_binary")
    no_missing: Any = None
    meta: Any = None


class _TextOnly(msgspec.Struct):
    text: str | None = None


class Row(NamedTuple):
    """Where a task lies in its file, `length` bytes from `offset` on line `line` (from 1), and its text or problem."""

    offset: int
    length: int
    line: int
    text: str | None
    problem: str


# What a decoder raises: bytes that aren't UTF-8 and deep nesting have exceptions of their own.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

task_decoder = msgspec.json.Decoder(Task)
_text_decoder = msgspec.json.Decoder(_TextOnly)


def read_text(line: bytes) -> tuple[str | None, str]:
    """Read a task's text alone, or say why it has none: "bad JSON" or "no text"."""
    try:
        text = _text_decoder.decode(line).text
    except DECODE_ERRORS:  # a text that is a number counts as bad too
        return None, "bad JSON"
    return (text, "") if text and text.strip() else (None, "no text")


def read_rows(path: Path) -> Iterator[Row]:
    """Yield each line's place and text; blank lines aren't rows."""
    offset = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            offset += len(line)
            row = line.removeprefix(BOM) if number == 1 else line
            if not row.isspace():
                yield Row(offset - len(row), len(row), number, *read_text(row))


def kind_of(task: Task) -> Kind:
    """Tell whether a task asked for everything at once ("complete") or for yes or no on its spans ("binary").

    A review is of the kind of what was reviewed. A task that doesn't say is binary if its spans carry answers. Tasks of
    other interfaces, such as `classification`, say nothing about spans ("other").
    """
    view = task.reviewed_view_id if task.view_id == "review" else task.view_id
    if view not in BINARY_VIEWS and view not in COMPLETE_VIEWS:
        return "other"
    if task.is_binary is not None:
        return "binary" if task.is_binary else "complete"
    if task.no_missing:
        return "complete"
    if view in BINARY_VIEWS or (view is None and any(span.answer is not None for span in task.spans or ())):
        return "binary"
    return "complete"


def input_hash(text: str) -> int:
    """Compute Prodigy's `_input_hash` of a task that has a text and no other input; 32 bits, signed, seed 0."""
    return murmurhash.hash("text=" + srsly.json_dumps(text, sort_keys=True), 0)


def task_hash(text_hash: int, spans: list[dict[str, Any]]) -> int:
    """Compute Prodigy's `_task_hash` of a task that has an input hash and spans and nothing else that counts."""
    return murmurhash.hash(str(text_hash) + "spans=" + srsly.json_dumps(spans, sort_keys=True), 0)

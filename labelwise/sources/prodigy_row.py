"""Convert Prodigy's row, the common form of all tools' rows, to a task.

    {"text": "Add 5 mL", "tokens": [...], "spans": [{"start": 4, "end": 8, "label": "Amount"}], "answer": "accept",
     "_view_id": "ner_manual", "_input_hash": 1903341263, "_task_hash": -1016463132, "_timestamp": 1700000000}

The decoder skips `tokens`, the bulk of the bytes, and `token_end`, inclusive in some recipes and exclusive in others:
only character offsets count. The interface: https://prodi.gy/docs/api-interfaces
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from labelwise.annotations import (
    DOCUMENT,
    PROBLEM,
    REJECTED,
    REVIEW,
    UNCOVERED,
    Item,
    Kind,
    Problem,
    Reason,
    Task,
    incomplete_read,
)
from labelwise.base.text import State
from labelwise.sources.clean import RawSpan, clean

COMPLETE_VIEWS = ("ner_manual", "spans_manual", "blocks", None)
BINARY_VIEWS = ("ner", "spans")
# Words between a label's tags, such as <PER> or <ENAMEX TYPE="PER">, but not <b>; or before its name, as in [Ann](PER).
HTML = "a abbr b big body center code div em font h[1-6] head html i li ol p pre q small span strong sub sup table"
HTML = "|".join(f"{HTML} tbody td th thead title tr u ul".split())
TAGGED = re.compile(rf"<(?!(?i:{HTML})[\s>])([A-Za-z][\w-]*)(?:\s[^<>]*)?>[^<>]+</\1>|\[[^\[\]]+\]\([A-Z][A-Z_-]+\)")


class ProdigyRow(msgspec.Struct, gc=False):
    """The used keys of a row.

    spans (list[RawSpan] | None): None, like [], means no annotation, in an answer.
    answer (Any): False if missing, which means "accept".
    no_missing (Any): old versions' switch for "unannotated tokens are outside".
    uncovered (dict | None): labels that it isn't complete for, in our exports.
    review (Any): whether it decides between several annotators, in our exports; like the interface `review`.
    problem (Problem | None): a problem of `convert-brat`, with its place: the row has no other key.
    """

    text: str | None = None
    spans: list[RawSpan] | None = None
    answer: Any = False
    label: Any = False
    timestamp: Any = msgspec.field(default=None, name="_timestamp")
    view_id: Any = msgspec.field(default=None, name="_view_id")
    reviewed_view_id: Any = msgspec.field(default=None, name="view_id")
    is_binary: Any = msgspec.field(default=None, name="_is_binary")
    annotator_id: Any = msgspec.field(default=None, name="_annotator_id")
    session_id: Any = msgspec.field(default=None, name="_session_id")
    no_missing: Any = None
    meta: Any = None
    uncovered: dict[str, State] | None = msgspec.field(default=None, name=UNCOVERED)
    review: Any = msgspec.field(default=None, name=REVIEW)
    problem: Problem | None = msgspec.field(default=None, name=PROBLEM)


class Converted(NamedTuple):
    """A row of another tool as Prodigy's.

    offsets (str): reading of its offsets; see `clean`.
    there (int): an independent count of its spans; 0 if nothing is counted.
    """

    row: ProdigyRow
    offsets: str = ""
    there: int = 0
    what: str = "spans"


def tasks_of(line: int, rows: Iterable[Converted | Problem]) -> Iterator[Item]:
    """Yield a row's tasks and problems, and a problem if a task has fewer spans than counted."""
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        task = task_of(line, row.row, row.offsets)
        yield task
        if isinstance(task, Task) and (read := len(task.all_spans)) < row.there:
            yield incomplete_read(line, row.there, row.what, read)


def task_of(line: int, row: ProdigyRow, offsets: str = "") -> Item:
    """Convert a row to a task, or without a text to a problem."""
    text = row.text
    if not text or text.isspace():
        return Problem(line, Reason.NO_TEXT)
    return clean(
        line,
        text,
        row.spans,
        answer="accept" if row.answer is False else row.answer,
        kind=kind_of(row),
        who=(row.annotator_id, row.session_id),
        when=row.timestamp,
        review=row.view_id == "review" or row.review is True,
        meta=row.meta,
        uncovered=row.uncovered,
        offsets=offsets,
    )


def kind_of(row: ProdigyRow) -> Kind:
    """Return whether a row asked for all spans ("complete") or for yes or no on its spans ("binary").

    A review has the kind of the reviewed tasks. A row without an interface is binary if its spans have answers or
    ranks. Rows of other interfaces, such as `classification`, say nothing about spans ("other"), but may have been made
    from annotated ones ("about spans"). A text alone is raw input ("unanswered"), unless annotations are written into
    it ("tags in text").
    """
    view = row.reviewed_view_id if row.view_id == "review" else row.view_id
    # Old versions name no interface: text classification shows matches of patterns as spans.
    matched = all(span.pattern is not None for span in row.spans or ())
    if (view is None and type(row.label) is str and matched) or view not in (*BINARY_VIEWS, *COMPLETE_VIEWS):
        return "other" if matched else "about spans"
    if row.is_binary is not None:
        return "binary" if row.is_binary else "complete"
    if row.no_missing:
        return "complete"
    seen = (row.view_id, row.session_id, row.annotator_id, row.timestamp)
    if not row.spans and row.answer is False and seen == (None,) * len(seen):
        if row.text and TAGGED.search(row.text):
            return "tags in text"
        if row.spans is None:
            return "unanswered"
    asked = any(span.answer is not None or span.rank is not None for span in row.spans or ())
    if view in BINARY_VIEWS or (view is None and asked):
        return "binary"
    return "complete"


def complete_row(
    text: str,
    spans: list[RawSpan],
    row: Mapping[str, Any],
    data: Mapping[str, Any],
    meta: Mapping[str, str] = {},
    **keys: Any,
) -> ProdigyRow:
    """Make the row of a text fully annotated by another tool; `data` is the part of `row` with the text."""
    name, uncovered, rejected = (data.get(key) for key in (DOCUMENT, UNCOVERED, REJECTED))
    if isinstance(name, str) and name and name != text:
        meta = {**meta, DOCUMENT: name}
    elif "id" in row:
        meta = {**meta, DOCUMENT: str(row["id"])}
    states = uncovered.items() if isinstance(uncovered, dict) else ()
    others = (
        (span for span in rejected if isinstance(span, list) and len(span) == 3) if isinstance(rejected, list) else ()
    )
    return ProdigyRow(
        text,
        [*spans, *(RawSpan(start, end, label, "reject") for start, end, label in others)],
        is_binary=False,
        meta=meta,
        uncovered={label: state for label, state in states if state in get_args(State)},
        **keys,
    )

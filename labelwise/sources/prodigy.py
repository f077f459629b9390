"""Read the parts of Prodigy tasks that the project needs.

A task is one line of JSONL:

    {"text": "Add 5 mL", "tokens": [...], "spans": [{"start": 4, "end": 8, "label": "Amount"}], "answer": "accept",
     "_view_id": "ner_manual", "_input_hash": 1903341263, "_task_hash": -1016463132, "_timestamp": 1700000000}

`tokens`, the bulk of the bytes, are skipped by the decoder, and so is `token_end`, which recipes write in different
ways: only character offsets count. The interface: https://prodi.gy/docs/api-interfaces
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from labelwise.base.text import DECODE_ERRORS, State, is_integer, trim
from labelwise.corpus.tasks import UNCOVERED

Kind = Literal["complete", "binary", "other"]
DOCUMENT = "doc"  # the key of `meta` that names the document that a text is
ANSWERS = ("accept", "reject", "ignore")

UNUSABLE = "unusable"  # in place of a value that is of another kind than Prodigy's
COMPLETE_VIEWS = ("ner_manual", "spans_manual", "blocks", None)
BINARY_VIEWS = ("ner", "spans")


class TaskSpan(msgspec.Struct, omit_defaults=True):
    """A span of a task, as read: anything, so that a bad span doesn't cost its task. A missing key is None.

    place (tuple | None): the annotation file of a brat document, and the line of it, as `convert-brat` writes it.
    outcome (str): what became of the span, which `check_spans` sets for one that can't be used.
    """

    start: Any = None
    end: Any = None
    label: Any = None
    answer: Any = None  # old binary data answers each span
    place: tuple[str, int] | None = msgspec.field(default=None, name="_labelwise_place")
    outcome: str = msgspec.field(default="", name="_labelwise_outcome")


class Task(msgspec.Struct, omit_defaults=True):
    """One answered question about one text.

    text (str | None): None once it is kept apart from the task, as in a run of the merge.
    spans (list[TaskSpan] | None): None means that nothing was marked, just as an empty list does.
    answer (Any): one of ANSWERS, if it is valid.
    no_missing (bool | None): old versions' switch for "what is unmarked isn't an entity".
    annotator_id, session_id (Any): who answered.
    uncovered (dict[str, State] | None): the labels that it isn't complete for: not a key of Prodigy's, but what an
        earlier merge says of its Docs.
    """

    text: str | None = None
    spans: list[TaskSpan] | None = None
    answer: Any = "accept"
    timestamp: Any = msgspec.field(default=None, name="_timestamp")
    view_id: Any = msgspec.field(default=None, name="_view_id")
    reviewed_view_id: Any = msgspec.field(default=None, name="view_id")
    is_binary: Any = msgspec.field(default=None, name="_is_binary")
    annotator_id: Any = msgspec.field(default=None, name="_annotator_id")
    session_id: Any = msgspec.field(default=None, name="_session_id")
    no_missing: Any = None
    meta: Any = None
    uncovered: dict[str, State] | None = msgspec.field(default=None, name=UNCOVERED)


_decoder = msgspec.json.Decoder(Task)


def parse_task(row: bytes | str) -> tuple[Task | None, str]:
    """Decode a row, or say why it can't be used: "bad JSON", "malformed: ..." or "no text"."""
    try:
        task = _decoder.decode(row)
    except msgspec.ValidationError as error:
        return None, f"malformed: {error}"
    except DECODE_ERRORS:
        return None, "bad JSON"
    return check_text(task)


def check_text(task: Task) -> tuple[Task | None, str]:
    """Return a task that has a text, or say that it has none."""
    return (task, "") if task.text and not task.text.isspace() else (None, "no text")


def kind_of(task: Task) -> Kind:
    """Tell whether a task asked for everything at once ("complete") or for yes or no on its spans ("binary").

    A review has the kind of the tasks reviewed. A task that doesn't say is binary if its spans carry answers. Tasks of
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


def check_task(task: Task, keys: Iterable[str] = ()) -> None:
    """Keep of a task only the values that can be used; see `check_spans` for its spans.

    keys (Iterable[str]): those of `meta` that are kept, as strings.
    """
    names = (task.annotator_id, task.session_id)
    task.annotator_id, task.session_id = next((name for name in names if name and isinstance(name, str)), None), None
    if task.meta is not None:
        meta = task.meta if isinstance(task.meta, dict) else {}
        task.meta = {key: str(meta[key]) for key in keys if meta.get(key) is not None} or None
    time = task.timestamp
    if time is not None and not ((is_integer(time) or isinstance(time, float)) and abs(time) < 2**63):
        task.timestamp = None
    if not isinstance(task.answer, str):
        task.answer = UNUSABLE
    if task.view_id is not None and not isinstance(task.view_id, str):
        task.view_id = UNUSABLE
    if task.reviewed_view_id is not None and not isinstance(task.reviewed_view_id, str):
        task.reviewed_view_id = UNUSABLE
    if task.is_binary is not None:
        task.is_binary = bool(task.is_binary)
    if task.no_missing is not None:
        task.no_missing = bool(task.no_missing)
    check_spans(task)


def check_spans(task: Task) -> None:
    """Trim white space off the edges of spans. One that can't be used loses its offsets, and gets its outcome."""
    text = task.text or ""
    length = len(text)
    for span in task.spans or ():
        start, end = span.start, span.end
        # The types are those of JSON itself: True is no 1.
        if type(start) is int and type(end) is int and 0 <= start < end <= length and type(span.label) is str:
            if text[start].isspace() or text[end - 1].isspace():
                span.start, span.end = trim(text, start, end)
        else:
            span.end = span.start
        if span.start == span.end:
            span.outcome = f"invalid: {span.label} {start} {end}"
            span.label, span.start, span.end = str(span.label), 0, 0
        if span.answer is not None and type(span.answer) is not str:
            span.answer = "ignore"


def rename_labels(task: Task, rename: Mapping[str, str]) -> Counter[str]:
    """Give the labels of a task their new names, each once, so that two can be exchanged.

    RETURNS (Counter): spans by their old label.
    """
    renamed: Counter[str] = Counter()
    for span in task.spans or ():
        if isinstance(span.label, str) and span.label in rename:
            renamed[span.label] += 1
            span.label = rename[span.label]
    if task.uncovered:
        task.uncovered = {rename.get(label, label): state for label, state in task.uncovered.items()}
    return renamed


def labels_of(task: Task) -> set[str]:
    """List the labels of a task's spans, but for values that can't be labels."""
    return {span.label for span in task.spans or () if isinstance(span.label, str) and span.label.strip()}

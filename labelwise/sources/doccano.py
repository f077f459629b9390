"""Read doccano's JSONL of sequence labeling: https://doccano.github.io/doccano/

    {"id": 1, "text": "Add 5 mL", "label": [[4, 8, "Amount"]]}      also "labels", once "entities"; "data" for "text"
    {"id": 1, "text": "Add 5 mL", "entities": [{"id": 7, "label": "Amount", "start_offset": 4, "end_offset": 8}],
     "relations": []}

All else that doccano was given with a text are keys of the row: of our own exports, the document's name, and what was
predicted. As long as the spans are still these, nobody is known to have looked at them.

Offsets count code points; the very first versions counted UTF-16 code units (doccano pull request 99). An export with
"annotations" has numbers in place of labels, which only doccano knows.
"""

from typing import Any

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.corpus.tasks import PREDICTED
from labelwise.sources.carried import name_of, uncovered_of
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

KEYS = ("label", "labels", "entities")
TEXTS = ("text", "data")


def is_doccano(row: Any) -> bool:
    """Tell whether a row of JSONL is doccano's."""
    return (
        isinstance(row, dict)
        and any(isinstance(row.get(key), str) for key in TEXTS)
        and "spans" not in row
        and any(isinstance(row.get(key), list) for key in (*KEYS, "annotations"))
    )


def parse_doccano(row: bytes) -> tuple[Task | None, str]:
    """Decode a row, or say why it can't be used; see `prodigy.parse_task`."""
    try:
        content = msgspec.json.decode(row)
    except DECODE_ERRORS:
        return None, "bad JSON"
    if not isinstance(content, dict):
        return None, f"malformed: a row is an object, not {type(content).__name__}"
    text = next((content[key] for key in TEXTS if key in content), None)
    if not isinstance(text, str) or not text.strip():
        return None, "no text"
    marked = next((content[key] for key in KEYS if key in content), None)
    if marked is None and any(key in content for key in KEYS):
        return None, "not annotated: no list of spans"
    if not isinstance(marked, list):
        numbered = "annotations" in content
        return None, "malformed: " + ("its labels are numbers; export them as text" if numbered else "no list of spans")
    user = content.get("username") or content.get("user")
    task = Task(
        text,
        [_span(one) for one in marked],
        view_id="spans_manual",
        annotator_id=user if isinstance(user, str) else None,
        meta={DOCUMENT: name} if (name := name_of(content, content, text)) else None,
        task_hash=content.get("id"),
        uncovered=uncovered_of(content),
    )
    if _is_unchanged(task, content.get(PREDICTED)):
        task.meta = {**(task.meta or {}), PREDICTED: "yes"}
    return task, ""


def _is_unchanged(task: Task, predicted: Any) -> bool:
    """Tell whether a row's spans are the ones that it says were predicted, if it says so."""
    spans = [[span.start, span.end, span.label] for span in task.spans or ()]
    return isinstance(predicted, list) and sorted(spans, key=str) == sorted(predicted, key=str)


def _span(one: Any) -> TaskSpan:
    """Read a span, in either form; anything else becomes one that can't be used."""
    if isinstance(one, dict):
        return TaskSpan(one.get("start_offset"), one.get("end_offset"), one.get("label"))
    return TaskSpan(*one[:3]) if isinstance(one, list) and len(one) >= 3 else TaskSpan()

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

from labelwise.corpus.tasks import PREDICTED
from labelwise.sources.items import miscounted, name_of, rejected_of, uncovered_of
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

KEYS = ("label", "labels", "entities")
TEXTS = ("text", "data")


def marked_lists(row: dict[str, Any]) -> list[list[Any]] | None:
    """List what a row has under doccano's keys that are lists; None if it isn't doccano's, and none if all are null."""
    if not any(isinstance(row.get(key), str) for key in TEXTS):
        return None
    found = [row[key] for key in KEYS if isinstance(row.get(key), list)]
    null = any(row.get(key, ...) is None for key in KEYS)
    return found if found or null or isinstance(row.get("annotations"), list) else None


def parse_doccano(content: dict[str, Any]) -> tuple[Task | None, str]:
    """Make a task of a row, or say why it can't be used; see `prodigy.parse_task`."""
    text = next((content[key] for key in TEXTS if key in content), None)
    if not isinstance(text, str) or not text.strip():
        return None, "no text"
    lists = marked_lists(content) or []
    if not lists and any(key in content for key in KEYS):
        return None, "not annotated: no list of spans"
    if not lists:
        numbered = "annotations" in content
        return None, "malformed: " + ("its labels are numbers; export them as text" if numbered else "no list of spans")
    filled = [one for one in lists if one] or lists
    if any(sorted(map(str, map(_offsets, one))) != sorted(map(str, map(_offsets, filled[0]))) for one in filled):
        return None, f"malformed: its {' and '.join(key for key in KEYS if content.get(key))} differ; keep one of them"
    user = content.get("username") or content.get("user")
    task = Task(
        text,
        [TaskSpan(*_offsets(one)) for one in filled[0]],
        view_id="spans_manual",
        annotator_id=user if isinstance(user, str) else None,
        meta={DOCUMENT: name} if (name := name_of(content, content, text)) else None,
        uncovered=uncovered_of(content),
    )
    if _is_unchanged(task, content.get(PREDICTED)):
        task.meta = {**(task.meta or {}), PREDICTED: "yes"}
    there, read = max(len(content[key]) for key in KEYS if isinstance(content.get(key), list)), len(task.spans or ())
    task.spans = [*(task.spans or ()), *rejected_of(content)]
    return task, "" if there == read else miscounted(0, there, "spans", read).problem


def _is_unchanged(task: Task, predicted: Any) -> bool:
    """Tell whether a row's spans are the ones that it says were predicted, if it says so."""
    spans = [[span.start, span.end, span.label] for span in task.spans or ()]
    return isinstance(predicted, list) and sorted(spans, key=str) == sorted(predicted, key=str)


def _offsets(one: Any) -> tuple[Any, ...]:
    """Return start, end and label of a span, in either form; of anything else, nothing, which can't be used."""
    if isinstance(one, dict):
        return one.get("start_offset"), one.get("end_offset"), one.get("label")
    return tuple(one[:3]) if isinstance(one, list) and len(one) >= 3 else ()

"""Read doccano's JSONL of sequence labeling: https://doccano.github.io/doccano/

    {"id": 1, "text": "Add 5 mL", "label": [[4, 8, "Amount"]]}      also "labels", once "entities"; "data" for "text"
    {"id": 1, "text": "Add 5 mL", "entities": [{"id": 7, "label": "Amount", "start_offset": 4, "end_offset": 8}],
     "relations": []}

All else that doccano was given with a text are keys of the row: of our own exports, the document's name, and what was
predicted. As long as the spans are still these, nobody is known to have looked at them.

Offsets count code points; the very first versions counted UTF-16 code units (doccano pull request 99). An export with
"annotations" has numbers in place of labels, which only doccano knows.
"""

from collections.abc import Sequence
from typing import Any

from labelwise.annotations import Found, Problem, Reason, miscounted
from labelwise.corpus.tasks import PREDICTED
from labelwise.sources.clean import RawSpan, clean
from labelwise.sources.keys import LISTS, TEXTS, first_of, marked_lists, name_of, rejected_of, uncovered_of


def parse_doccano(line: int, row: dict[str, Any]) -> Sequence[Found]:
    """Make a task of a row, or say why it can't be used, or that it has more spans than were read."""
    text = first_of(row, TEXTS)
    if not isinstance(text, str) or not text.strip():
        return (Problem(line, Reason.NO_TEXT),)
    lists = marked_lists(row) or []
    if not lists and any(key in row for key in LISTS):
        return (Problem(line, Reason.NOT_ANNOTATED, "no list of spans"),)
    if not lists:
        why = "its labels are numbers; export them as text" if "annotations" in row else "no list of spans"
        return (Problem(line, Reason.MALFORMED, why),)
    filled = [one for one in lists if one] or lists
    spans = [_offsets(one) for one in filled[0]]
    if any(sorted(map(str, map(_offsets, one))) != sorted(map(str, spans)) for one in filled):
        why = f"its {' and '.join(key for key in LISTS if row.get(key))} differ; keep one of them"
        return (Problem(line, Reason.MALFORMED, why),)
    rejected = rejected_of(row)
    task = clean(
        line,
        text,
        [*(RawSpan(*span) for span in spans), *rejected],
        who=[row.get("username") or row.get("user")],
        meta=name_of(row, row, text) | ({PREDICTED: "yes"} if _is_unchanged(spans, row.get(PREDICTED)) else {}),
        uncovered=uncovered_of(row),
    )
    there = max(len(row[key]) for key in LISTS if isinstance(row.get(key), list))
    read = len(task.spans) + len(task.unusable) - len(rejected)
    return (task,) if there == read else (task, miscounted(line, there, "spans", read))


def _is_unchanged(spans: Sequence[tuple[Any, ...]], predicted: Any) -> bool:
    """Tell whether a row's spans are the ones that it says were predicted, if it says so."""
    return isinstance(predicted, list) and sorted(map(str, map(list, spans))) == sorted(map(str, predicted))


def _offsets(one: Any) -> tuple[Any, ...]:
    """Return start, end and label of a span, in either form; of anything else, nothing, which can't be used."""
    if isinstance(one, dict):
        return one.get("start_offset"), one.get("end_offset"), one.get("label")
    return tuple(one[:3]) if isinstance(one, list) and len(one) >= 3 else (None, None, None)

"""Read Label Studio's exports, JSON and JSON-MIN: https://labelstud.io/guide/task_format

    [{"id": 1, "data": {"text": "Add 5 mL"},
      "annotations": [{"completed_by": 3, "was_cancelled": false, "updated_at": "2021-03-09T22:16:08.728378Z",
        "result": [{"type": "labels", "value": {"start": 4, "end": 8, "text": "5 mL", "labels": ["Amount"]}}]}],
      "predictions": [...]}, ...]

    [{"id": 1, "text": "Add 5 mL", "annotator": 3, "label": [{"start": 4, "end": 8, "text": "5 mL",
      "labels": ["Amount"]}]}, ...]                                                                     (JSON-MIN)

- Each annotation is one answer, of its annotator; one that was cancelled is ignored. Predictions aren't annotations.
  Ground truth is a review.
- Offsets were UTF-16 code units once, and are code points (label-studio issues 1347 and 1559): where spans have their
  `text`, the reading by which most of them fit the text is taken for all of an annotation.
- A span whose text isn't at its offsets, however they count, is invalid.
- A result of several labels is a span for each. Choices, relations and the like aren't spans.
- The text is the one among a task's data that its data set declares, such as `text: body`; else `text`, or the only
  string.
- The labels of an exported task are counted a second time, as they were decoded: a difference is `miscounted`.

Exports of Label Studio 1.23, of several annotators and controls, were read: offsets there are code points.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from labelwise.sources.brat_offsets import choose_reading, fold, to_code_points
from labelwise.sources.carried import name_of, uncovered_of
from labelwise.sources.items import Item, miscounted
from labelwise.sources.json_array import read_array
from labelwise.sources.label_studio_json import (
    LABELS,
    Annotation,
    annotations_of,
    count_labels,
    has_offsets,
    is_quoted,
    results_of,
    texts_of,
)
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan
from labelwise.sources.rows import shape_of
from labelwise.text import is_text

NOT_SPANS = ("choices", "relation", "textarea", "rating", "number", "datetime", "taxonomy", "pairwise")
ADDRESS = re.compile(r"(\w+://|/data/|data:)\S+")
HALF = "malformed: it has half a character, a \\ud800 to \\udfff alone, or bytes that aren't UTF-8; export it again"


def read_label_studio(path: Path, key: str = "") -> Iterator[Item]:
    """Yield the annotations of an export as tasks; the number of an exported task counts as the line.

    key (str): that of the text among a task's data; empty for `text`, or the only string.
    """
    for number, (element, problem) in enumerate(read_array(path), 1):
        if problem or not isinstance(element, dict):
            yield Item(number, None, problem or f"malformed: a task is an object, not {type(element).__name__}")
        else:
            yield from _read_element(number, element, key)


def find_longest(path: Path) -> str:
    """Find the key of the longest string of the first task of which it isn't certain which is the text, or none."""
    for element, _ in read_array(path):
        if isinstance(element, dict) and _find_text(texts := texts_of(element), "") is None and texts:
            return max(texts, key=lambda key: len(texts[key]))
    return ""


def _find_text(texts: Mapping[str, str], key: str) -> str | None:
    """Find the text among a task's data; None if it isn't certain which is."""
    only = next(iter(texts.values())) if len(texts) == 1 else None
    return texts.get(key) if key else texts.get("text", only)


def _read_element(number: int, element: Mapping[str, Any], key: str) -> Iterator[Item]:
    """Make tasks of the annotations of an exported task."""
    annotations = annotations_of(element)
    texts = texts_of(element)
    text = _find_text(texts, key)
    if text is None:
        several = f"; declare which of its {', '.join(map(repr, sorted(texts)))} it is, as `text`" * bool(texts)
        yield Item(number, None, f"malformed: no text in its data{several}")
    elif not text.strip():
        yield Item(number, None, "no text")
    elif ADDRESS.fullmatch(text) and not any(map(_is_of_a_text, annotations)):
        yield Item(
            number, None, f"other format: its data is the address of an image or a file, not a text: {text[:80]}"
        )
    elif not annotations:
        other = "other format: its keys are those of JSONL; write it as that, a row per line"
        yield Item(number, None, other if shape_of(element) else "not annotated: no annotation")
    elif not is_text(text):
        yield Item(number, None, HALF)
    else:
        objects = [one for one in annotations if isinstance(one, dict) and isinstance(one.get("result"), list)]
        items = [Item(number, None, "malformed: an annotation without a list of results")] * (
            len(annotations) - len(objects)
        )
        for annotation in objects:
            items += _read_annotation(number, element, text, annotation)
        yield from items
        read = sum(len(item.task.spans or ()) if item.task else item.problem.startswith("invalid") for item in items)
        whole = all(item.task or item.problem.startswith("invalid") for item in items)
        if whole and read < (there := count_labels(element)):
            yield miscounted(number, there, "labels of spans", read)


def _is_of_a_text(annotation: Any) -> bool:
    """Tell whether an annotation marks a part of a text."""
    results = results_of(annotation) if isinstance(annotation, dict) else []
    return any(has_offsets(result.get("value")) for result in results if isinstance(result, dict))


def _read_annotation(number: int, element: Mapping[str, Any], text: str, annotation: Annotation) -> Iterator[Item]:
    """Make a task of an annotation, and a problem of each label in it that can't be a span's."""
    values, problems = _values(annotation)
    data = element.get("data", element)
    mentions = [([(value["start"], value["end"])], _quote(value)) for value in values]
    sane = [mention for mention in mentions if 0 <= mention[0][0][0] < mention[0][0][1]]
    table, _ = choose_reading(text, sane)
    spans, placed = [], 0
    for value, mention in zip(values, mentions, strict=True):
        ((start, end),) = to_code_points(mention[0], table) if mention in sane else mention[0]
        for label in _labels(value):
            # Spans of whole words once quoted only the part that the annotator had marked.
            if mention[1] is not None and mention in sane and fold(mention[1]) not in fold(text[start:end]):
                problems.append(f"invalid: {mention[1][:40]!r} isn't at {value['start']} {value['end']}")
                continue
            placed += 1
            if not is_text(label):
                problems.append(f"invalid: half a character in the label {label!r}")
            else:
                spans.append(TaskSpan(start, end, label))
    if problems and not placed and any(quote is not None for _, quote in mentions):
        yield Item(number, None, "malformed: its text isn't the one that its spans are of; declare that as `text`")
        return
    task = Task(
        text,
        spans,
        answer="ignore" if annotation.get("was_cancelled") else "accept",
        timestamp=_time(annotation.get("updated_at") or annotation.get("created_at")),
        view_id="review" if annotation.get("ground_truth") is True else "spans_manual",
        reviewed_view_id="spans_manual",
        annotator_id=_who(annotation.get("completed_by")),
        meta={DOCUMENT: name} if (name := name_of(element, data, text)) else None,
        uncovered=uncovered_of(data),
    )
    if is_text(task):
        yield from (Item(number, None, problem) for problem in problems)
        yield Item(number, task)
    else:
        yield Item(number, None, HALF)


def _values(annotation: Annotation) -> tuple[list[dict[str, Any]], list[str]]:
    """List the results of an annotation that are spans with labels, and the problems of those that should be."""
    values, problems = [], []
    results = [one for one in results_of(annotation) if isinstance(one, dict)]
    labelled = {str(result.get("id")) for result in results if result.get("type") not in NOT_SPANS}
    for result in results:
        value: Any = result.get("value")
        kind = result.get("type")
        # Further questions about a labelled region, such as choices, have its offsets, too.
        if kind in NOT_SPANS and (kind != "taxonomy" or not has_offsets(value) or str(result.get("id")) in labelled):
            continue
        if not has_offsets(value):
            named = len(_labels(value)) if isinstance(value, dict) else 0
            problems += [f"invalid: {_said(kind)} without offsets in the text"] * (named or 1)
        elif not _labels(value):
            problems.append(f"invalid: a span without a label, {value['start']} {value['end']}")
        else:
            values.append(value)
    problems += ["invalid: a result is an object"] * (len(results_of(annotation)) - len(results))
    return values, problems


def _said(kind: Any) -> str:
    return kind if isinstance(kind, str) and is_text(kind) else repr(kind)


def _quote(value: Mapping[str, Any]) -> str | None:
    """Return the text that a span is said to have, in which line ends may be written as they are in JSON."""
    return value["text"].replace("\\n", "\n") if is_quoted(value) else None


def _labels(value: Mapping[str, Any]) -> list[Any]:
    """List the labels of a result; they are under the name of its kind. A path of a taxonomy ends with one."""
    if isinstance(paths := value.get("taxonomy"), list):
        return [path[-1] for path in paths if isinstance(path, list) and path]
    found: Any = next((value[name] for name in LABELS if name in value), [])
    return found if isinstance(found, list) else []


def _who(completed_by: Any) -> str | None:
    """Name an annotator, who is a number, or has an e-mail address."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return None if completed_by is None else str(completed_by)


def _time(written: Any) -> float | None:
    """Turn a time such as 2021-03-09T22:16:08.728378Z into seconds."""
    try:
        return datetime.fromisoformat(str(written)).timestamp() if written else None
    except (ValueError, OverflowError):
        return None

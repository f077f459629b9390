"""Read Label Studio's exports, JSON and JSON-MIN: https://labelstud.io/guide/task_format

    [{"id": 1, "data": {"text": "Add 5 mL"},
      "annotations": [{"completed_by": 3, "was_cancelled": false, "updated_at": "2021-03-09T22:16:08.728378Z",
        "result": [{"type": "labels", "value": {"start": 4, "end": 8, "text": "5 mL", "labels": ["Amount"]}}]}],
      "predictions": [...]}, ...]

    [{"id": 1, "text": "Add 5 mL", "annotator": 3, "label": [{"start": 4, "end": 8, "text": "5 mL",
      "labels": ["Amount"]}]}, ...]                                                                     (JSON-MIN)

- Each annotation is one answer, of its annotator; one that was cancelled is ignored. Predictions aren't annotations.
  In two exports, it has the same ids, and the later counts (see `merge.rules.exports`); ground truth is a review.
- Offsets were UTF-16 code units once, and are code points (label-studio issues 1347 and 1559): where spans have their
  `text`, the reading by which most of them fit the text is taken for all of an annotation.
- A span whose text isn't at its offsets, however they count, is invalid.
- A result of several labels is a span for each. Choices, relations and the like aren't spans. Where a project shows
  several texts, each is a text of its own.

Exports of Label Studio 1.23, of several annotators and controls, were read: offsets there are code points.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from labelwise.common.spans import is_integer
from labelwise.sources.brat_offsets import choose_reading, fold, to_code_points
from labelwise.sources.carried import name_of, uncovered_of
from labelwise.sources.items import Item
from labelwise.sources.json_array import read_array
from labelwise.sources.prodigy import DOCUMENT, Task, TaskSpan

NOT_SPANS = ("choices", "relation", "textarea", "rating", "number", "datetime", "taxonomy", "pairwise")
TIMES = ("created_at", "updated_at")


def read_label_studio(path: Path) -> Iterator[Item]:
    """Yield the annotations of an export as tasks; the number of an exported task counts as the line.

    RAISES (InputError): the file isn't JSON.
    """
    field = _find_field(path)
    for number, element in enumerate(read_array(path), 1):
        if not isinstance(element, dict):
            yield Item(number, None, f"malformed: a task is an object, not {type(element).__name__}")
            continue
        annotations = _annotations(element)
        text = find_text(element, annotations, field)
        if text is None:
            yield Item(number, None, "malformed: no text in its data")
        elif not text.strip():
            yield Item(number, None, "no text")
        elif not annotations:
            yield Item(number, None, "not annotated: no annotation")
        else:
            for annotation in annotations:
                for one, part in _by_text(element, text, annotation, field):
                    yield from _read_annotation(number, element, one, part)


def _by_text(
    element: Mapping[str, Any], text: str, annotation: Mapping[str, Any], field: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield an annotation with its text, or, where a project shows several texts, the part of it that is about each."""
    about: dict[Any, list[dict[str, Any]]] = {}
    for result in _results(annotation):
        about.setdefault(result.get("to_name"), []).append(result)
    quoting = {name: results for name, results in about.items() if _quoting_values([{"result": results}])}
    if len(quoting) < 2:
        own = find_text(element, [annotation], field) if quoting else text
        yield own or text, annotation
        return
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, results in about.items():
        own = find_text(element, [{"result": results}], field) if name in quoting else text
        parts.setdefault(own or text, []).extend(results)
    for own, results in parts.items():
        yield own, {**annotation, "result": results}


def _annotations(element: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the annotations of an exported task, whichever of the exports it is in.

    In JSON-MIN, spans are under the name that the project gives to its labels, and a task that nobody has annotated is
    a row without an annotator.
    """
    found = element.get("annotations", element.get("completions"))
    if found is None and any(element.get(name) is not None for name in ("annotation_id", "annotator")):
        results = [
            {"type": "labels", "value": value} for values in filter(_is_spans, element.values()) for value in values
        ]
        found = [{**element, "completed_by": element.get("annotator"), "result": results}]
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _is_spans(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "start" in one for one in value)


def _find_field(path: Path) -> str:
    """Find which of the tasks' data is annotated, by the first task of whose data its spans quote only one."""
    for element in read_array(path):
        if isinstance(element, dict):
            quoted = _quoting_values(_annotations(element))
            fitting = [name for name, text in _texts(element).items() if quoted and _fit(text, quoted) == len(quoted)]
            if len(fitting) == 1:
                return fitting[0]
    return ""


def find_text(element: Mapping[str, Any], annotations: Sequence[Mapping[str, Any]], field: str) -> str | None:
    """Find the text that was annotated, as an export doesn't say which of its data that is.

    It is the string that has the most quoted spans at their offsets, or else `field`, `text`, or the longest.
    """
    texts, quoted = _texts(element), _quoting_values(annotations)
    order = [(_fit(text, quoted), name == field, name == "text", len(text), text) for name, text in texts.items()]
    return max(order)[-1] if order else None


def _texts(element: Mapping[str, Any]) -> dict[str, str]:
    """List the data of a task that are strings; in JSON-MIN, they are among everything else."""
    data = element.get("data", element)
    strings = data.items() if isinstance(data, dict) else ()
    return {
        name: text for name, text in strings if isinstance(text, str) and (data is not element or name not in TIMES)
    }


def _quoting_values(annotations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    values = [result.get("value") for one in annotations for result in _results(one)]
    return [value for value in values if isinstance(value, dict) and _is_quoted(value)]


def _fit(text: str, quoted: Sequence[Mapping[str, Any]]) -> int:
    """Count the spans whose quote is at their offsets."""
    return sum(text[value["start"] : value["end"]] == value["text"] for value in quoted)


def _read_annotation(
    number: int, element: Mapping[str, Any], text: str, annotation: Mapping[str, Any]
) -> Iterator[Item]:
    """Make a task of an annotation, and a problem of each result in it that can't be a span."""
    values, problems = _values(annotation)
    data = element.get("data", element)
    mentions = [([(value["start"], value["end"])], _quote(value)) for value in values]
    sane = [mention for mention in mentions if 0 <= mention[0][0][0] < mention[0][0][1]]
    table, _ = choose_reading(text, sane)
    spans = []
    for value, mention in zip(values, mentions, strict=True):
        ((start, end),) = to_code_points(mention[0], table) if mention in sane else mention[0]
        # Spans of whole words once quoted only the part that the annotator had marked.
        if mention[1] is not None and mention in sane and fold(mention[1]) not in fold(text[start:end]):
            problems.append(f"invalid: {mention[1][:40]!r} isn't at {value['start']} {value['end']}")
            continue
        spans += [TaskSpan(start, end, label) for label in _labels(value)]
    if problems and not spans and any(quote is not None for _, quote in mentions):
        yield Item(number, None, "malformed: none of its strings is the text that its spans are of")
        return
    for problem in problems:
        yield Item(number, None, problem)
    yield Item(
        number,
        Task(
            text,
            spans,
            answer="ignore" if annotation.get("was_cancelled") else "accept",
            timestamp=_time(annotation.get("updated_at") or annotation.get("created_at")),
            view_id="review" if annotation.get("ground_truth") is True else "spans_manual",
            reviewed_view_id="spans_manual",
            annotator_id=_who(annotation.get("completed_by")),
            annotation=_identity(element, annotation),
            meta={DOCUMENT: name} if (name := name_of(element, data, text)) else None,
            uncovered=uncovered_of(data),
        ),
    )


def _values(annotation: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """List the results of an annotation that are spans with labels, and the problems of those that should be."""
    values, problems = [], []
    labelled = {result.get("id") for result in _results(annotation) if result.get("type") not in NOT_SPANS}
    for result in _results(annotation):
        value, kind = result.get("value"), result.get("type")
        # Further questions about a labelled region, such as choices, have its offsets, too.
        if kind in NOT_SPANS and (kind != "taxonomy" or not _has_offsets(value) or result.get("id") in labelled):
            continue
        if not isinstance(value, dict) or not _has_offsets(value):
            problems.append(f"invalid: {kind} without offsets in the text")
        elif not _labels(value):
            problems.append(f"invalid: a span without a label, {value['start']} {value['end']}")
        else:
            values.append(value)
    return values, problems


def _has_offsets(value: Any) -> bool:
    return isinstance(value, dict) and is_integer(value.get("start")) and is_integer(value.get("end"))


def _quote(value: Mapping[str, Any]) -> str | None:
    """Return the text that a span is said to have, in which line ends may be written as they are in JSON."""
    return value["text"].replace("\\n", "\n") if _is_quoted(value) else None


def _results(annotation: Mapping[str, Any]) -> list[dict[str, Any]]:
    results = annotation.get("result")
    return [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []


def _is_quoted(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("text"), str) and _has_offsets(value)


def _labels(value: Mapping[str, Any]) -> list[Any]:
    """List the labels of a result; they are under the name of its kind. A path of a taxonomy ends with one."""
    if isinstance(paths := value.get("taxonomy"), list):
        return [path[-1] for path in paths if isinstance(path, list) and path]
    found: Any = next((value[name] for name in ("labels", "hypertextlabels") if name in value), [])
    return found if isinstance(found, list) else []


def _identity(element: Mapping[str, Any], annotation: Mapping[str, Any]) -> str | None:
    """Tell an annotation apart by its id and that of its task, which no others of that Label Studio have."""
    own = annotation.get("annotation_id", annotation.get("id"))
    return None if own is None or "id" not in element else f"Label Studio {element['id']} {own}"


def _who(completed_by: Any) -> str | None:
    """Name an annotator, who is a number, or has an e-mail address."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return None if completed_by is None else str(completed_by)


def _time(written: Any) -> float | None:
    """Turn a time such as 2021-03-09T22:16:08.728378Z into seconds."""
    try:
        return datetime.fromisoformat(str(written)).timestamp() if written else None
    except ValueError:
        return None

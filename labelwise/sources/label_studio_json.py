"""The parts of a task of Label Studio's exports, whichever of the two forms it is in."""

from collections.abc import Mapping
from typing import Any

from labelwise.text import is_integer

TIMES = ("created_at", "updated_at")
LABELS = ("labels", "hypertextlabels")

Annotation = Mapping[str, Any]


def annotations_of(element: Mapping[str, Any]) -> list[Any]:
    """List the annotations of an exported task, whichever of the exports it is in.

    In JSON-MIN, spans are under the name that the project gives to its labels; a task that nobody has annotated is a
    row without an annotator.
    """
    found = element.get("annotations", element.get("completions"))
    if found is None and any(element.get(name) is not None for name in ("annotation_id", "annotator")):
        results = [
            {"type": "labels", "value": value} for values in element.values() if _has_span(values) for value in values
        ]
        found = [{**element, "completed_by": element.get("annotator"), "result": results}]
    return found if isinstance(found, list) else []


def _has_span(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(one, dict) and {"start", *LABELS} & one.keys() for one in values)


def texts_of(element: Mapping[str, Any]) -> dict[str, str]:
    """List the data of a task that are strings; in JSON-MIN, they are among everything else."""
    data = element.get("data", element)
    strings = data.items() if isinstance(data, dict) else ()
    return {
        name: text for name, text in strings if isinstance(text, str) and (data is not element or name not in TIMES)
    }


def results_of(annotation: Annotation) -> list[Any]:
    """List the results of an annotation, whatever they are."""
    results = annotation.get("result")
    return results if isinstance(results, list) else []


def has_offsets(value: Any) -> bool:
    """Tell whether the value of a result is about a part of a text."""
    return isinstance(value, dict) and is_integer(value.get("start")) and is_integer(value.get("end"))


def is_quoted(value: Any) -> bool:
    """Tell whether the value of a result has the text that it is about."""
    return has_offsets(value) and isinstance(value.get("text"), str)


def count_labels(element: Mapping[str, Any]) -> int:
    """Count the labels of spans of an exported task, as it was decoded."""
    annotations = element.get("annotations", element.get("completions"))
    if isinstance(annotations, list):
        values = [value for one in annotations if isinstance(one, dict) for value in _values(one)]
    else:
        values = [value for values in element.values() if isinstance(values, list) for value in values]
    named = [value.get(name) for value in values if isinstance(value, dict) for name in LABELS]
    return sum(len(labels) for labels in named if isinstance(labels, list))


def _values(annotation: Annotation) -> list[Any]:
    return [result.get("value") for result in results_of(annotation) if isinstance(result, dict)]

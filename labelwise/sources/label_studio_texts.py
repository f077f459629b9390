"""Find the texts that Label Studio's annotations are about: an export has a project's data, and doesn't say which.

    {"data": {"title": "Add 5 mL", "body": "Add 5 mL, and stir"}, "annotations": [{"result": [
        {"to_name": "t", "value": {"start": 4, "end": 8, "text": "5 mL", "labels": ["Amount"]}}]}]}

The quote tells, unless several texts have it there. Then `to_name` does, the name that the project gives to a text: it
is the one that its spans quote in another task, where only one of the data fits.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from labelwise.common.spans import is_integer
from labelwise.sources.json_array import read_array

TIMES = ("created_at", "updated_at")
LABELS = ("labels", "hypertextlabels")

Annotation = Mapping[str, Any]


class Texts:
    """The texts of an export's tasks."""

    def __init__(self, path: Path) -> None:
        """Take the export, which is read only where several texts fit."""
        self.path = path

    def find(self, element: Mapping[str, Any], annotations: Sequence[Annotation]) -> str | None:
        """Find the text that was annotated; None if the data have no string.

        It is the string that has the most quoted spans at their offsets, or else the one that the spans' `to_name`
        means, `text`, or the longest.
        """
        texts = texts_of(element)
        quoted = _quoted([value for one in annotations for value in _values(one)]) if len(texts) > 1 else []
        fits = {key: _fit(text, quoted) for key, text in texts.items()}
        best = {key: text for key, text in texts.items() if fits[key] == max(fits.values())}
        if len({*best.values()}) > 1:
            names = {name for one in annotations for name in by_name(one) if name} or {""}
            keys = {self.keys.get(name, name) for name in names}
            return max((key in keys, key == "text", len(text), text) for key, text in best.items())[-1]
        return next(iter(best.values()), None)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The data that each text of the project is, by its name there; "" for any of them.

        The first task tells it of whose data its spans quote only one.
        """
        keys: dict[str, str] = {}
        for element, _ in read_array(self.path):
            for annotation in annotations_of(element) if isinstance(element, dict) else ():
                for name, results in by_name(annotation).items() if isinstance(annotation, dict) else ():
                    quoted = _quoted([result.get("value") for result in results])
                    fitting = [key for key, text in texts_of(element).items() if _fit(text, quoted) == len(quoted)]
                    if quoted and len(fitting) == 1:
                        keys.setdefault(name, fitting[0])
                        keys.setdefault("", fitting[0])
        return keys


def annotations_of(element: Mapping[str, Any]) -> list[Any]:
    """List the annotations of an exported task, whichever of the exports it is in.

    In JSON-MIN, spans are under the name that the project gives to its labels, which tells their texts apart as
    `to_name` does; a task that nobody has annotated is a row without an annotator.
    """
    found = element.get("annotations", element.get("completions"))
    if found is None and any(element.get(name) is not None for name in ("annotation_id", "annotator")):
        results = [
            {"type": "labels", "to_name": name, "value": value}
            for name, values in element.items()
            if _has_span(values)
            for value in values
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


def by_name(annotation: Annotation) -> dict[str, list[dict[str, Any]]]:
    """Group the results of an annotation by the name of the text that they are about; empty if they don't say."""
    about: dict[str, list[dict[str, Any]]] = {}
    for result in results_of(annotation):
        if isinstance(result, dict):
            about.setdefault(str(result.get("to_name") or ""), []).append(result)
    return about


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


def _quoted(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [value for value in values if is_quoted(value)]


def _fit(text: str, quoted: Sequence[Mapping[str, Any]]) -> int:
    """Count the spans whose quote is at their offsets."""
    return sum(text[value["start"] : value["end"]] == value["text"] for value in quoted)

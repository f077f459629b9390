"""Read Label Studio's exports, JSON and JSON-MIN: https://labelstud.io/guide/task_format

    [{"id": 1, "data": {"text": "Add 5 mL"},
      "annotations": [{"completed_by": 3, "was_cancelled": false, "updated_at": "2021-03-09T22:16:08.728378Z",
        "result": [{"type": "labels", "value": {"start": 4, "end": 8, "text": "5 mL", "labels": ["Amount"]}}]}],
      "predictions": [...]}, ...]

    [{"id": 1, "text": "Add 5 mL", "annotator": 3, "label": [{"start": 4, "end": 8, "text": "5 mL",
      "labels": ["Amount"]}]}, ...]                                                                     (JSON-MIN)

- Each annotation is an answer of its annotator; a cancelled one is ignored, and ground truth is a review. Predictions
  aren't annotations.
- Offsets were once UTF-16 code units, and are now code points (label-studio issues 1347 and 1559). If spans have their
  `text`, the reading that fits most of them counts for the whole annotation. Other spans are invalid.
- A result with several labels is a span for each. Choices and relations are `not a span`.
- The text is the string in a task's data that its dataset declares, such as `text: body`; else `text`, or the only
  string.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from labelwise.annotations import Problem, Reason, incomplete_read
from labelwise.base.text import is_integer
from labelwise.sources.clean import RawSpan, to_integer
from labelwise.sources.offsets import choose_reading, fold, to_code_points
from labelwise.sources.prodigy_row import Converted, complete_row

OTHERS = ("choices", "relation", "textarea", "rating", "number", "datetime", "taxonomy", "pairwise")  # than spans
LABELS = ("labels", "hypertextlabels")
HYPERTEXT = "it marks HTML (HyperText), by paths: export the text without its tags, and label that, as <Text>"
# Keys of spans in rows of doccano and similar tools; `Doc.to_json` of spaCy writes "ents".
LISTS = ("label", "labels", "entities", "ents")
TIMES = ("created_at", "updated_at")
ADDRESS = re.compile(r"(\w+://|/data/|data:)\S+")


class _Mark(NamedTuple):
    """An annotation of a part of the text: offsets as written, labels, and quoted text."""

    start: int
    end: int
    labels: list[Any]
    quote: str | None


def is_label_studios(element: Mapping[str, Any]) -> bool:
    """Return whether an object is an exported task; doccano's "annotations" have a text beside them.

    The spans of JSON-MIN have `labels`; other rows may name their annotator, too.
    """
    marked = any(key in element for key in ("annotation_id", "completions"))
    lists = [value for key, value in element.items() if key in LISTS and isinstance(value, list)]
    labeled = all(any(isinstance(mark, dict) and {*LABELS} & mark.keys() for mark in marks) for marks in lists)
    minimal = "annotator" in element and labeled
    return isinstance(element.get("data"), dict) or marked or minimal


def read_element(
    number: int, element: Mapping[str, Any], key: str = "", offsets: str = ""
) -> Iterator[Converted | Problem]:
    """Yield the annotations of an exported task as Prodigy's rows and problems.

    key (str): key of the text in its data; "" for `text`, or the only string.
    offsets (str): see `clean`; "" for the reading that fits the spans' texts.
    """
    annotations = _annotations_of(element)
    data = _data_of(element)
    times = TIMES if data is element else ()
    texts = {name: text for name, text in data.items() if isinstance(text, str) and name not in times}
    name = key or (next(iter(texts), "") if len(texts) == 1 else "text")
    text = texts.get(name)
    if text is None:
        choose = f"; declare {' or '.join(f'`text: {one}`' for one in sorted(texts))}"
        yield Problem(number, Reason.MALFORMED, f"no text in its data{choose if texts else ': no value is a string'}")
    elif not text.strip():
        yield Problem(number, Reason.NO_TEXT)
    elif ADDRESS.fullmatch(text):
        why = f"its data is the address of an image or a file, not a text: {text[:80]}"
        yield Problem(number, Reason.UNSUPPORTED_FORMAT, why)
    elif not annotations:
        yield Problem(
            number, Reason.NOT_ANNOTATED, "only predictions" if element.get("predictions") else "no annotation"
        )
    else:
        for annotation in annotations:
            if isinstance(annotation, dict) and isinstance(annotation.get("result"), list):
                yield from _read_annotation(number, element, text, annotation, offsets, {*texts} - {name})
            else:
                yield Problem(number, Reason.MALFORMED, "an annotation without a list of results")


def _annotations_of(element: Mapping[str, Any]) -> list[Any]:
    """List an exported task's annotations, in either form of export.

    In JSON-MIN, the project's name for its labels is the key of spans; an unannotated task has no annotator.
    """
    annotations = element.get("annotations", element.get("completions"))
    if annotations is None and any(element.get(name) is not None for name in ("annotation_id", "annotator")):
        results = [
            {"type": "labels", "value": value} for values in element.values() if _has_span(values) for value in values
        ]
        annotations = [{**element, "completed_by": element.get("annotator"), "result": results}]
    return annotations if isinstance(annotations, list) else []


def _has_span(values: Any) -> bool:
    return isinstance(values, list) and any(
        isinstance(value, dict) and {"start", *LABELS} & value.keys() for value in values
    )


def _data_of(element: Mapping[str, Any]) -> Mapping[str, Any]:
    data = element.get("data")
    return data if isinstance(data, dict) else element


def _has_offsets(value: Any) -> bool:
    return isinstance(value, dict) and is_integer(value.get("start")) and is_integer(value.get("end"))


def _read_annotation(
    number: int,
    element: Mapping[str, Any],
    text: str,
    annotation: Mapping[str, Any],
    offsets: str,
    others: Container[str],
) -> Iterator[Converted | Problem]:
    marks, problems = _read_results(number, annotation["result"], others)
    if (results := len(annotation["result"])) > (read := len(marks) + len(problems)):
        yield incomplete_read(number, results, "results", read)
    if any(map(_is_path, annotation["result"])):
        yield Problem(number, Reason.UNSUPPORTED_FORMAT, HYPERTEXT)
        return
    declared = [RawSpan(mark.start, mark.end, label) for mark in marks for label in mark.labels]
    spans, misplaced = (declared, []) if offsets else _place(number, text, marks)
    if misplaced and not spans and any(mark.quote is not None for mark in marks):
        why = "its spans belong to another text; declare that one as `text`"
        yield Problem(number, Reason.MALFORMED, why)
        return
    yield from problems + misplaced
    row = complete_row(
        text,
        spans,
        element,
        _data_of(element),
        answer="ignore" if annotation.get("was_cancelled") else "accept",
        annotator_id=_who(annotation.get("completed_by")),
        timestamp=_time(annotation.get("updated_at") or annotation.get("created_at")),
        review=annotation.get("ground_truth") is True,
    )
    yield Converted(row, offsets)


def _is_path(result: Any) -> bool:
    """Return whether a result marks HTML, by paths such as /p[1]/text()[1]."""
    value = result.get("value") if isinstance(result, dict) else None
    return isinstance(value, dict) and str(value.get("start")).startswith("/")


def _read_results(number: int, results: Sequence[Any], others: Container[str]) -> tuple[list[_Mark], list[Problem]]:
    """Read results; `others` are the names of other texts, whose spans can only be told by their quotes."""
    marks, problems = [], []
    objects = [result for result in results if isinstance(result, dict)]
    labeled = {str(result.get("id")) for result in objects if result.get("type") not in OTHERS}
    for result in objects:
        value: Any = result.get("value")
        kind = result.get("type")
        if kind == "labels" and isinstance(value, dict):
            value = value | {key: to_integer(value.get(key)) for key in ("start", "end")}
        labels = _labels(value) if isinstance(value, dict) else []
        # Further questions about a labeled region, such as choices, have its offsets, too.
        if kind in OTHERS and (kind != "taxonomy" or not _has_offsets(value) or str(result.get("id")) in labeled):
            problems.append(Problem(number, Reason.NOT_A_SPAN, str(kind)))
        elif not _has_offsets(value):
            problem = Problem(number, Reason.INVALID, f"{kind} without offsets in the text")
            problems += [problem] * max(len(labels), 1)
        elif not labels:
            why = f"a span without a label, {value['start']} {value['end']}"
            problems.append(Problem(number, Reason.INVALID, why))
        elif not isinstance(value.get("text"), str) and str(result.get("to_name")) in others:
            problem = Problem(number, Reason.INVALID, f"it marks another text, {result['to_name']!r}")
            problems += [problem] * len(labels)
        else:
            # Line ends may be written as they are in JSON.
            quote = value["text"].replace("\\n", "\n") if isinstance(value.get("text"), str) else None
            marks.append(_Mark(value["start"], value["end"], labels, quote))
    problems += [Problem(number, Reason.INVALID, "a result is an object")] * (len(results) - len(objects))
    return marks, problems


def _place(number: int, text: str, marks: Sequence[_Mark]) -> tuple[list[RawSpan], list[Problem]]:
    """Convert marks to spans, one per label; misquoted marks to problems."""
    sane = [([(mark.start, mark.end)], mark.quote) for mark in marks if 0 <= mark.start < mark.end]
    table, _ = choose_reading(text, sane)
    spans, problems = [], []
    for mark in marks:
        start, end, labels, quote = mark
        if 0 <= start < end:
            ((start, end),) = to_code_points(text, [(start, end)], table)
            # Spans of whole words once quoted only the part that the annotator had marked.
            if quote is not None and fold(quote) not in fold(text[start:end]):
                why = f"{quote[:40]!r} isn't at {mark.start} {mark.end}"
                problems += [Problem(number, Reason.INVALID, why)] * len(labels)
                continue
        spans += [RawSpan(start, end, label) for label in labels]
    return spans, problems


def _labels(value: Mapping[str, Any]) -> list[Any]:
    """List the labels of a result, under its kind's name. A path of a taxonomy ends with one."""
    if isinstance(paths := value.get("taxonomy"), list):
        return [path[-1] for path in paths if isinstance(path, list) and path]
    labels: Any = next((value[name] for name in LABELS if name in value), [])
    return labels if isinstance(labels, list) else []


def _who(completed_by: Any) -> str | None:
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return None if completed_by is None else str(completed_by)


def _time(written: Any) -> float | None:
    """Convert a time such as 2021-03-09T22:16:08.728378Z to seconds; UTC without a zone."""
    try:
        time = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

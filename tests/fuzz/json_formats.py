"""Fuzzing of JSON: Label Studio, JSONL of several tools, Prodigy's databases, judged by what `json.loads` has."""

import json
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from labelwise.sources.formats import read_items
from labelwise.sources.items import MISCOUNTED, Item
from tests.fuzz.promises import balance, check, folder, read_file

HALF = re.compile("[\ud800-\udfff]")
UNQUOTED = {"start", "end", "labels"}


def decode(content: bytes) -> Any:
    """Decode JSON; ... stands for what isn't JSON, or has numbers, bytes or halves of characters that it lacks.

    A reader may take no notice of those in keys and values that it doesn't need.
    """
    try:
        decoded = json.loads(content.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return ...
    return ... if HALF.search(json.dumps(decoded, ensure_ascii=False)) else decoded


def _refuse(name: str) -> None:
    raise ValueError(name)


def fuzz_label_studio(data: bytes) -> int:
    """Label Studio's exports: each task has an item, and each label a span, or a problem; nothing is lost behind it."""
    items = list(read_file(data, "a.json"))
    # Choices that have labels are no spans, and are said.
    check(b'"choices"' in data or not any(item.problem.startswith(MISCOUNTED) for item in items), items)
    values = [value for line in data.split(b"\n") if line.strip() for value in [decode(line)]]
    if all(isinstance(value, list) for value in values):
        elements = [element for value in values for element in value]
        found = {number: list(of) for number, of in groupby(items, lambda item: item.line)}
        check(list(found) == list(range(1, len(elements) + 1)), elements, items)
        for number, element in enumerate(elements, 1):
            _check_element(element, found[number])
    else:
        check(bool(items) or not data.strip(b" \t\r\n,[]\xef\xbb\xbf"), items)
    return balance(items).rows_read


def _check_element(element: Any, items: list[Item]) -> None:
    """Check that the labels of a task are spans or problems, and spans where all is as Label Studio writes it."""
    annotations = element.get("annotations") if isinstance(element, dict) else None
    data = element.get("data") if isinstance(element, dict) else None
    text = data.get("text") if isinstance(data, dict) and len(data) == 1 else None
    tasks = [item.task for item in items if item.task]
    if not isinstance(annotations, list) or not annotations or not isinstance(text, str) or not text.strip():
        return
    labels = sum(_count(one) for one in annotations)
    spans = sum(len(task.spans or ()) for task in tasks)
    problems = [item.problem for item in items if item.problem]
    check(any(not one.startswith("invalid") for one in problems) or spans + len(problems) >= labels, element, items)
    if all(map(_is_plain, annotations)):
        check(not problems and len(tasks) == len(annotations) and spans == labels, element, items)


def _count(annotation: Any) -> int:
    results = annotation.get("result") if isinstance(annotation, dict) else None
    values = [one.get("value") for one in results or () if isinstance(one, dict)] if isinstance(results, list) else []
    labels = [value.get("labels") for value in values if isinstance(value, dict)]
    return sum(len(one) for one in labels if isinstance(one, list))


def _is_plain(annotation: Any) -> bool:
    return (
        isinstance(annotation, dict)
        and isinstance(annotation.get("result"), list)
        and all(isinstance(one, dict) and _is_span(one.get("value"), one.get("type")) for one in annotation["result"])
    )


def _is_span(value: Any, kind: Any) -> bool:
    if kind != "labels" or not isinstance(value, dict) or value.keys() != UNQUOTED:
        return False
    labels = value["labels"]
    return type(value["start"]) is int and type(value["end"]) is int and isinstance(labels, list) and bool(labels)


def fuzz_jsonl(data: bytes) -> int:
    """JSONL of doccano, Prodigy, and tokens and tags: each row by its own keys, wherever the file is cut."""
    head, rows = data[:1], data[1:]
    items = [item for item in read_file(rows, "a.jsonl") if item.task or item.problem]
    check(not any(item.problem.startswith(MISCOUNTED) for item in items), items)
    lines = [line for line in rows.removeprefix(b"\xef\xbb\xbf").splitlines() if line and not line.isspace()]
    check(len(items) in (0, len(lines)), items)
    if items:
        for line, item in zip(lines, items, strict=True):
            check_row(decode(line), item)
        cut = len(rows) * ord(head or b"\0") // 256
        parts = [(0, cut), (cut, None)] if cut else [(0, None)]
        found = [item for start, end in parts for item in read_items(folder() / "a.jsonl", start=start, end=end)]
        check([item[1:] for item in found if item.task or item.problem] == [item[1:] for item in items], found, items)
    return balance(items).rows_read


def check_row(row: Any, item: Item) -> None:
    """Check what was read of a row, where there is no doubt what it says."""
    if not isinstance(row, dict):
        check(item.task is None or row is ..., row, item)
        return
    text = row.get("text")
    good = isinstance(text, str) and text.strip() != ""
    # What was rejected is never accepted, whatever else a row has.
    if item.task and "answer" in row and not row.keys() & {"label", "labels", "entities", "tokens", "words"}:
        check(item.task.answer == row["answer"], row, item)
    if row.get("answer") == "reject":
        check(item.task is None or item.task.answer == "reject", row, item)
    if good and row.keys() <= {"id", "text", "label", "entities"} and isinstance(row.get("label"), list):
        _check_doccano(row, item)
    if good and row.keys() == {"text", "spans"} and _are_spans(row["spans"]):
        check(item.task is not None and len(item.task.spans or ()) == len(row["spans"]), row, item)


def _check_doccano(row: Mapping[str, Any], item: Item) -> None:
    lists = [found for key in ("label", "entities") if isinstance(found := row.get(key), list) and found]
    if len(lists) < 2 and all(isinstance(one, list | dict) for found in lists for one in found):
        check(item.task is not None and len(item.task.spans or ()) == sum(map(len, lists)), row, item)
    if item.task is None:
        check(item.problem.startswith(("malformed", "other format")), row, item)
    elif lists:
        check(len(item.task.spans or ()) in map(len, lists), row, item)


def _are_spans(spans: Any) -> bool:
    return isinstance(spans, list) and all(
        isinstance(one, dict) and one.keys() <= {"start", "end", "label"} for one in spans
    )


TEXT = "Add 5 mL of a cat's don't, twice."
VALUES = [{"start": 4, "end": 8, "labels": ["A"]}, {"start": 0, "end": 3, "text": "Add", "labels": ["B", "C"]}]
RESULTS = [
    {"id": "1", "type": "labels", "from_name": "l", "to_name": "t", "value": VALUES[0]},
    {"id": "2", "type": "labels", "from_name": "l", "to_name": "t", "value": VALUES[1]},
    {"id": "2", "type": "choices", "from_name": "c", "to_name": "t", "value": {"choices": ["x"]}},
]
ELEMENTS = [
    {"id": 1, "data": {"text": TEXT}, "annotations": [{"id": 7, "completed_by": 1, "result": RESULTS[:1]}]},
    {"id": 2, "data": {"text": TEXT}, "annotations": [{"was_cancelled": True, "result": []}, {"result": RESULTS}]},
    {"id": 3, "data": {"t": TEXT, "b": "Add it"}, "annotations": [{"result": RESULTS, "updated_at": "2021-03-09"}]},
    {"id": 4, "text": TEXT, "annotator": 3, "annotation_id": 5, "label": VALUES, "created_at": "2021-03-09T22:16:08Z"},
    {"id": 5, "data": {"text": "a \U0001f600 cat"}, "predictions": [{"result": RESULTS}], "annotations": []},
]
ROWS = [
    {"id": 1, "text": TEXT, "label": [[4, 8, "A"], [4, 5, "B"]]},
    {"id": 2, "text": "two", "label": [], "entities": [{"id": 7, "label": "A", "start_offset": 0, "end_offset": 3}]},
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A"}]},
    {"text": TEXT, "labels": ["A", "B"], "answer": "reject", "_input_hash": 1},
    {"tokens": ["EU", "rejects"], "ner_tags": ["B-A", "O"]},
    {"data": TEXT, "labels": [[0, 3, "A"]], "predicted": [[0, 3, "A"]], "_labelwise_uncovered": {"B": "none"}},
    {"text": "nothing"},
]


def label_studios() -> list[bytes]:
    """Exports of both kinds, and two in a file."""
    one = [json.dumps([element]).encode() for element in ELEMENTS]
    return [*one, b"\n".join(one[:2]), json.dumps(ELEMENTS).encode(), json.dumps(ELEMENTS[0]).encode() + b" oops"]


def rows() -> list[bytes]:
    """Rows of several tools, after a byte that tells where to cut."""
    lines = [json.dumps(row).encode() for row in ROWS]
    return [bytes([40 * place]) + b"\n".join(lines[place:] + lines[:place]) for place in range(5)]

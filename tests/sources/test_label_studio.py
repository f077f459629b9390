import json
import tracemalloc
from datetime import UTC, datetime

import pytest

from labelwise.annotations import Task
from labelwise.sources import json_text
from labelwise.sources.formats import read_items
from tests.sources.reading import read, write

TEXT = "Add 5 mL"
ML = [("5 mL", "A")]


def mark(start, end, text=None, label="A") -> dict:
    return {"start": start, "end": end, "labels": [label]} | ({"text": text} if text is not None else {})


def result(start, end, text=None, **other) -> dict:
    return {"type": "labels", "from_name": "label", "to_name": "text", "value": mark(start, end, text), **other}


def annotation(*results, who=1, **other) -> dict:
    return {"id": 7, "completed_by": who, "was_cancelled": False, "result": list(results), **other}


def task(text=TEXT, *annotations, number=1) -> dict:
    return {"id": number, "data": {"text": text}, "annotations": [*annotations], "predictions": [annotation()]}


def small(*marks, **data) -> dict:
    return {"id": 1, "annotator": 3, "annotation_id": 5, "label": list(marks), **({"text": TEXT} | data)}


def test_each_annotation_is_an_answer_of_its_annotator(tmp_path):
    added = annotation(result(4, 8), updated_at="2021-03-09T22:16:08.728378Z")
    rows = [task(TEXT, added, annotation(who={"id": 2, "email": "a@b.c"}), number=9)]
    rows.append(task("Stir", annotation(was_cancelled=True, updated_at="soon", ground_truth=True), number=10))
    tasks = list(read_items(write(tmp_path / "a.json", rows)))
    assert [(task.line, task.text, task.who, task.answer, task.review, task.doc) for task in tasks] == [
        (1, TEXT, "1", "accept", False, "9"),
        (1, TEXT, "a@b.c", "accept", False, "9"),
        (2, "Stir", "1", "ignore", True, "10"),
    ]
    written = datetime(2021, 3, 9, 22, 16, 8, 728378, tzinfo=UTC).timestamp()
    assert [task.when for task in tasks] == [written, None, None]


MANY = "malformed: no text in its data; declare `text: body` or `text: title`"
OTHER = "malformed: its spans belong to another text; declare that one as `text`"


@pytest.mark.parametrize(
    ("data", "key", "expected"),
    [
        ({"text": TEXT, "url": "http://a-much-longer-string.example.org"}, "", TEXT),
        ({"body": TEXT, "pages": 3}, "", TEXT),
        ({"body": TEXT, "title": "Add 5 mL, and more"}, "", MANY),
        ({"body": TEXT, "title": "Add 5 mL, and more"}, "body", TEXT),
        ({"body": TEXT, "text": "Stir it well"}, "body", TEXT),
        ({"body": "Stir it well", "title": TEXT}, "body", OTHER),
        ({"data": TEXT}, "", TEXT),
        ({"pages": 3}, "", "malformed: no text in its data: no value is a string"),
    ],
)
def test_the_text_is_the_declared_key_or_text_or_the_only_string(tmp_path, data, key, expected):
    full = {"id": 1, "data": data, "annotations": [annotation(result(4, 8, "5 mL"))]}
    brief = {name: value for name, value in small(mark(4, 8, "5 mL"), **data).items() if name in data or name != "text"}
    for row in (full, brief):
        assert read(tmp_path / "a.json", [row], key=key) == [(TEXT, ML) if expected == TEXT else expected]


WHO = {"annotator": 1, "annotation_id": 160, "created_at": "2026-11-22T13:28:08.421589Z", "lead_time": None}
EMOJI = "💩This is an annotation."
IMAGE = {"type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["Cat"]}}
NO_OFFSETS = "invalid: labels without offsets in the text"
TAXONOMY = {"id": "r2", "type": "taxonomy", "value": {**mark(4, 8, "5 mL"), "taxonomy": [["Quantity", "Volume"]]}}

ROWS = [
    ("oops", ["malformed: a task is an object, not str; decode it: jq -c fromjson"]),
    (task(" "), ["no text"]),
    (task("never annotated"), ["not annotated: only predictions"]),
    ({"text": "Add", "spans": []}, [("Add", [])]),
    *(
        (
            {"id": 1, "data": {"image": address}, "annotations": [annotation(IMAGE)]},
            [f"unsupported format: its data is the address of an image or a file, not a text: {address}"],
        )
        for address in ("https://example.org/a.png", "/data/upload/1/a.png")
    ),
    (
        {"data": {"text": TEXT}, "annotations": ["x", {"id": 1, "result": "x"}]},
        ["malformed: an annotation without a list of results"] * 2,
    ),
    *(
        (task(TEXT, annotation(one, result(4, 8))), [why, (TEXT, ML)])
        for one, why in (
            ("x", "invalid: a result is an object"),
            (result("four", 8), NO_OFFSETS),
            ({"type": "choices", "value": {"choices": ["x"]}}, "not a span: choices"),
            ({"type": "labels", "value": {"start": 0, "end": 3}}, "invalid: a span without a label, 0 3"),
            ({"type": "hypertextlabels", "value": {"startOffset": 3}}, NO_OFFSETS.replace("labels", "hypertextlabels")),
        )
    ),
    # a taxonomy of spans is their label unless they have one
    (task(TEXT, annotation(TAXONOMY)), [(TEXT, [("5 mL", "Volume")])]),
    (task(TEXT, annotation(result(4, 8, id="r2"), TAXONOMY)), ["not a span: taxonomy", (TEXT, ML)]),
    # values of JSON-MIN are counted one by one
    (small(mark(4, 8, "5 mL"), {"end": 8, "labels": ["A"]}, "x"), [NO_OFFSETS, NO_OFFSETS, (TEXT, ML)]),
    # as Label Studio 1.23 writes it where a project names its controls otherwise, and for an unopened task
    (
        {"body": TEXT, "ner": [mark(0, 3, "Add", "P")], "when": [mark(4, 8)], "quality": {"choices": ["x"]}, **WHO},
        [(TEXT, [("Add", "P"), ("5 mL", "A")])],
    ),
    ({"body": TEXT, "note": {"text": ["hm", "so"]}, **WHO}, [(TEXT, [])]),
    ({"body": TEXT, **dict.fromkeys(WHO)}, ["not annotated: no annotation"]),
    # offsets count as what they quote says: in UTF-16 in the second; of the third, nothing is quoted
    (task(EMOJI, annotation(result(12, 22, "annotation"))), [(EMOJI, [("annotation", "A")])]),
    (task(EMOJI, annotation(result(13, 23, "annotation"))), [(EMOJI, [("annotation", "A")])]),
    (task(EMOJI, annotation(result(13, 23))), [(EMOJI, [("nnotation.", "A")])]),
    # whole words around the marked ones, and a word elsewhere
    (
        task("Please add\n5 mL", annotation(result(7, 15, "add\\n5 mL"), result(7, 10, "dd"), result(4, 8, "5 mL"))),
        ["invalid: '5 mL' isn't at 4 8", ("Please add\n5 mL", [("add\n5 mL", "A"), ("add", "A")])],
    ),
]


@pytest.mark.parametrize(("row", "expected"), ROWS)
def test_what_is_marked_is_found_and_what_cannot_be_used_is_told_and_costs_nothing_else(tmp_path, row, expected):
    assert read(tmp_path / "a.json", [row, task(TEXT, annotation())]) == [*expected, (TEXT, [])]


GOOD = json.dumps(task(TEXT, annotation(result(4, 8)))).encode()


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (GOOD.replace(b'"labels": ["A"]', b'"labels": ["A"], "labels": ["B"]'), "malformed: 'labels' is there twice"),
        (GOOD.replace(b"Add", b"\xff"), "bad JSON: "),
        (GOOD.replace(b"Add", rb"\ud83d"), "bad JSON: "),
        (GOOD.replace(b'"data":', b'"data"'), "bad JSON: "),
        (b"", "bad JSON: "),
    ],
)
def test_a_key_that_is_there_twice_or_bytes_that_are_not_utf8_cost_their_task_alone(tmp_path, bad, why):
    first, problem, last = read(tmp_path / "a.json", b"\xef\xbb\xbf[" + b",".join((GOOD, bad, GOOD)) + b"]")
    assert (first, last) == ((TEXT, ML), (TEXT, ML))
    assert problem.startswith(why)


def test_a_large_file_is_read_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "CHUNK", 2**17)
    path = tmp_path / "a.json"
    one = json.dumps(task(TEXT + ' [{"\\' * 200, annotation(result(4, 8)))).encode()
    path.write_bytes(b"[" + b", ".join([one] * 1_000) + b"]\n")
    assert path.stat().st_size > 12 * 2**17
    tracemalloc.start()
    count = sum(isinstance(item, Task) for item in read_items(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 1_000
    assert peak < 6 * 2**17

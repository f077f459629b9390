"""Label Studio's exports: annotators, cancelled answers, how offsets count, and what isn't a span."""

import json
from datetime import UTC, datetime

import pytest

from labelwise.errors import InputError
from labelwise.sources import label_studio
from labelwise.sources.formats import read_items
from tests.conftest import Merging


def result(start, end, label="A", text=None, **other) -> dict:
    value = {"start": start, "end": end, "labels": [label]} | ({"text": text} if text is not None else {})
    return {"type": "labels", "from_name": "label", "to_name": "text", "value": value, **other}


def annotation(*results, who=1, **other) -> dict:
    return {"id": 7, "completed_by": who, "was_cancelled": False, "result": list(results), **other}


def task(text="Add 5 mL", *annotations, number=1, **data) -> dict:
    return {
        "id": number,
        "data": {"text": text, **data},
        "annotations": list(annotations),
        "predictions": [annotation()],
    }


def read(tmp_path, content, key="") -> list:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf8")
    return list(read_items(path, key=key))


def spans(item) -> list[tuple]:
    return [(span.start, span.end, span.label) for span in item.task.spans]


def test_each_annotation_is_an_answer_of_its_annotator(tmp_path):
    written = "2021-03-09T22:16:08.728378Z"
    items = read(
        tmp_path,
        [
            task(
                "Add 5 mL",
                annotation(result(4, 8), updated_at=written),
                annotation(who={"id": 2, "email": "a@b.c"}),
                number=9,
            ),
            task("Stir", annotation(result(0, 4), was_cancelled=True), number=10),
        ],
    )
    assert [
        (item.line, item.task.text, item.task.annotator_id, item.task.answer, item.task.meta) for item in items
    ] == [
        (1, "Add 5 mL", "1", "accept", {"doc": "9"}),
        (1, "Add 5 mL", "a@b.c", "accept", {"doc": "9"}),
        (2, "Stir", "1", "ignore", {"doc": "10"}),
    ]
    assert spans(items[0]) == [(4, 8, "A")]
    assert items[0].task.timestamp == datetime(2021, 3, 9, 22, 16, 8, 728378, tzinfo=UTC).timestamp()


def test_the_small_export_of_a_project_that_names_its_controls_otherwise(tmp_path):
    """As Label Studio 1.23 writes it for `ner`, `when`, choices and notes, and for a task that nobody has opened."""
    who = {"annotator": 1, "annotation_id": 160, "created_at": "2026-11-22T13:28:08.421589Z", "lead_time": None}
    nobody = {"annotator": None, "annotation_id": None, "created_at": None, "lead_time": None}
    first = {
        "body": "Add buffer for 5 min.",
        "title": "a title that is longer than the body",
        "id": 126,
        "ner": [
            {"start": 0, "end": 3, "text": "Add", "labels": ["Action"]},
            {"start": 4, "end": 10, "text": "buffer", "labels": ["Reagent"]},
        ],
        "when": [{"start": 15, "end": 20, "text": "5 min", "labels": ["Time"]}],
        "quality": {"choices": ["good", "bad"]},
        "note": {"text": ["hm", "so"]},
    }
    nothing = {"body": "Wait.", "title": "another title, also longer", "id": 127}
    rows = [first | who, nothing | who, {"body": "Not seen.", "id": 128} | nobody]
    found, empty, unseen = read(tmp_path, rows, "body")
    assert (found.task.text, spans(found)) == (
        "Add buffer for 5 min.",
        [(0, 3, "Action"), (4, 10, "Reagent"), (15, 20, "Time")],
    )
    assert (empty.task.text, spans(empty)) == ("Wait.", [])
    assert (unseen.task, unseen.problem) == (None, "not annotated: no annotation")


@pytest.mark.parametrize("quoted", [True, False])
def test_offsets_in_utf_16_are_found_out_by_what_they_quote(tmp_path, quoted):
    """Without quotes, nothing says so, and they are taken as code points."""
    text = "💩This is an annotation."
    (old,) = read(tmp_path, [task(text, annotation(result(13, 23, text="annotation" if quoted else None)))])
    (new,) = read(tmp_path, [task(text, annotation(result(12, 22, text="annotation" if quoted else None)))])
    assert spans(new) == [(12, 22, "A")]
    right = [result(7, 15, "A", "add\\n5 mL"), result(7, 10, "A", "dd")]  # whole words around what was marked
    problem, item = read(tmp_path, [task("Please add\n5 mL", annotation(*right, result(4, 8, "A", "5 mL")))])
    assert (problem.problem, spans(item)) == ("invalid: '5 mL' isn't at 4 8", [(7, 15, "A"), (7, 10, "A")])
    assert spans(old) == [(12, 22, "A") if quoted else (13, 23, "A")]


MANY = "malformed: no text in its data; declare which of its 'body', 'title' it is, as `text`"
OTHER = "malformed: its text isn't the one that its spans are of; declare that as `text`"


@pytest.mark.parametrize(
    ("data", "key", "found"),
    [
        ({"text": "Add 5 mL", "url": "http://a-much-longer-string.example.org"}, "", "Add 5 mL"),
        ({"body": "Add 5 mL", "pages": 3}, "", "Add 5 mL"),
        ({"body": "Add 5 mL", "title": "Add 5 mL, and more"}, "", MANY),
        ({"body": "Add 5 mL", "title": "Add 5 mL, and more"}, "body", "Add 5 mL"),
        ({"body": "Add 5 mL", "text": "Stir it well"}, "body", "Add 5 mL"),
        ({"body": "Stir it well", "title": "Add 5 mL"}, "body", OTHER),
        ({"pages": 3}, "", "malformed: no text in its data"),
    ],
)
def test_the_text_is_the_one_that_is_declared_or_called_so_or_alone(tmp_path, data, key, found):
    row = {"id": 1, "data": data, "annotations": [annotation(result(4, 8, text="5 mL"))]}
    (item,) = read(tmp_path, [row], key)
    assert (item.task.text if item.task else item.problem) == found
    small = {"id": 1, **data, "label": [result(4, 8, text="5 mL")["value"]], "annotator": 3, "annotation_id": 5}
    (item,) = read(tmp_path, [small], key)
    assert (item.task.text if item.task else item.problem) == found


def test_what_cannot_be_used_is_told_and_costs_nothing_else(tmp_path):
    items = read(
        tmp_path,
        [
            "oops",
            {"id": 2, "data": {"image": 5}, "annotations": [annotation()]},
            task(" "),
            task("never annotated"),
            task(
                "Add 5 mL",
                annotation(
                    result(4, 8),
                    result("4", 8),
                    {"type": "choices", "value": {"choices": ["x"]}},
                    {"type": "hypertextlabels", "value": {"startOffset": 3, "hypertextlabels": ["A"]}},
                    {"type": "labels", "value": {"start": 0, "end": 3}},
                    result(3, 99),
                ),
            ),
        ],
    )
    assert [item.problem for item in items if item.problem] == [
        "malformed: a task is an object, not str",
        "malformed: no text in its data",
        "no text",
        "not annotated: no annotation",
        "invalid: labels without offsets in the text",
        "not a span: choices",
        "invalid: hypertextlabels without offsets in the text",
        "invalid: a span without a label, 0 3",
    ]
    assert spans(items[-1]) == [(4, 8, "A"), (3, 99, "A")]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"text": "Add", "spans": []}, "other format: its keys are those of JSONL; write it as that, a row per line"),
        ({"id": 1, "text": "Add"}, "not annotated: no annotation"),
        *(
            ({"id": 1, "data": {"image": address}}, "other format: its data is the address of an image or a file")
            for address in ("https://example.org/a.png", "/data/upload/1/a.png", "s3://b/a")
        ),
    ],
)
def test_a_task_that_is_no_annotated_text_is_told(tmp_path, row, problem):
    image = {"type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["Cat"]}}
    (item,) = read(tmp_path, [row | ({"annotations": [annotation(image)]} if "data" in row else {})])
    assert item.problem.startswith(problem)


def test_a_taxonomy_of_spans_is_their_label_unless_they_have_one(tmp_path):
    value = {"start": 4, "end": 8, "text": "5 mL", "taxonomy": [["Quantity", "Volume"]]}
    alone = {"id": "r1", "type": "taxonomy", "value": value}
    both = [{**result(4, 8, "A", "5 mL"), "id": "r2"}, {"id": "r2", "type": "taxonomy", "value": value}]
    one, asked, two = read(tmp_path, [task("Add 5 mL", annotation(alone)), task("Add 5 mL", annotation(*both))])
    assert (spans(one), asked.problem, spans(two)) == ([(4, 8, "Volume")], "not a span: taxonomy", [(4, 8, "A")])


@pytest.mark.parametrize("small", [True, False])
def test_what_an_export_of_ours_has_besides_comes_back(tmp_path, small):
    """The document's name, and labels that the text isn't complete for."""
    data = {"text": "Add 5 mL", "doc": "a longer name.txt", "_labelwise_uncovered": {"B": "none", "C": 3}}
    who = {"annotator": 1, "annotation_id": 2, "label": [{"start": 4, "end": 8, "text": "5 mL", "labels": ["A"]}]}
    full = {"id": 1, "data": data, "annotations": [annotation(result(4, 8, text="5 mL"))]}
    (item,) = read(tmp_path, [{"id": 1, **data, **who} if small else full])
    assert (item.task.meta, item.task.uncovered) == ({"doc": "a longer name.txt"}, {"B": "none"})


def test_a_key_that_is_there_twice_costs_its_task_alone(tmp_path):
    good = json.dumps(task("Add 5 mL", annotation(result(4, 8))))
    bad = good.replace('"labels": ["A"]', '"labels": ["A"], "labels": ["B"]')
    (tmp_path / "a.json").write_text(f"[{bad}, {good}]")
    first, second = read_items(tmp_path / "a.json")
    assert first.problem == "malformed: the key 'labels' is there twice; keep one"
    assert spans(second) == [(4, 8, "A")]


def test_values_that_are_no_spans_are_counted_one_by_one(tmp_path):
    """One without a start, in JSON-MIN; an annotation, a result, or results of another type."""
    span = {"start": 4, "end": 8, "text": "5 mL", "labels": ["A"]}
    broken = {key: value for key, value in span.items() if key != "start"}
    small = {"id": 1, "text": "Add 5 mL", "annotator": 3, "annotation_id": 5}
    items = read(tmp_path, [{**small, "label": [span, broken, "x"]}, {**small, "label": [broken]}])
    invalid = "invalid: labels without offsets in the text"
    assert [item.problem or spans(item) for item in items] == [invalid, invalid, [(4, 8, "A")], invalid, []]
    full = {"id": 1, "data": {"text": "Add 5 mL"}}
    results = ["x", None, {**result(4, 8, text="5 mL"), "id": [], "to_name": {}}]
    items = read(tmp_path, [full | {"annotations": ["x", {"id": 1, "result": "x"}, annotation(*results)]}])
    malformed = ["malformed: an annotation without a list of results"] * 2
    objects = ["invalid: a result is an object"] * 2
    assert [item.problem or spans(item) for item in items] == [*malformed, *objects, [(4, 8, "A")]]


def test_spans_that_get_lost_are_miscounted(tmp_path, monkeypatch):
    """As if they were read by code that is wrong."""
    read_results = label_studio._read_results
    monkeypatch.setattr(label_studio, "_read_results", lambda results: (read_results(results)[0][:1], []))
    item, _ = read(tmp_path, [task("Add 5 mL", annotation(result(4, 8), result(0, 3)))])
    assert item.problem == "miscounted: 2 results, of which 1 were read"


@pytest.mark.parametrize("content", [b"", b"{}", b'[{"id": 1}', b"[1]\n[2]", "[1]".encode("utf-16"), rb'["\ud83d"]'])
def test_a_file_that_is_no_array_is_an_error(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json: it isn't one JSON array \(.*\); export it from Label Studio again"):
        list(read_items(tmp_path / "a.json"))


def test_bytes_that_are_not_utf8_cost_their_task_alone(tmp_path):
    """The mark that some editors begin a file with is no byte of JSON."""
    good = json.dumps(task("Add 5 mL", annotation(result(4, 8)))).encode()
    rows = [good, good.replace(b"Add", b"\xff"), good]
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf[" + b",".join(rows) + b"]")
    assert [item.problem.partition(":")[0] for item in read_items(tmp_path / "a.json")] == ["", "bad JSON", ""]


def test_it_is_merged_with_agreement_and_the_ledger_balances(merging: Merging):
    """Two annotations of one task that have no ids are equal in all, and have an outcome each."""
    others = [{"type": "relation", "from_id": "a", "to_id": "b"}, {"type": "choices", "value": {"choices": ["x"]}}]
    exported = [
        task("Add 5 mL", annotation(result(4, 8), result(0, 99), *others), annotation(result(4, 8), who=2)),
        task("Stir", annotation(was_cancelled=True), number=2),
        task("Wait", number=3),
        task("Add", *[{"result": [result(0, 3)]}] * 2, number=4),
    ]
    merging.add("a", ["A"], [])
    (merging.root / "tasks" / "a.json").write_text(json.dumps(exported))
    merging.declared[0]["path"] = "a.json"
    merging.add("b", ["B"], [{"text": "x"}])
    ledger = merging.run()
    assert ledger.rows == {"merged": 4, "superseded": 1, "ignored": 1, "not annotated": 1}
    spans = {"entity": 2, "duplicate": 1, "invalid": 1, "in superseded task": 1, "not a span": 2}
    assert ledger.spans == spans
    assert ledger.agreement["A"]["texts"] == 1
    assert ledger.problems == 1, "what isn't a span isn't bad"

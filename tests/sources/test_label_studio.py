"""Label Studio's exports: annotators, cancelled answers, how offsets count, and what isn't a span."""

import json
from datetime import UTC, datetime

import pytest
import typer
import yaml
from typer.testing import CliRunner

from labelwise.errors import InputError
from labelwise.sources import json_array, label_studio
from labelwise.sources.formats import read_items
from scripts.merge import merge_cli
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


def test_the_small_export(tmp_path):
    """JSON-MIN: one annotation a row; without a label, nothing was found."""
    label = [{"start": 4, "end": 8, "text": "5 mL", "labels": ["A", "B"]}]
    items = read(tmp_path, [{"id": 1, "text": "Add 5 mL", "label": label, "annotator": 3, "annotation_id": 5}])
    items += read(tmp_path, [{"id": 2, "text": "Stir", "annotator": 3, "annotation_id": 6}])
    assert [spans(item) for item in items] == [[(4, 8, "A"), (4, 8, "B")], []]
    assert {item.task.annotator_id for item in items} == {"3"}


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


def test_spans_of_another_text_are_invalid(tmp_path):
    body, title = result(10, 13, text="Bob"), result(0, 5, text="Apple")
    data = {"title": "Apple buys X", "body": "Yesterday Bob sold Apple."}
    problem, item = read(tmp_path, [{"id": 1, "data": data, "annotations": [annotation(title, body)]}], "body")
    assert (problem.problem, spans(item)) == ("invalid: 'Apple' isn't at 0 5", [(10, 13, "A")])


def test_a_text_that_nobody_declares_is_asked_for_and_what_is_printed_is_pasted(tmp_path):
    folder = tmp_path / "prodigy"
    folder.mkdir()
    data = {"title": "5 mL of it", "body": "Add 5 mL of it all"}
    row = {"id": 1, "data": data, "annotations": [annotation(result(4, 8, text="5 mL"))]}
    (folder / "export.json").write_text(json.dumps([row]), encoding="utf8")
    app = typer.Typer()
    app.command()(merge_cli)
    command = [str(folder), str(tmp_path / "corpus"), "--metrics", str(tmp_path / "merge.json"), "--workers", "1"]
    printed = CliRunner().invoke(app, command).output
    assert "'export' isn't declared" in printed
    entry = printed[printed.index("- name:") :].partition("\n\n")[0]
    assert yaml.safe_load(entry) == [{"name": "export", "path": "export.json", "labels": ["A"], "text": "body"}]
    (folder / "datasets.yml").write_text(entry, encoding="utf8")
    assert CliRunner().invoke(app, command).exit_code == 0
    assert json.loads((tmp_path / "merge.json").read_text())["spans"] == {"entity": 1}


@pytest.mark.parametrize(("key", "suffix"), [("text", ".json"), ("spans", ".spacy")])
def test_a_key_of_another_format_is_refused(merging: Merging, key, suffix):
    merging.add("a", ["A"], [{"text": "Add"}], **{key: "body"})
    with pytest.raises(InputError, match=rf"data set 'a': `{key}` is of {suffix} files; leave it out"):
        merging.run()


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
        "invalid: hypertextlabels without offsets in the text",
        "invalid: a span without a label, 0 3",
    ]
    assert spans(items[-1]) == [(4, 8, "A"), (3, 99, "A")]


def test_a_span_that_quotes_something_else_is_invalid(tmp_path):
    """But for line ends as JSON writes them, and for whole words around what was marked."""
    text = "Please add\n5 mL of it"
    right = [result(7, 15, "A", "add\\n5 mL"), result(7, 10, "A", "dd")]
    (problem, item) = read(tmp_path, [task(text, annotation(*right, result(4, 8, "A", "5 mL")))])
    assert problem.problem == "invalid: '5 mL' isn't at 4 8"
    assert spans(item) == [(7, 15, "A"), (7, 10, "A")]


def test_an_address_of_a_text_is_not_the_text(tmp_path):
    (item,) = read(tmp_path, [task("https://bucket.example/x.txt", annotation(result(4, 8, "A", "5 mL")))])
    assert (item.task, item.problem) == (None, OTHER)


def test_a_taxonomy_of_spans_is_their_label_unless_they_have_one(tmp_path):
    value = {"start": 4, "end": 8, "text": "5 mL", "taxonomy": [["Quantity", "Volume"]]}
    alone = {"id": "r1", "type": "taxonomy", "value": value}
    both = [{**result(4, 8, "A", "5 mL"), "id": "r2"}, {"id": "r2", "type": "taxonomy", "value": value}]
    asked = {"id": "r2", "type": "choices", "value": {"start": 4, "end": 8, "text": "5 mL", "choices": ["sure"]}}
    items = read(tmp_path, [task("Add 5 mL", annotation(alone)), task("Add 5 mL", annotation(*both, asked))])
    assert [spans(item) for item in items] == [[(4, 8, "Volume")], [(4, 8, "A")]]


@pytest.mark.parametrize("small", [True, False])
def test_what_an_export_of_ours_has_besides_comes_back(tmp_path, small):
    """The document's name, and labels that the text isn't complete for, unless somebody else's data are called so."""
    data = {"text": "Add 5 mL", "doc": "a longer name than the text.txt", "_labelwise_uncovered": {"B": "none", "C": 3}}
    other = {"text": "Stir", "doc": "Stir", "_labelwise_uncovered": "none"}
    if small:
        who = {"annotator": 1, "annotation_id": 2, "label": [{"start": 4, "end": 8, "text": "5 mL", "labels": ["A"]}]}
        rows = [{"id": 1, **data, **who}, {"id": 2, **other, "annotator": 1, "annotation_id": 3}]
    else:
        rows = [{"id": 1, "data": data, "annotations": [annotation(result(4, 8, text="5 mL"))]}]
        rows.append({"id": 2, "data": other, "annotations": [annotation()]})
    items = read(tmp_path, rows)
    assert [(item.task.text, item.task.meta, item.task.uncovered) for item in items] == [
        ("Add 5 mL", {"doc": data["doc"]}, {"B": "none"}),
        ("Stir", {"doc": "2"}, None),
    ]


def test_it_is_merged_with_agreement_and_the_ledger_balances(merging: Merging):
    exported = [
        task("Add 5 mL", annotation(result(4, 8), result(0, 99)), annotation(result(4, 8), who=2)),
        task("Stir", annotation(was_cancelled=True), number=2),
        task("Wait", number=3),
    ]
    merging.add("a", ["A"], [])
    (merging.root / "tasks" / "a.json").write_text(json.dumps(exported))
    merging.declared[0]["path"] = "a.json"
    merging.add("b", ["B"], [{"text": "x"}])
    ledger = merging.run()
    assert ledger.rows == {"merged": 3, "ignored": 1, "not annotated": 1}
    assert (ledger.spans["entity"], ledger.spans["duplicate"], ledger.spans["invalid"]) == (1, 1, 1)
    assert ledger.agreement["A"]["texts"] == 1


def test_annotations_that_are_equal_have_an_outcome_each(merging: Merging):
    """Two of one task that have no ids are equal in all."""
    one = {"result": [result(4, 8)]}
    merging.add("a", ["A"], [])
    (merging.root / "tasks" / "a.json").write_text(json.dumps([task("Add 5 mL", one, one)]))
    merging.declared[0]["path"] = "a.json"
    merging.add("b", ["B"], [{"text": "x"}])
    ledger = merging.run()
    assert (ledger.rows["merged"], ledger.rows["superseded"], ledger.spans["entity"]) == (2, 1, 1)


ELEMENTS = [[], [1], [12345, "a]b", {"x": [1, {"y": "\\u00e9}"}]}, None, [2]], [{"a": "x" * 50}] * 9]


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("values", ELEMENTS)
def test_an_array_of_any_size_is_read_element_by_element(chunk, values, tmp_path, monkeypatch):
    """So are two in a file, with anything between them."""
    monkeypatch.setattr(json_array, "CHUNK", chunk)
    for indent in (None, 2):
        one = json.dumps(values, indent=indent) + "\n"
        for content, expected in ((one, values), (one + one, values * 2), (one + ",\n[]" + one, values * 2)):
            (tmp_path / "a.json").write_text(content)
            assert list(json_array.read_array(tmp_path / "a.json")) == [(value, "") for value in expected]
    (tmp_path / "a.json").write_text('\ufeff {"id": 1} {"id": 2}', encoding="utf8")
    assert list(json_array.read_array(tmp_path / "a.json")) == [({"id": 1}, ""), ({"id": 2}, "")]


@pytest.mark.parametrize("chunk", [1, 1000])
@pytest.mark.parametrize(
    ("content", "before", "said"),
    [
        (b"[1,\n2", [1, 2], "the array has no end"),
        (b"[1,\n oops,\n2]", [1], "from line 2 on, it isn't JSON (Expecting value"),
        (b"[1, 2]\n[3]\n\nx", [1, 2, 3], "from line 4 on, it isn't JSON (Expecting value"),
        (b"[1]]", [1], "from line 1 on, it isn't JSON (Expecting value"),
        (b"[[" + b"[" * 100_000, [], "from line 1 on, it isn't JSON (maximum recursion depth"),
        (b"[0, " + b"1" * 5000 + b"]", [0], "from line 1 on, it isn't JSON (Exceeds the limit"),
        (b'[0, {"a": 1', [0], "from line 1 on, it isn't JSON (Expecting ',' delimiter"),
        ("[1]".encode("utf-16"), [], "from line 1 on, it isn't JSON (Expecting value"),
    ],
)
def test_where_a_file_is_damaged_costs_only_what_follows(content, before, said, chunk, tmp_path, monkeypatch):
    if len(content) < 5000:
        monkeypatch.setattr(json_array, "CHUNK", chunk)
    (tmp_path / "a.json").write_bytes(content)
    *found, (element, problem) = json_array.read_array(tmp_path / "a.json")
    assert (found, element) == ([(value, "") for value in before], None)
    assert problem.startswith(f"malformed: {said}")
    assert problem.endswith("export it again")


def test_a_key_that_is_there_twice_costs_its_task_alone(tmp_path):
    good = json.dumps(task("Add 5 mL", annotation(result(4, 8))))
    bad = good.replace('"labels": ["A"]', '"labels": ["A"], "labels": ["B"]')
    (tmp_path / "a.json").write_text(f"[{bad}, {good}]")
    first, second = read_items(tmp_path / "a.json")
    assert first.problem == "malformed: the key 'labels' is there twice; keep one"
    assert spans(second) == [(4, 8, "A")]


@pytest.mark.parametrize("address", ["https://example.org/a.png", "/data/upload/1/a.png", "s3://b/a"])
def test_an_address_is_no_text(tmp_path, address):
    image = {"type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["Cat"]}}
    (item,) = read(tmp_path, [{"id": 1, "data": {"image": address}, "annotations": [annotation(image)]}])
    assert item.problem == f"other format: its data is the address of an image or a file, not a text: {address}"


def test_garbage_behind_an_export_does_not_stop_a_merge(merging: Merging):
    merging.add("a", ["A"], [])
    export = json.dumps([task("Add 5 mL", annotation(result(4, 8)))])
    other = json.dumps([task("Stir", annotation(result(0, 4)), number=2)])
    (merging.root / "tasks" / "a.json").write_text(f"{export}\n{other}\noops")
    merging.declared[0]["path"] = "a.json"
    merging.add("b", ["B"], [{"text": "x"}])
    ledger = merging.run()
    assert +ledger.rows == {"merged": 3, "malformed": 1}
    problem = json.loads(merging.files()["problems.jsonl"])
    assert (problem["file"], problem["line"]) == ("a.json", 3)


@pytest.mark.parametrize("code", [0xD83D, 0xDCFF, 0xDE00])
def test_half_a_character_costs_only_its_row_or_its_span(tmp_path, code):
    """Of a text, of a label, and of what else goes into the corpus; bytes that aren't UTF-8 are the same."""
    half = chr(code)
    whole = task("Add \U0001f600", annotation(result(0, 3)))
    content = [
        task(f"Add {half}", annotation(result(0, 3))),
        task("Add", annotation(result(0, 3), result(0, 2, half), result("4", 8) | {"type": half})),
        task("Add", annotation(result(0, 3), who=half)),
        task("Add", annotation(result(0, 3)), doc=half),
        whole,
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(content))
    items = list(read_items(path))
    assert [item.problem.partition(" ")[0] if item.problem else len(item.task.spans) for item in items] == [
        *("malformed:", "invalid:", "invalid:", 1, "malformed:", "malformed:", 1),
    ]
    assert all(json.dumps(item.problem, ensure_ascii=False).encode() for item in items)
    path.write_bytes(json.dumps(content[4:]).encode().replace(b"Add", b"A\xff"))
    assert [item.problem.partition(":")[0] for item in read_items(path)] == ["malformed"]


def test_a_label_with_half_a_character_does_not_hide_which_text_it_is_of(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task("Add 5 mL", annotation(result(4, 8, "\ud83d", text="5 mL")))]))
    problem, item = read_items(path)
    assert problem.problem == "invalid: half a character in the label '\\ud83d'"
    assert (item.task.text, item.task.spans) == ("Add 5 mL", [])


@pytest.mark.parametrize("row", [{"text": "Add", "spans": []}, {"text": "Add", "label": [[0, 3, "A"]]}])
def test_rows_of_jsonl_are_told(tmp_path, row):
    items = read(tmp_path, [row, {"id": 1, "text": "Add"}])
    reasons = [item.problem.partition(":")[0] for item in items]
    assert reasons == ["other format", "not annotated"]


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
    malformed = "malformed: an annotation without a list of results"
    objects = ["invalid: a result is an object"] * 2
    assert [item.problem or spans(item) for item in items] == [malformed, malformed, *objects, [(4, 8, "A")]]


def test_spans_that_get_lost_are_miscounted(tmp_path, monkeypatch):
    """As if they were read by code that is wrong."""
    values = label_studio._values
    monkeypatch.setattr(label_studio, "_values", lambda annotation: (values(annotation)[0][:1], []))
    *_, item = read(tmp_path, [task("Add 5 mL", annotation(result(4, 8), result(0, 3)))])
    assert item.problem == "miscounted: 2 labels of spans, of which 1 were read"

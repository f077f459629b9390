"""Saved predictions: what is written is read again, and what can be told right or wrong."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, read_predictions, write_predictions

# Line breaks of all kinds (a line of the file ends with \n alone), quotes, a NUL, combining and wide characters.
ODD = [
    "",
    " ",
    "a\nb",
    "a\r\nb\x85c\u2028d\u2029e\x0bf\x0cg\x1ch",
    "\x00",
    '"\\"',
    "e\u0301",
    "😀👨‍👩‍👧",
    "\ufeffx",
    "</a>&",
    "ｆ",
]


def make_doc(key: str = "00", **fields) -> PredictedDoc:
    return PredictedDoc(**{"key": key, "text": "big cat", "predicted": [], "gold": [], "entities": [], **fields})


def written(*docs: PredictedDoc) -> bytes:
    file = io.BytesIO()
    write_predictions(docs, file)
    return file.getvalue()


def read(content: bytes) -> list[PredictedDoc]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "p.jsonl").write_bytes(content)
        return list(read_predictions(Path(folder) / "p.jsonl"))


@pytest.mark.parametrize("text", ODD)
def test_what_is_written_is_read_again(text):
    doc = make_doc("0a", text=text, predicted=[(0, 3, text)], gold=[(0, 3, "A"), (1, 2, "B")], entities=[(0, 3, "A")])
    doc.rejected, doc.uncovered = [(4, 7, "B")], {text: "none", "B": "partial"}
    others = [make_doc("09"), make_doc("0b")]
    content = written(others[0], doc, others[1])
    assert read(content) == [others[0], doc, others[1]]
    assert content.count(b"\n") == 3
    assert content.endswith(b"\n")


def test_a_line_is_json_that_other_programs_read():
    doc = make_doc("0a", text="é😀", predicted=[(0, 1, "A")], rejected=[(1, 2, "B")], uncovered={"B": "partial"})
    doc.datasets, doc.doc, doc.found = ["a"], "p1.txt", [(0, 1, "A", 0.75)]
    assert json.loads(written(doc)) == {
        "key": "0a",
        "text": "é😀",
        "predicted": [[0, 1, "A"]],
        "gold": [],
        "entities": [],
        "rejected": [[1, 2, "B"]],
        "datasets": ["a"],
        "doc": "p1.txt",
        "found": [[0, 1, "A", 0.75]],
        "uncovered": {"B": "partial"},
    }


def test_rejected_and_uncovered_may_be_left_out():
    assert read(b'{"key":"a","text":"x","predicted":[],"gold":[],"entities":[]}\n') == [make_doc("a", text="x")]


GOOD = written(make_doc("00"), make_doc("01"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{oops", id="no JSON"),
        pytest.param(b'{"other": ' + b"[" * 100_000, id="nested"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"key": "02"}', id="fields missing"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
        pytest.param(written(make_doc("02", text="TEXT")).replace(b"TEXT", b"\xff").strip(), id="no UTF-8 in a text"),
        pytest.param(written(make_doc("02", text="TEXT")).replace(b"TEXT", b"\\ud800").strip(), id="half a character"),
        pytest.param(
            written(make_doc("02", gold=[(0, 3, "A")])).replace(b'3,"A"', b'3,"A",4').strip(), id="four parts"
        ),
        pytest.param(written(make_doc("02", gold=[(0, 3, "A")])).replace(b'3,"A"', b'"3","A"').strip(), id="offset"),
        pytest.param(written(make_doc("02")).replace(b'"02"', b"2").strip(), id="key"),
        pytest.param(written(make_doc("02"))[:-5], id="cut off"),
    ],
)
def test_a_line_that_is_no_prediction_is_named(line):
    """Line 3 of a file, after two that are read."""
    with pytest.raises(InputError, match=r"p\.jsonl:3: not a prediction \(.+\); run the evaluation again$"):
        read(GOOD + line + b"\n")


@pytest.mark.parametrize("key", ["00", "01"])
def test_lines_that_are_not_sorted_are_an_error(key):
    """A key that comes later than it should, and one that comes twice."""
    with pytest.raises(InputError, match=r"p\.jsonl:3: not sorted by key; run the evaluation again$"):
        read(GOOD + written(make_doc(key)))


def test_a_missing_file_has_a_remedy(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: there is no such file; run the evaluation, or `dvc pull`"):
        next(read_predictions(tmp_path / "none.jsonl"))


def test_a_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(GOOD + b"{oops\n")
    docs = read_predictions(path)
    assert [next(docs), next(docs)] == [make_doc("00"), make_doc("01")]
    with pytest.raises(InputError, match=r"p\.jsonl:3: "):
        next(docs)


def test_an_empty_file_has_no_docs():
    assert read(b"") == []


@pytest.mark.parametrize(
    ("uncovered", "expected"),
    [
        # All spans of a label that the text is complete for.
        ({}, {(0, 1, "A"), (2, 3, "A"), (4, 5, "A"), (0, 1, "B")}),
        ({"B": "none"}, {(0, 1, "A"), (2, 3, "A"), (4, 5, "A")}),
        ({"B": "partial"}, {(0, 1, "A"), (2, 3, "A"), (4, 5, "A")}),
        # The accepted one and the rejected one; not the one that nobody judged.
        ({"A": "partial"}, {(0, 1, "A"), (2, 3, "A"), (0, 1, "B")}),
        ({"A": "none"}, {(0, 1, "B")}),
        ({"A": "none", "B": "none"}, set()),
        ({"A": "partial", "B": "partial"}, {(0, 1, "A"), (2, 3, "A")}),
        ({"C": "none", "D": "partial"}, {(0, 1, "A"), (2, 3, "A"), (4, 5, "A"), (0, 1, "B")}),
    ],
)
def test_what_can_be_told_right_or_wrong(uncovered, expected):
    doc = make_doc(gold=[(0, 1, "A")], rejected=[(2, 3, "A")], uncovered=uncovered)
    assert doc.scored([(0, 1, "A"), (2, 3, "A"), (4, 5, "A"), (0, 1, "B")]) == expected


def test_only_some_labels_are_kept_in_a_copy():
    spans = [(0, 1, "A"), (0, 1, "B"), (2, 3, "C")]
    doc = make_doc(predicted=spans, gold=spans, entities=spans, rejected=spans, uncovered={"A": "none", "B": "partial"})
    kept = doc.only(["C", "A", "X"])
    for name in ("predicted", "gold", "entities", "rejected"):
        assert getattr(kept, name) == [(0, 1, "A"), (2, 3, "C")]
        assert getattr(doc, name) == spans
    assert (kept.key, kept.text, kept.uncovered) == (doc.key, doc.text, {"A": "none"})

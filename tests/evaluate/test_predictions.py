import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from labelwise.base.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, read_predictions, write_predictions
from tests.evaluate.test_scoring import make_doc

# Line breaks of all kinds (a line of the file ends with \n alone), quotes, a NUL, combining and wide characters.
ODD = ["", "a\r\nb\x85c\u2028d\u2029e\x0bf\x0cg\x1ch", "\x00", '"\\"', "e\u0301", "😀👨‍👩‍👧", "\ufeffx", "</a>&"]


def written(*docs: PredictedDoc) -> bytes:
    with TemporaryDirectory() as folder:
        assert write_predictions(docs, Path(folder) / "p.jsonl") == (len(docs), sum(doc.words for doc in docs))
        return (Path(folder) / "p.jsonl").read_bytes()


def read(content: bytes) -> list[PredictedDoc]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "p.jsonl").write_bytes(content)
        return list(read_predictions(Path(folder) / "p.jsonl"))


@pytest.mark.parametrize("text", ODD)
def test_what_is_written_is_read_again_and_is_a_line_of_json(text):
    doc = make_doc(
        key="0a", text=text, predicted=[(0, 3, text)], gold=[(0, 3, "A"), (1, 2, "B")], found=[(0, 1, "A", 0.5)]
    )
    doc.rejected, doc.uncovered, doc.doc = [(4, 7, "B")], {text: "none", "B": "partial"}, "p1.txt"
    content = written(make_doc(key="09"), doc, make_doc(key="0b"))
    assert read(content) == [make_doc(key="09"), doc, make_doc(key="0b")]
    assert [json.loads(line)["key"] for line in content.split(b"\n")[:-1]] == ["09", "0a", "0b"]


GOOD = written(make_doc(key="00"), make_doc(key="01"))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{oops",
        b'{"other": ' + b"[" * 100_000,
        b'{"key": "02"}',
        b"\xff\xfe",
        written(make_doc(key="02", text="TEXT")).replace(b"TEXT", b"\\ud800").strip(),
        written(make_doc(key="02", gold=[(0, 3, "A")])).replace(b'3,"A"', b'3,"A",4').strip(),
        written(make_doc(key="02"))[:-5],
    ],
    ids=range(8),
)
def test_a_line_that_is_no_prediction_is_named(line):
    with pytest.raises(InputError, match=r"p\.jsonl:3: not a prediction \(.+\); run the evaluation again$"):
        read(GOOD + line + b"\n")


def test_a_missing_file_has_a_remedy(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: there is no such file; run the evaluation, or `dvc pull`"):
        next(read_predictions(tmp_path / "none.jsonl"))

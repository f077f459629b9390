import gzip
import json

import pytest

from labelwise.sources.raw_texts import count_raw_texts, read_raw_texts


def test_texts_are_counted_before_they_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntext")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/b.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    with gzip.open(tmp_path / "below/c.jsonl.gz", "wt") as file:
        file.write('{"text": "one"}\n' * 3)
    (tmp_path / "d.csv").write_text("text\none\n")
    assert count_raw_texts([tmp_path]) == len([*read_raw_texts([tmp_path])]) == 6
    (tmp_path / "below/c.jsonl.gz").write_bytes(b"no gzip")  # reading it is an error
    assert count_raw_texts([tmp_path / "below"]) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"found": {"PER": ["Ann"]}},
        {"annotation": [{"start": 0, "end": 3, "label": "PER"}]},
        {"labels": ["greeting"]},
        {"label": None},
        {"spans": "none"},
        {"tokens": ["Ann", "left"], "ner_tags": ["B-PER", "O", "O"], "text": "Ann left"},
        {"spans": [], "label": [[0, 3, "PER"]]},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_text_is_read_whatever_else_its_row_has(tmp_path, more):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Ann left", **more}) + "\n")
    assert [(raw.text, raw.problem) for raw in read_raw_texts([tmp_path])] == [("Ann left", "")]


@pytest.mark.parametrize("more", [{}, {"found": {"PER": ["Ann"]}}], ids=["plain", "unread"])
def test_a_text_keeps_the_meta_of_its_row(tmp_path, more):
    """By `split_by`, a raw text shares a document with texts of the corpus."""
    row = {"text": "Ann left", "meta": {"doc": "d1", "patient": 7, "none": None}, **more}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert [one.meta for one in read_raw_texts([tmp_path])] == [{"doc": "d1", "patient": "7"}]


@pytest.mark.parametrize("row", [{"text": " ", "found": {"A": ["b"]}}, {"text": 3, "found": {"A": ["b"]}}, ["a"], {}])
def test_a_row_without_a_text_is_a_problem(tmp_path, row):
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert [(raw.text, bool(raw.problem)) for raw in read_raw_texts([tmp_path])] == [(None, True)]

"""Rows of JSONL: each is read by its own keys, or counted."""

import json
import random

import pytest

from labelwise.sources import jsonl, rows
from labelwise.sources.doccano import KEYS
from labelwise.sources.formats import read_items
from labelwise.sources.prodigy import Task, parse_task
from labelwise.sources.rows import parse_row, without_tokens
from labelwise.sources.tagged_rows import TAGS

PRODIGY = {"text": "Add 5 mL", "spans": [{"start": 0, "end": 3, "label": "P"}], "_input_hash": 1}
REJECTED = {"text": "Add", "labels": ["A", "B"], "answer": "reject"}
DOCCANO = {"text": "Add 5 mL", "label": [[4, 8, "D"]]}
TAGGED = {"tokens": ["Add", "5"], "ner_tags": ["B-T", "O"]}
SILENT = {"text": "Stir"}
OTHER = "other format: it has Prodigy's keys, and other annotation in those of another tool; keep one of them"


def read(path, *content) -> list:
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return [
        (item.task.answer, [(span.start, span.end, span.label) for span in item.task.spans or ()])
        if item.task
        else item.problem
        for item in read_items(path)
    ]


@pytest.mark.parametrize("first", range(5))
def test_each_row_is_read_by_its_own_keys_whatever_comes_first(tmp_path, first):
    """A rejected task of Prodigy's is never an accepted one."""
    expected = {
        "P": (PRODIGY, ("accept", [(0, 3, "P")])),
        "R": (REJECTED, ("reject", [])),
        "D": (DOCCANO, ("accept", [(4, 8, "D")])),
        "T": (TAGGED, ("accept", [(0, 3, "T")])),
        "S": (SILENT, ("accept", [])),
    }
    order = list(expected.values())
    order = order[first:] + order[:first]
    assert read(tmp_path / "a.jsonl", *(row for row, _ in order)) == [found for _, found in order]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"text": "Add", "label": None}, "not annotated: no list of spans"),
        ({"text": "Add", "label": None, "answer": "reject"}, ("reject", [])),
        ({"text": "Add", "labels": ["A", "B"]}, "other format: its labels are the text's, and have no offsets"),
        ({**DOCCANO, "answer": "reject"}, OTHER),
        ({**DOCCANO, "answer": "42"}, ("accept", [(4, 8, "D")])),
        ({**DOCCANO, "spans": []}, OTHER),
        ({**DOCCANO, "spans": [{"start": 0, "end": 3, "label": "P"}]}, OTHER),
        ({**DOCCANO, "spans": [{"start": 4, "end": 8, "label": "D"}]}, OTHER),
        ({**PRODIGY, "label": []}, ("accept", [(0, 3, "P")])),
        ({**PRODIGY, "label": "A", "tags": ["x"]}, ("accept", [(0, 3, "P")])),
        ({**PRODIGY, "tokens": ["Add", "5"], "ner_tags": ["B-A", "O"]}, ("accept", [(0, 3, "P")])),
        ({"text": "Add 5", "spans": [], "tokens": ["Add", "5"], "ner_tags": ["B-A", "O"]}, OTHER),
        ({"text": "Add 5", "spans": [], "tokens": ["Add", "5"], "ner_tags": ["O", "O"]}, ("accept", [])),
        ({"text": "x", "spans": "x", "label": [[0, 1, "A"]]}, OTHER),
        ({"text": "x", "spans": "x"}, "malformed: Expected `array | null`, got `str` - at `$.spans`"),
    ],
)
def test_keys_that_contradict_one_another_are_counted(tmp_path, row, expected):
    assert read(tmp_path / "a.jsonl", row) == [expected]


def test_the_keys_of_other_formats_are_looked_for():
    found = set(rows._Row.__struct_fields__) - set(Task.__struct_fields__)
    assert found == {*KEYS, "annotations", *TAGS}
    for key in found:
        assert rows.parse_row(json.dumps({**PRODIGY, key: None}).encode())[0] == parse_task(json.dumps(PRODIGY))[0]


@pytest.mark.parametrize("width", [1, 7, 60, 100])
def test_rows_of_all_formats_are_the_same_wherever_a_file_is_cut(tmp_path, width):
    rng = random.Random(0)
    path = tmp_path / "a.jsonl"
    content = rng.choices([PRODIGY, REJECTED, DOCCANO, TAGGED, SILENT, [], {**DOCCANO, "answer": "reject"}], k=40)
    path.write_bytes("".join(json.dumps(row) + rng.choice(["\n", "\r", "\r\n"]) for row in content).encode())
    size = path.stat().st_size
    parts = [list(read_items(path, start=start, end=start + width)) for start in range(0, size, width)]
    assert [item[1:] for part in parts for item in part] == [item[1:] for item in read_items(path)]


def test_a_row_of_prodigys_is_decoded_once(monkeypatch):
    monkeypatch.setattr(rows, "parse_task", None)
    monkeypatch.setattr(rows, "shape_of", None)
    for row in (PRODIGY, {**PRODIGY, "spans": None}, {"text": "x", "tokens": [{"text": "x"}], "meta": {}}):
        task, _ = rows.parse_row(json.dumps(row).encode())
        assert task.text == row["text"]


def test_bytes_that_are_not_read_are_miscounted(tmp_path, monkeypatch):
    """As if a slice ended too early, or a line were lost."""

    class Losing:
        def __init__(self, file):
            self.file, self.tell = file, file.tell

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.file.close()

        def __iter__(self):
            return (line for number, line in enumerate(self.file) if number != 1)

        def readline(self, *size):
            return self.file.readline(*size)

    monkeypatch.setattr(jsonl, "open_jsonl", lambda path: Losing(path.open("rb")))
    assert read(tmp_path / "a.jsonl", *[SILENT] * 3) == [
        ("accept", []),
        ("accept", []),
        "miscounted: 51 bytes, of which 34 were read",
    ]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ('{"text": "x", "spans": [{"start": 0, "end": 1, "label": "A"}], "spans": []}', "spans"),
        ('{"text": "x", "text": "y", "spans": []}', "text"),
        ('{"text": "x", "answer": "reject", "spans": [], "answer": "accept"}', "answer"),
        ('{"text": "x", "label": [[0, 1, "A"]], "label": []}', "label"),
        ('{"tokens": ["x"], "ner_tags": ["B-A"], "ner_tags": ["O"]}', "ner_tags"),
        ('{"text": "x", "entities": [{"start_offset": 0, "end_offset": 1, "label": "A", "label": "B"}]}', "label"),
    ],
)
def test_a_key_that_is_there_twice_is_a_bad_row(row, key):
    """JSON's decoders take the last, and what the first said would be lost."""
    assert parse_row(row.encode()) == (None, f"malformed: {key!r} is there twice; write it once")


TOKEN = {"text": "Add", "start": 0, "end": 3, "id": 0, "ws": True}


@pytest.mark.parametrize(
    ("tokens", "cut"),
    [
        ([TOKEN, TOKEN], True),
        ([TOKEN | {"text": '}],"spans":'}], False),
        ([TOKEN | {"text": '"}],"'}, TOKEN | {"text": "]"}], False),
        ([TOKEN | {"text": "["}], False),
        ([TOKEN | {"lemmas": [{"a": 1}], "x": 1}], False),
        ([], False),
    ],
)
def test_tokens_are_cut_out_of_a_row_where_they_end_for_certain(tokens, cut):
    row = {"text": "Add", "tokens": tokens, "spans": [{"start": 0, "end": 3, "label": "A"}], "answer": "reject"}
    line = json.dumps(row, separators=(",", ":")).encode()
    short = without_tokens(line)
    assert json.loads(short) == ({key: row[key] for key in row if key != "tokens"} if cut else row)
    task, problem = parse_row(line)
    assert (task.text, task.answer, len(task.spans), problem) == ("Add", "reject", 1, "")

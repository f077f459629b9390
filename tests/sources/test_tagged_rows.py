"""Rows of tokens and tags, as JSONL and as Parquet, with the names that `datasets` keeps for numbers."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from labelwise.errors import InputError
from labelwise.sources import conll
from labelwise.sources.formats import read_items
from tests.conftest import Merging

ROWS = [
    {"id": "0", "tokens": ["EU", "rejects", "German", "call"], "ner_tags": ["B-ORG", "O", "B-MISC", "I-MISC"]},
    {"id": "1", "tokens": ["Peter", "Blackburn"], "ner_tags": ["B-PER", "I-PER"]},
    {"id": "2", "tokens": [], "ner_tags": []},
]
FOUND = [
    ("EU rejects German call", [("EU", "ORG"), ("German call", "MISC")]),
    ("Peter Blackburn", [("Peter Blackburn", "PER")]),
]


def read(path) -> list:
    return [
        (item.task.text, [(item.task.text[s.start : s.end], s.label) for s in item.task.spans])
        if item.task
        else item.problem
        for item in read_items(path)
    ]


def test_jsonl_with_named_tags(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert read(tmp_path / "a.jsonl") == [*FOUND, "no text"]


def test_what_cannot_be_used_is_told(tmp_path):
    rows = [
        ROWS[1],
        {"tokens": ["a"], "ner_tags": []},
        {"tokens": ["a"], "ner_tags": [3]},
        {"tokens": ["a"], "ner_tags": [-1]},
        {"tokens": [1], "ner_tags": ["O"]},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "oops\n[]\n")
    assert read(tmp_path / "a.jsonl") == [
        FOUND[1],
        "malformed: `ner_tags` isn't a list of 1 tags",
        "malformed: the tag 3 has no name; write the tags' names, or Parquet with them",
        "malformed: the tag -1 has no name; write the tags' names, or Parquet with them",
        "no text",
        "bad JSON",
        "malformed: Expected `object`, got `array`",
    ]


def test_numbers_as_strings_and_other_tags_are_no_entities(tmp_path):
    rows = [{"tokens": ["Ann"], "tags": ["NNP"], "ner": ["B-PER"]}, {"tokens": ["Ann"], "ner_tags": ["1"]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read_items(tmp_path / "a.jsonl")
    assert [span.label for span in first.task.spans] == ["PER"]
    assert second.problem == "malformed: the tag '1' has no name; write the tags' names, or Parquet with them"


def write_parquet(path, rows, metadata=None):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows).replace_schema_metadata(metadata or {}), path)
    return path


def features(tags: dict) -> dict:
    """The metadata of a schema, as the `datasets` library writes them."""
    return {"huggingface": json.dumps({"info": {"features": {"ner_tags": tags}}})}


NAMES = ["O", "B-ORG", "I-ORG", "B-MISC", "I-MISC", "B-PER", "I-PER"]
NUMBERED = [{**row, "ner_tags": [NAMES.index(tag) for tag in row["ner_tags"]]} for row in ROWS]
UNNAMED = "malformed: the tag {} has no name; write the tags' names, or Parquet with them"


@pytest.mark.parametrize("tags", [{"feature": {"names": NAMES, "_type": "ClassLabel"}}, {"names": NAMES}])
def test_numbers_of_parquet_have_the_names_of_its_schema(tmp_path, tags):
    """In its older and newer form."""
    rows = [*NUMBERED, {"id": "4", "tokens": ["a"], "ner_tags": [-1]}]
    assert read(write_parquet(tmp_path / "a.parquet", rows, features(tags))) == [*FOUND, "no text", UNNAMED.format(-1)]
    assert read(write_parquet(tmp_path / "b.parquet", ROWS)) == [*FOUND, "no text"]


@pytest.mark.parametrize("names", [{"0": "O"}, "OB", 3, None, [None], [["O"]]])
def test_names_that_are_no_list_of_names_are_told(tmp_path, names):
    rows = [{"tokens": ["a"], "ner_tags": [0]}]
    path = write_parquet(tmp_path / "a.parquet", rows, features({"feature": {"names": names}}))
    assert read(path) == [UNNAMED.format(0)]


def test_parquet_of_something_else_is_named(tmp_path):
    write_parquet(tmp_path / "a.parquet", [{"text": "x"}])
    tokens, tags = pyarrow.array([["Ann"]]), pyarrow.array([["B-PER"]])
    twice = pyarrow.Table.from_arrays([tokens, tags, tags], ["tokens", "ner_tags", "ner_tags"])
    pyarrow.parquet.write_table(twice, tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 something")
    for name, message in (
        ("a.parquet", "its columns are text; it needs one `tokens` and one `ner_tags`"),
        ("b.parquet", "its columns are tokens, ner_tags, ner_tags; it needs one"),
        ("c.parquet", "it can't be read as Parquet"),
    ):
        with pytest.raises(InputError, match=f"{name}: {message}"):
            read(tmp_path / name)


def test_it_is_merged(merging: Merging):
    merging.add("a", ["ORG", "PER", "MISC"], ROWS)
    ledger = merging.run()
    assert (ledger.rows["merged"], ledger.rows["no text"], ledger.spans["entity"]) == (2, 1, 3)


def test_spans_that_a_reader_loses_are_counted(tmp_path, monkeypatch):
    """The row is merged as it was read, and its file has a problem."""
    monkeypatch.setattr(conll, "decode_tags", lambda tags: iter(()))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    problem = "miscounted: 2 tags that begin a span, of which 0 were read"
    for path in (tmp_path / "a.jsonl", write_parquet(tmp_path / "a.parquet", ROWS)):
        first, *_ = read_items(path)
        assert (first.task.text, first.problem) == ("EU rejects German call", problem)


def test_rows_of_parquet_that_a_reader_loses_are_counted(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet", ROWS)
    whole = pyarrow.parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        pyarrow.parquet.ParquetFile,
        "iter_batches",
        lambda *args, **options: (batch[:2] for batch in whole(*args, **options)),
    )
    assert read(path) == [*FOUND, "miscounted: 3 rows, of which 2 were read"]

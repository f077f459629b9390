"""Rows of tokens and tags, as JSONL and as Parquet, with the names that `datasets` keeps for numbers."""

import json

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
        "malformed: `tokens` isn't a list of strings",
        "bad JSON",
        "malformed: a row is an object, not list",
    ]


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
def test_parquet(tmp_path, numbers, wrapped):
    """Numbers have the names that the `datasets` library writes into the schema, in its older and newer form."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = ["O", "B-ORG", "I-ORG", "B-MISC", "I-MISC", "B-PER", "I-PER"]
    rows = [{**row, "ner_tags": [names.index(tag) for tag in row["ner_tags"]]} if numbers else row for row in ROWS]
    rows += [{"id": "4", "tokens": ["a"], "ner_tags": [-1]}] if numbers else []
    tags = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"} if wrapped else {"names": names}
    features = {"id": {"dtype": "string"}, "tokens": {"_type": "Sequence"}, "ner_tags": tags}
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    unnamed = "malformed: the tag -1 has no name; write the tags' names, or Parquet with them"
    assert read(tmp_path / "a.parquet") == [*FOUND, "no text", *([unnamed] if numbers else [])]
    parquet.write_table(table.replace_schema_metadata({}), tmp_path / "b.parquet")
    bare = read(tmp_path / "b.parquet")
    assert bare[:2] == FOUND if not numbers else all("has no name" in problem for problem in bare[:2])


def test_numbers_as_strings_and_other_tags_are_no_entities(tmp_path):
    rows = [{"tokens": ["Ann"], "tags": ["NNP"], "ner": ["B-PER"]}, {"tokens": ["Ann"], "ner_tags": ["1"]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read_items(tmp_path / "a.jsonl")
    assert [span.label for span in first.task.spans] == ["PER"]
    assert second.problem == "malformed: the tag '1' has no name; write the tags' names, or Parquet with them"


def test_parquet_of_something_else_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([{"text": "x"}]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: its columns are text; it needs one `tokens` and one `ner_tags`"):
        read(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 something")
    with pytest.raises(InputError, match=r"b\.parquet: it can't be read as Parquet"):
        read(tmp_path / "b.parquet")


def test_a_column_that_is_there_twice_is_an_error(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    tokens, tags = pyarrow.array([["Ann"]]), pyarrow.array([["B-PER"]])
    names = ["tokens", "ner_tags", "ner_tags"]
    parquet.write_table(pyarrow.Table.from_arrays([tokens, tags, tags], names), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: its columns are tokens, ner_tags, ner_tags; it needs one"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("names", [("ner_tags", "ner"), ("tags", "labels")])
def test_two_lists_of_tags_that_differ_are_a_bad_row(tmp_path, names):
    one, other = names
    rows = [{"tokens": ["Ann"], one: ["O"], other: [tag]} for tag in ("B-PER", "O")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    differing, equal = read_items(tmp_path / "a.jsonl")
    assert differing.problem == f"malformed: its {one} and {other} differ; keep one of them"
    assert (equal.problem, equal.task.spans) == ("", [])


def test_it_is_merged(merging: Merging):
    merging.add("a", ["ORG", "PER", "MISC"], ROWS)
    ledger = merging.run()
    assert (ledger.rows["merged"], ledger.rows["no text"], ledger.spans["entity"]) == (2, 1, 3)


def write_parquet(path, rows, names=None):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    features = {"ner_tags": {"feature": {"names": names}}}
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("names", [{"0": "O"}, "OB", 3, None, [None], [["O"]]])
def test_names_that_are_no_list_of_names_are_told(tmp_path, names):
    path = write_parquet(tmp_path / "a.parquet", [{"tokens": ["a"], "ner_tags": [0]}], names)
    assert read(path) == ["malformed: the tag 0 has no name; write the tags' names, or Parquet with them"]


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
    from pyarrow.parquet import ParquetFile

    whole = ParquetFile.iter_batches
    monkeypatch.setattr(ParquetFile, "iter_batches", lambda *args, **options: (b[:2] for b in whole(*args, **options)))
    assert read(path) == [*FOUND, "miscounted: 3 rows, of which 2 were read"]


def test_a_string_of_parquet_that_is_not_utf_8_costs_its_row_alone(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [ROWS[0], {"tokens": ["a", b"\xff"], "ner_tags": ["O", "O"]}, ROWS[1]])
    assert read(path) == [FOUND[0], "malformed: `tokens` isn't a list of strings", FOUND[1]]

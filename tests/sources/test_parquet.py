"""Rows of tokens and tags in Parquet, with the names that `datasets` keeps for numbers."""

import pyarrow
import pyarrow.parquet
import pytest

from labelwise.errors import InputError
from tests.sources.reading import read, write_parquet

NAMES = ["O", "B-ORG", "I-ORG", "B-MISC", "I-MISC", "B-PER", "I-PER"]
ROWS = [
    {"id": "0", "tokens": ["EU", "rejects", "German", "call"], "ner_tags": ["B-ORG", "O", "B-MISC", "I-MISC"]},
    {"id": "1", "tokens": ["Peter", "Blackburn"], "ner_tags": ["B-PER", "I-PER"]},
    {"id": "2", "tokens": [], "ner_tags": []},
]
FOUND = [
    ("EU rejects German call", [("EU", "ORG"), ("German call", "MISC")]),
    ("Peter Blackburn", [("Peter Blackburn", "PER")]),
    "no text",
]
UNNAMED = "malformed: the tag {} has no name; write the tags' names, or Parquet with them"


@pytest.mark.parametrize("tags", [{"feature": {"names": NAMES, "_type": "ClassLabel"}}, {"names": NAMES}])
def test_numbers_have_the_names_of_the_schema(tmp_path, tags):
    """In its older and newer form; what is no list of names is told."""
    numbered = [{**row, "ner_tags": [NAMES.index(tag) for tag in row["ner_tags"]]} for row in ROWS]
    rows = [*numbered, {"id": "4", "tokens": ["a"], "ner_tags": [-1]}]
    assert read(write_parquet(tmp_path / "a.parquet", rows, tags)) == [*FOUND, UNNAMED.format(-1)]
    assert read(write_parquet(tmp_path / "b.parquet", ROWS)) == FOUND
    for names in ({"0": "O"}, "OB", None, [None]):
        path = write_parquet(tmp_path / "c.parquet", numbered[1:2], {"feature": {"names": names}})
        assert read(path) == [UNNAMED.format(5)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["x"]}, "its columns are text; it needs one `tokens` and one `ner_tags`"),
        ({"tokens": [["Ann"]], "ner_tags": [["O"]], "ner_tags ": [["O"]]}, "its columns are .*; it needs one"),
        (None, "it can't be read as Parquet"),
    ],
)
def test_parquet_of_something_else_is_named(tmp_path, columns, message):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 something")
    if columns:  # of two columns, one name
        table = pyarrow.Table.from_arrays(
            [pyarrow.array(one) for one in columns.values()], [name.strip() for name in columns]
        )
        pyarrow.parquet.write_table(table, path)
    with pytest.raises(InputError, match=rf"a\.parquet: {message}"):
        read(path)

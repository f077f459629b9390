"""Raw texts: each line once, named after its file and line, or after its document."""

import pytest

from labelwise.errors import InputError
from labelwise.sources.raw_texts import read_raw_texts


def test_what_cannot_be_used_is_named_and_costs_itself(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("one")
    (tmp_path / "c.jsonl").write_text('{"text": "two", "meta": {"doc": "d"}}\n{oops\n\n{"text": "three"}\n')
    assert [(raw.name, raw.text, raw.problem) for raw in read_raw_texts([tmp_path])] == [
        ("a.txt", None, "not UTF-8"),
        ("b.txt", "one", ""),
        ("d", "two", ""),
        ("c.jsonl:2", None, "bad JSON"),
        ("c.jsonl:4", "three", ""),
    ]
    with pytest.raises(InputError, match="there is no such file or folder"):
        list(read_raw_texts([tmp_path / "none"]))

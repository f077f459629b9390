"""Raw texts: each line once, named after its file and line, or after its document."""

import gzip
import json

import pytest

from labelwise.errors import InputError
from labelwise.sources.raw_texts import read_raw_texts


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_each_line_is_a_text_whatever_its_line_end(tmp_path, suffix):
    lines = [b" " if n % 31 == 5 else json.dumps({"text": f"Text {n}"}).encode() for n in range(300)]
    content = b"".join(line + (b"\n", b"\n", b"\r\n", b"\r")[n % 4] for n, line in enumerate(lines))
    file = tmp_path / f"raw{suffix}"
    file.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert [(raw.name, raw.text) for raw in read_raw_texts([file])] == [
        (f"{file.name}:{n}", json.loads(line)["text"]) for n, line in enumerate(lines, 1) if line.strip()
    ]


def test_what_cannot_be_used_is_named_and_costs_itself(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("one")
    (tmp_path / "c.jsonl").write_text('{"text": "two", "meta": {"doc": "d"}}\n{oops\n')
    assert [(raw.name, raw.text, raw.problem) for raw in read_raw_texts([tmp_path])] == [
        ("a.txt", None, "not UTF-8"),
        ("b.txt", "one", ""),
        ("d", "two", ""),
        ("c.jsonl:2", None, "bad JSON"),
    ]
    with pytest.raises(InputError, match="there is no such file or folder"):
        list(read_raw_texts([tmp_path / "none"]))

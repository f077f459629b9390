"""Pieces of raw texts: together they have each line once, whatever file they are of, and in whatever order."""

import gzip
import json
import random
from pathlib import Path

import pytest
from backports import zstd

from labelwise.errors import InputError
from labelwise.sources.raw_texts import find_pieces, read_piece

LINES = [
    b" " if number % 31 == 5 else json.dumps({"text": f"Text {number}" + " and on" * (number % 40)}).encode()
    for number in range(3000)
]
# Some lines end as on a Mac, some as on Windows: all count.
CONTENT = b"".join(line + (b"\n", b"\n", b"\r\n", b"\r")[number % 4] for number, line in enumerate(LINES))


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_pieces_have_each_line_once_in_whatever_order(tmp_path, suffix):
    file = tmp_path / f"raw{suffix}"
    file.write_bytes({".gz": gzip.compress, ".zst": zstd.compress}.get(file.suffix, bytes)(CONTENT))
    pieces = list(find_pieces([file], 100))
    assert 25 <= len(pieces) <= 31 if suffix == ".jsonl" else len(pieces) == 1
    shuffled = random.Random(0).sample(pieces, len(pieces))
    found = {piece: [(raw.name, raw.text) for raw in read_piece(piece)] for piece in shuffled}
    assert [one for piece in pieces for one in found[piece]] == [
        (f"{file.name}:{number}", json.loads(line)["text"]) for number, line in enumerate(LINES, 1) if line.strip()
    ]


def test_a_file_that_changed_is_named(tmp_path):
    file = Path(tmp_path / "raw.jsonl")
    file.write_bytes(CONTENT)
    (piece, *_) = find_pieces([file], 100)
    file.write_bytes(CONTENT + b'{"text": "more"}\n')
    with pytest.raises(InputError, match=r"raw\.jsonl: the file changed while it was read"):
        list(read_piece(piece))

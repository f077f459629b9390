"""Read a file that is one JSON array, an element at a time: only one of them, and a chunk of the file, are held."""

import re
from collections.abc import Iterator
from pathlib import Path

from labelwise.base.errors import InputError
from labelwise.sources.files import open_file
from labelwise.sources.jsonl import BOM

CHUNK = 2**20
# A string, or a quote that begins one whose end isn't read yet, or what begins, separates and ends elements.
PIECE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)


def read_elements(path: Path) -> Iterator[bytes]:
    """Yield the elements of an array as they are written; what is wrong inside one is found when it is decoded.

    RAISES (InputError): the file isn't one array.
    """
    with open_file(path) as file:
        content, more = b"", file.read(CHUNK).removeprefix(BOM).lstrip()
        if more[:1] != b"[":
            raise _not_an_array(path, "it doesn't begin with [")
        more = more[1:]
        while more:
            content += more
            start = depth = 0
            for piece in PIECE.finditer(content):
                sign = piece[0]
                depth += (sign in (b"[", b"{")) - (sign in (b"]", b"}"))
                if sign == b'"':
                    break
                if depth < 0 or (depth == 0 and sign == b","):
                    element = content[start : piece.start()].strip()
                    if element or sign == b",":
                        yield element
                    start = piece.end()
                if depth < 0:
                    if (content[start:] + file.read(CHUNK)).strip():
                        raise _not_an_array(path, "there is more behind its end")
                    return
            content = content[start:]
            more = file.read(max(CHUNK, len(content)))
    raise _not_an_array(path, "its end is missing")


def _not_an_array(path: Path, why: str) -> InputError:
    return InputError(f"{path}: it isn't one JSON array ({why}); export it from Label Studio again")

"""Read the elements of a JSON array one after another, from a file of any size."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelwise.common.errors import InputError

CHUNK = 2**20  # characters that are read at a time, at first
SPACES = " \t\r\n"
_decoder = json.JSONDecoder()


def read_array(path: Path) -> Iterator[Any]:
    """Yield the elements of a file that is one array, or the one value that it is instead.

    RAISES (InputError): it isn't JSON, or ends before the array does.
    """
    text, place, size = "", 0, CHUNK
    with path.open(encoding="utf-8-sig", errors="strict", newline="") as file:

        def more() -> bool:
            """Read on, more each time, so that an element of any size takes few attempts."""
            nonlocal text, place, size
            read = file.read(size)
            text, place, size = text[place:] + read, 0, size * 2
            return bool(read)

        def skip() -> str:
            """Go to the next character that isn't white space; empty at the end."""
            nonlocal place
            while True:
                while place < len(text) and text[place] in SPACES:
                    place += 1
                if place < len(text) or not more():
                    return text[place : place + 1]

        try:
            is_array = skip() == "["
            place += is_array
            while (found := skip()) and found != "]":
                while True:
                    try:
                        element, end = _decoder.raw_decode(text, place)
                        break
                    except json.JSONDecodeError:
                        if not more():
                            raise
                # A number at the end of what was read may go on.
                if end == len(text) and more():
                    continue
                place, size = end, CHUNK
                yield element
                if is_array and skip() == ",":
                    place += 1
                elif is_array and skip() != "]" and skip():
                    raise InputError(f"{path}: it isn't JSON (no comma after {str(element)[:40]!r}); export it again")
            if is_array and found != "]":
                raise InputError(f"{path}: the JSON array has no end; export it again")
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: it isn't JSON ({error}); export it again") from error

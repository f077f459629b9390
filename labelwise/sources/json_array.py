"""Read the elements of a JSON array one after another, from a file of any size."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelwise.sources.items import MISCOUNTED

CHUNK = 2**20  # characters that are read at a time, at first
SPACES = " \t\r\n"


class _Decoder(json.JSONDecoder):
    """A decoder that notes a key that is there twice in an object, of which Python takes the last."""

    def __init__(self) -> None:
        """Decode objects by `_make`."""
        super().__init__(object_pairs_hook=self._make)
        self.twice = ""

    def _make(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            self.twice = next(key for key in keys if keys.count(key) > 1)
        return made


def read_array(path: Path) -> Iterator[tuple[Any, str]]:
    """Yield the elements of a file that has an array, or several, or values one after another, each with no problem.

    An object with a key twice is a problem, as it can't be known which value is meant.

    Where it isn't JSON, it can't be read on: that is the last element, with the problem. Bytes that aren't UTF-8 are
    half a character each (see PEP 383), and so is an escape that stands for that.
    """
    text, place, size, line = "", 0, CHUNK, 1
    decoder = _Decoder()
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:

        def more() -> bool:
            """Read on, more each time, so that an element of any size takes few attempts."""
            nonlocal text, place, size, line
            read = file.read(size)
            line += text.count("\n", 0, place)
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

        inside = False
        while found := skip():
            if found == "," or (found == "]" if inside else found == "["):
                inside = inside if found == "," else not inside
                place += 1
                continue
            while True:
                decoder.twice = ""
                try:
                    element, end = decoder.raw_decode(text, place)
                except (ValueError, RecursionError) as error:  # too many digits, or too deep
                    if not isinstance(error, json.JSONDecodeError) or not more():
                        line += text.count("\n", 0, place)
                        why = getattr(error, "msg", error)  # without its place, which is one in `text`
                        yield None, f"malformed: from line {line} on, it isn't JSON ({why}); export it again"
                        return
                    continue
                # A number at the end of what was read may go on.
                if end < len(text) or not more():
                    break
            place, size = end, CHUNK
            twice = decoder.twice.encode("utf8", "backslashreplace").decode()
            yield (None, f"malformed: the key {twice!r} is there twice; keep one") if twice else (element, "")
        if inside:
            yield None, "malformed: the array has no end; export it again"
        if rest := text[place:] + file.read(CHUNK):
            yield None, f"{MISCOUNTED}: a file with {len(rest)} characters or more behind those that were read"

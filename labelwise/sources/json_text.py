"""JSON files: byte order mark, repeated keys, and elements of an array one by one."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.sources.files import open_file
from labelwise.sources.foreign import HEAD, name_file

BOM = b"\xef\xbb\xbf"  # written by some editors
CHUNK = 2**20
BYTE = re.compile(r"\(byte (\d+)\)$")  # where msgspec stops reading
MAX_SHOWN_BYTES = 12  # bytes of it
# NaN or Infinity, or a string, which may have such words.
NOT_FINITE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b', re.DOTALL)
# A string, the quote of an unfinished one, or a sign that begins, separates or ends elements.
PIECE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)


def open_json(path: Path) -> IO[bytes]:
    """Open a file, decompressed on the fly; refuse a database, or compression that its name hides."""
    if path.suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    file = open_file(path, CHUNK)
    if why := name_file(file.read(HEAD)):
        file.close()
        raise InputError(f"{path}: {why}")
    file.seek(0)
    return file


def without_nan(content: bytes) -> bytes:
    """Replace NaN and Infinity, which Python and pandas write, by null."""
    return NOT_FINITE.sub(lambda match: match[0] if match[0].startswith(b'"') else b"null", content)


def why_not_json(content: bytes | str) -> str:
    """Explain why something isn't JSON, quoting the place."""
    try:
        msgspec.json.decode(content)
    except UnicodeDecodeError as error:
        return f"byte {error.object[error.start]:#x} isn't UTF-8; save the file as UTF-8"
    except (msgspec.DecodeError, RecursionError) as error:
        why = str(error).removeprefix("JSON is malformed: ")
        if "surrogate" in why:
            return "a lone surrogate, such as \\ud83d: half of a character that was cut; delete it"
        if why.startswith("trailing characters"):
            return "more follows its end; write each row on a line of its own, without a comma behind it: jq -c ."
        if place := BYTE.search(why):
            raw = content.encode("utf8", "backslashreplace") if isinstance(content, str) else content
            why += f": {raw[int(place[1]) :][:MAX_SHOWN_BYTES].decode('utf8', 'backslashreplace').strip()!r}"
        return why
    return "a part of it isn't JSON"


def find_repeated(content: bytes) -> str:
    """Find a repeated key of a JSON object, or ""; decoders take the last."""

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content_of = dict(pairs)
        if len(content_of) < len(pairs):
            raise KeyError(next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1))
        return content_of

    try:
        json.loads(content, object_pairs_hook=check)
    except KeyError as error:
        return str(error.args[0])
    except (ValueError, RecursionError):
        return ""
    return ""


def read_elements(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the elements of one array, undecoded, in bounded memory."""
    content, chunk = b"", file.read(CHUNK).removeprefix(BOM).lstrip()
    if chunk[:1] != b"[":
        raise _not_an_array(path, "it doesn't begin with [")
    chunk = chunk[1:]
    while chunk:
        content += chunk
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
                    raise _not_an_array(path, "there is more after its end")
                return
        content = content[start:]
        chunk = file.read(max(CHUNK, len(content)))
    raise _not_an_array(path, "its end is missing")


def _not_an_array(path: Path, why: str) -> InputError:
    remedy = "make it again, or write JSONL, a row per line: jq -c '.[]'"
    return InputError(f"{path}: it isn't one JSON array ({why}); {remedy}")

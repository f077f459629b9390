"""Read unannotated texts: `.txt` files and JSONL, plain or compressed, single or in folders."""

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.annotations import DOCUMENT, Task, UnreadRow
from labelwise.base.errors import InputError
from labelwise.sources.files import SourceFile, find_files, printable, read_file
from labelwise.sources.formats import read_items

TEXTS = (".txt", ".TXT")
SUFFIXES = (*TEXTS, ".jsonl", ".jsonl.gz")


class RawText(NamedTuple):
    """A text, or why it is unusable; named after its file, its document, or file and line.

    meta (Mapping[str, str]): values of its row's `meta`, with the document.
    """

    text: str | None
    name: str
    problem: str = ""
    meta: Mapping[str, str] = {}


def read_raw_texts(inputs: Sequence[Path]) -> Iterator[RawText]:
    """Yield the texts of files and folders, sorted by name; see `find_raw_files`."""
    for file in find_raw_files(inputs):
        yield from read_raw_file(file)


def count_raw_texts(inputs: Sequence[Path]) -> int:
    """Count the texts, or lines of JSONL that may have one; see `find_raw_files`."""
    return sum(1 if file.name.endswith(TEXTS) else _count_lines(file.path) for file in find_raw_files(inputs))


def _count_lines(path: Path) -> int:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            return sum(1 for _ in lines)
    except (OSError, EOFError, zlib.error):  # its reader reports it
        return 0


def find_raw_files(inputs: Sequence[Path]) -> Iterator[SourceFile]:
    """Yield the inputs and the files in folders, sorted by name; refuse unreadable inputs."""
    for path in inputs:
        if not path.exists():
            raise InputError(f"{printable(path)}: there is no such file or folder")
        for file in find_files(path, SUFFIXES) if path.is_dir() else [path]:
            yield SourceFile(file, printable(file.relative_to(path) if path.is_dir() else Path(path.name)))


def read_raw_file(file: SourceFile) -> Iterator[RawText]:
    """Yield the texts of a file."""
    if file.name.endswith(TEXTS):
        yield _read_text(*file)
        return
    for item in read_items(file.path):
        place = f"{file.name}:{item.line}"
        if isinstance(item, Task):
            meta = item.meta | ({DOCUMENT: item.doc} if item.doc else {})
            yield RawText(item.text, item.doc or place, meta=meta)
        elif isinstance(item, UnreadRow):
            yield RawText(item.text, place, meta=item.meta)
        else:
            yield RawText(None, place, str(item))


def _read_text(file: Path, name: str) -> RawText:
    try:
        text = read_file(file).decode("utf8")
    except UnicodeDecodeError:
        return RawText(None, name, "not UTF-8")
    except InputError as error:
        return RawText(None, name, str(error))
    return RawText(text, name) if text.strip() else RawText(None, name, "no text")

"""Read texts that nobody has annotated: `.txt` files and JSONL, plain or compressed, by themselves or in folders."""

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backports import zstd

from labelwise.common.errors import InputError
from labelwise.sources.files import (
    LINK_OUTSIDE,
    find_files,
    folders_outside,
    is_folder,
    is_link_outside,
    printable,
    read_file,
)
from labelwise.sources.formats import read_items
from labelwise.sources.jsonl import UNREADABLE
from labelwise.sources.prodigy import DOCUMENT

TEXTS = (".txt", ".txt.gz", ".txt.zst")
SUFFIXES = (*TEXTS, ".jsonl", ".jsonl.gz", ".jsonl.zst")
DECOMPRESS = {".gz": gzip.decompress, ".zst": zstd.decompress}


class RawText(NamedTuple):
    """A text, and where it is from: a file's path in its folder, the name that a task gives, or a file and a line.

    text (str | None): None if it can't be used, for the reason that `problem` says.
    """

    text: str | None
    name: str
    problem: str = ""


def usable_texts(inputs: Sequence[Path], problems: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of files and folders that can be used, each with its name.

    problems (Counter[str]): the others are counted there, by reason.
    RAISES (InputError): an input isn't there, or can't be read; or no text can be used.
    """
    text = None
    for raw in read_texts(inputs):
        if raw.text is None:
            problems[raw.problem.partition(":")[0]] += 1
        else:
            text = raw.text
            yield text, raw.name
    if text is None:
        raise InputError(f"{', '.join(map(printable, inputs))}: no .txt or .jsonl file with a text that can be used")


def read_texts(inputs: Sequence[Path]) -> Iterator[RawText]:
    """Yield the texts of files and folders, one by one.

    RAISES (InputError): an input isn't there, or can't be read.
    """
    for path in inputs:
        if is_folder(path):
            for link in folders_outside(path):
                yield RawText(None, printable(link.relative_to(path)), LINK_OUTSIDE)
            for file in find_files(path, SUFFIXES):
                name = printable(file.relative_to(path))
                yield from [RawText(None, name, LINK_OUTSIDE)] if is_link_outside(file, path) else _read(file, name)
        elif not path.is_file():
            raise InputError(f"{printable(path)}: there is no such file or folder")
        else:
            yield from _read(path, printable(Path(path.name)))


def _read(file: Path, name: str) -> Iterator[RawText]:
    if file.name.endswith(TEXTS):
        yield _read_text(file, name.removesuffix(".gz").removesuffix(".zst"))
        return
    for item in read_items(file):
        if item.task is not None:
            meta = item.task.meta if isinstance(item.task.meta, dict) else {}
            yield RawText(item.task.text, str(meta.get(DOCUMENT) or f"{name}:{item.line}"))
        elif item.problem:
            yield RawText(None, f"{name}:{item.line}", item.problem)


def _read_text(file: Path, name: str) -> RawText:
    try:
        text = DECOMPRESS.get(file.suffix, bytes)(read_file(file)).decode("utf8")
    except UnicodeDecodeError:
        return RawText(None, name, "not UTF-8")
    except InputError as error:
        return RawText(None, name, str(error))
    except UNREADABLE as error:
        return RawText(None, name, f"damaged: {error}")
    return RawText(text, name) if text.strip() else RawText(None, name, "no text")

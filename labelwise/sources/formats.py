"""Read the tasks of a data set in any of the formats of the table FORMATS.

They are read one by one; `.spacy` files and JSON arrays are in memory as a whole.
"""

import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from labelwise.errors import InputError
from labelwise.sources.conll import read_conll
from labelwise.sources.items import Item
from labelwise.sources.jsonl import BOM, read_jsonl_file
from labelwise.sources.label_studio import read_label_studio
from labelwise.sources.prodigy_tables import read_database
from labelwise.sources.tagged_rows import read_parquet
from labelwise.sources.webanno import read_webanno

# Raised where a file is damaged. By sqlite3 also a UnicodeDecodeError, of a message that quotes unreadable bytes, and a
# MemoryError, where a length is larger than memory.
DAMAGES = (*(EOFError, zlib.error, gzip.BadGzipFile, sqlite3.DatabaseError, UnicodeDecodeError, MemoryError),)


class Slice(NamedTuple):
    """A source, or a slice of one, to be read.

    dataset (str): the data set's name in a Prodigy database; otherwise empty.
    key (str): the declared one of a `.spacy` file's spans, or of a Label Studio task's text; see `spacy_docs`,
        `label_studio`.
    start, end (int): of a file that can be cut: the lines that begin between them, counted from `start`.
    """

    path: Path
    dataset: str = ""
    start: int = 0
    end: int | None = None
    key: str = ""


class Format(NamedTuple):
    """A form in which annotations are kept.

    suffixes (tuple[str, ...]): those of its files.
    read (Callable): yields its Items.
    begins (bytes): what its files begin with, if others have its suffixes, too.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Slice], Iterator[Item]]
    begins: bytes = b""


def _read_spacy(piece: Slice) -> Iterator[Item]:
    from labelwise.sources.spacy_docs import read_spacy  # it imports spaCy, which takes seconds

    return read_spacy(piece.path, piece.key)


TABLES = (".tsv", ".conll", ".bio", ".iob", ".iob2", ".bioes", ".iobes", ".bilou")
DATABASE = Format(
    "Prodigy database (`db:`)", (".db", ".sqlite", ".sqlite3"), lambda piece: read_database(piece.path, piece.dataset)
)
JSONL = Format(
    "JSONL",
    (".jsonl", ".jsonl.gz"),
    lambda piece: read_jsonl_file(piece.path, piece.start, piece.end),
)
# Of several that have a file's suffix, the first counts that it begins like.
FORMATS = (
    DATABASE,
    JSONL,
    Format("`.spacy`", (".spacy",), _read_spacy),
    Format("WebAnno TSV 3", TABLES, lambda piece: read_webanno(piece.path), b"#FORMAT=WebAnno TSV"),
    Format("CoNLL", TABLES, lambda piece: read_conll(piece.path)),
    Format("Label Studio", (".json",), lambda piece: read_label_studio(piece.path, piece.key)),
    Format("Parquet", (".parquet",), lambda piece: read_parquet(piece.path)),
)
SUFFIXES = tuple(dict.fromkeys(suffix for format in FORMATS for suffix in format.suffixes))


def format_of(piece: Slice) -> Format:
    """Find the format of a source; a file with another suffix is JSONL."""
    if piece.dataset:
        return DATABASE
    named = [one for one in FORMATS[1:] if piece.path.name.endswith(one.suffixes)]
    begin = _begin(piece.path) if len(named) > 1 else b""
    return next((one for one in named if begin.startswith(one.begins)), JSONL)


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100).removeprefix(BOM)


def can_be_cut(path: Path) -> bool:
    """Tell whether slices of a file can be read on their own: those of plain JSONL can."""
    return path.is_file() and path.suffix != ".gz" and format_of(Slice(path)) is JSONL


def read_items(path: Path, dataset: str = "", start: int = 0, end: int | None = None, key: str = "") -> Iterator[Item]:
    """Yield the tasks and problems of a file; the arguments are a Slice's.

    RAISES (InputError): it can't be read: not a database, a schema that isn't Prodigy's, a damaged file.
    """
    piece = Slice(path, dataset, start, end, key)
    try:
        yield from format_of(piece).read(piece)
    except sqlite3.OperationalError as error:
        raise InputError(
            f"{path}: the database can't be read now: {error}; stop what is writing to it, or try again"
        ) from error
    except DAMAGES as error:
        why = str(error) or "it needs more memory than there is"
        raise InputError(f"{path}: it can't be read to the end: {why}; make it again") from error

"""Read the tasks of a dataset in any format of the table FORMATS."""

import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from labelwise.annotations import Item
from labelwise.base.errors import InputError
from labelwise.sources.conll import read_conll
from labelwise.sources.foreign import HEAD, name_file
from labelwise.sources.json_rows import read_rows
from labelwise.sources.json_text import BOM
from labelwise.sources.prodigy import read_database
from labelwise.sources.tagged_rows import read_parquet
from labelwise.sources.webanno import read_webanno

# The errors of damaged files. sqlite3 also raises UnicodeDecodeError, as its messages quote unreadable bytes, and
# MemoryError, if a damaged length exceeds memory.
DAMAGES = (EOFError, zlib.error, gzip.BadGzipFile, sqlite3.DatabaseError, UnicodeDecodeError, MemoryError)


class Format(NamedTuple):
    """A file format of annotations.

    read (Callable): yields a file's tasks and problems, by a key and a reading of offsets (see `clean`). The key names
        a dataset in a Prodigy database, the spans of a `.spacy` file, or the text of a Label Studio task.
    begins (bytes): first bytes of its files, if other formats share its suffixes.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, str, str], Iterator[Item]]
    begins: bytes = b""


def _read_spacy(path: Path, key: str, _: str) -> Iterator[Item]:
    from labelwise.sources.spacy_docs import read_spacy  # it imports spaCy, which takes seconds

    return read_spacy(path, key)


TABLES = (
    *(".tsv", ".conll", ".conllu", ".conllup", ".bio", ".iob", ".iob2", ".bioes", ".iobes", ".bilou", ".bmes"),
    *(".train", ".testa", ".testb"),  # of CoNLL-2003
)
DATABASE = Format("Prodigy database (`db:`)", (".db", ".sqlite", ".sqlite3"), read_database)
JSON = Format("JSON", (".jsonl", ".jsonl.gz", ".json", ".ndjson"), read_rows)
# If several have a file's suffix, the first whose `begins` fits counts.
FORMATS = (
    DATABASE,
    JSON,
    Format("`.spacy`", (".spacy",), _read_spacy),
    Format("WebAnno TSV 3", TABLES, lambda path, *_: read_webanno(path), b"#FORMAT=WebAnno TSV"),
    Format("CoNLL", TABLES, lambda path, *_: read_conll(path)),
    Format("Parquet", (".parquet",), lambda path, *_: read_parquet(path)),
)
SUFFIXES = tuple(dict.fromkeys(suffix for format in FORMATS for suffix in format.suffixes))


def format_of(path: Path) -> Format:
    """Find a file's format, by default JSON; refuse a table that begins like an unsupported format."""
    candidates = [candidate for candidate in FORMATS[1:] if path.name.endswith(candidate.suffixes)]
    if len(candidates) < 2:
        return candidates[0] if candidates else JSON
    with path.open("rb") as file:
        begin = file.read(HEAD)
    if why := name_file(begin):
        raise InputError(f"{path}: {why}")
    return next(candidate for candidate in candidates if begin.removeprefix(BOM).startswith(candidate.begins))


def read_items(path: Path, dataset: str = "", key: str = "", offsets: str = "") -> Iterator[Item]:
    """Yield the tasks and problems of a file; refuse a damaged file, or a database that isn't Prodigy's."""
    try:
        format = DATABASE if dataset else format_of(path)
        yield from format.read(path, dataset or key, offsets)
    except sqlite3.OperationalError as error:
        raise InputError(
            f"{path}: the database can't be read now: {error}; stop the program that writes to it, or try again"
        ) from error
    except DAMAGES as error:
        why = str(error) or "it needs more memory than there is"
        raise InputError(f"{path}: it can't be read to the end: {why}; make it again") from error

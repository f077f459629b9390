"""Read the tasks of a data set from whatever holds them, one by one: the table FORMATS says what that may be.

They are read one by one, except for a `.spacy` file, whose format needs it in memory as a whole.
"""

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from backports import zstd

from labelwise.common.errors import InputError
from labelwise.sources.brat_folder import read_brat
from labelwise.sources.items import Item
from labelwise.sources.jsonl import read_jsonl_file
from labelwise.sources.prodigy_db import read_database
from labelwise.sources.spacy_docs import read_spacy


class Place(NamedTuple):
    """Where tasks are.

    dataset (str): the data set's name in a Prodigy database; empty for all else.
    start, end (int): of a file that can be cut: the lines that begin there, counted from there.
    """

    path: Path
    dataset: str = ""
    start: int = 0
    end: int | None = None


class Format(NamedTuple):
    """A form in which annotations are kept.

    is_it (Callable): tells whether a place is of this format; of several, the first in FORMATS counts.
    read (Callable): yields its Items.
    can_be_cut (Callable): tells whether slices of a file can be read by themselves.
    """

    name: str
    is_it: Callable[[Place], bool]
    read: Callable[[Place], Iterator[Item]]
    can_be_cut: Callable[[Path], bool] = lambda path: False


FORMATS = (
    # The tasks of the data set of that name, in the order of their ids, which count as lines.
    Format(
        "Prodigy database (`db:`)",
        lambda place: bool(place.dataset),
        lambda place: read_database(place.path, place.dataset),
    ),
    # Each document is an accepted task.
    Format("folder of brat documents", lambda place: place.path.is_dir(), lambda place: read_brat(place.path)),
    # Each Doc is an accepted task: `doc.spans["gold"]` if there, else `doc.ents`.
    Format("`.spacy`", lambda place: place.path.suffix == ".spacy", lambda place: read_spacy(place.path)),
    # Any other file.
    Format(
        "`.jsonl`, `.jsonl.gz`, `.jsonl.zst`",
        lambda place: True,
        lambda place: read_jsonl_file(place.path, place.start, place.end),
        lambda path: path.is_file() and path.suffix not in (".gz", ".zst"),
    ),
)


def format_of(place: Place) -> Format:
    """Find the format of a place."""
    return next(format for format in FORMATS if format.is_it(place))


def can_be_cut(path: Path) -> bool:
    """Tell whether slices of a file can be read by themselves: those of plain JSONL can."""
    return format_of(Place(path)).can_be_cut(path)


def stat_of(path: Path) -> list[tuple[str, int, int, int]]:
    """Tell by name, inode, size and time of change whether what a path names was changed, as DVC does."""
    if path.is_dir():
        found = sorted(Path(folder, name) for folder, _, names in os.walk(path, followlinks=True) for name in names)
    else:
        wal = path.with_name(path.name + "-wal")  # what SQLite hasn't written to the database yet
        found = [path, wal] if wal.exists() and wal.stat().st_size else [path]
    stats = [(str(file), file.stat()) for file in found]
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def read_items(path: Path, dataset: str = "", start: int = 0, end: int | None = None) -> Iterator[Item]:
    """Yield what a file or folder holds; the arguments are a Place's.

    RAISES (InputError): nothing can be read: no database, a schema that isn't Prodigy's, a damaged file.
    """
    place = Place(path, dataset, start, end)
    try:
        yield from format_of(place).read(place)
    except sqlite3.OperationalError as error:
        raise InputError(
            f"{path}: the database can't be read now: {error}; end what writes to it, or try again"
        ) from error
    except (EOFError, zlib.error, zstd.ZstdError, gzip.BadGzipFile, sqlite3.DatabaseError) as error:
        raise InputError(f"{path}: it can't be read to its end: {error}; make it again") from error

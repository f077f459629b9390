"""Read the datasets of Prodigy's SQLite database, which is opened read-only.

    dataset(id, name, session, ...)    example(id, content, ...)    link(example_id, dataset_id, ...)

`content` is a row as JSON in UTF-8 (see `json_rows`). An answer is linked to its dataset and to that of its session.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from labelwise.annotations import Item, Problem, Reason
from labelwise.base.errors import InputError
from labelwise.sources.json_rows import parse_row
from labelwise.sources.shapes import How

MAX_ID = 2**32 - 1  # ids count as lines, which have 32 bits in a run
TABLES = ("dataset", "example", "link")

# Each row once, however often it is linked.
ROWS = (
    "select example.id, example.content from example where example.id in (select link.example_id from link "
    "join dataset on dataset.id = link.dataset_id where dataset.name = :name) order by example.id"
)
OWN_NAMES = "select name from dataset where coalesce(session, 0) = 0 order by name"  # without sessions


def read_database(path: Path, dataset: str, offsets: str = "") -> Iterator[Item]:
    """Yield a dataset's tasks from an SQLite file in one transaction, sorted by id, which counts as line.

    RAISES (InputError): if the tables aren't Prodigy's, or lack the dataset.
    """
    with closing(_connect(path)) as connection:
        connection.execute("begin")
        tables = _names(connection, "select name from sqlite_master where type = 'table' order by name")
        if not {*TABLES} <= {*tables}:
            raise InputError(
                f"{path}: this isn't Prodigy's schema, which has the tables {', '.join(TABLES)}; the tables found are: "
                f"{', '.join(tables) or 'none'}; export the dataset with `prodigy db-out`, declare the file as `path:`"
            )
        if dataset not in (names := _names(connection, "select name from dataset order by name")):
            listed = ", ".join(map(repr, names)) or "none"
            remedy = "correct its `name`, or delete the entry"
            raise InputError(f"{path}: it has no dataset {dataset!r}, but {listed}; {remedy}")
        for number, content in connection.execute(ROWS, {"name": dataset}):
            if isinstance(number, int) and 0 <= number <= MAX_ID:
                yield from parse_row(number, content if isinstance(content, bytes) else b"", How(offsets))
            else:
                why = f"the id {_text(number)!r} isn't a number from 0 to {MAX_ID}"
                yield Problem(0, Reason.MALFORMED, why)


def find_names(path: Path) -> list[str]:
    """List the datasets of an SQLite file, without sessions; raise sqlite3.DatabaseError for another file."""
    with closing(_connect(path)) as connection:
        return _names(connection, OWN_NAMES)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = bytes  # text that isn't UTF-8 costs only its row
    return connection


def _names(connection: sqlite3.Connection, query: str) -> list[str]:
    return [_text(name) for (name,) in connection.execute(query)]


def _text(value: Any) -> str:
    return value.decode("utf8", "backslashreplace") if isinstance(value, bytes) else str(value)

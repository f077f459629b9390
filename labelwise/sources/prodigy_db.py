"""Read the tasks of a data set from Prodigy's SQLite database, without writing to it."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from labelwise.common.errors import InputError
from labelwise.sources.items import Item
from labelwise.sources.prodigy import parse_task

SCHEMA = {"dataset": {"id", "name"}, "example": {"id", "content"}, "link": {"example_id", "dataset_id"}}
MOST = 2**32 - 1  # ids count as lines, which have 32 bits in a task file

# Each task once, whatever number of links it has: an answer is linked to its data set and to that of its session.
TASKS = (
    "select example.id, example.content from example where example.id in (select link.example_id from link "
    "join dataset on dataset.id = link.dataset_id where dataset.name = :name) order by example.id"
)
DATASET_NAMES = "select name from dataset order by name"


def check_schema(where: object, tables: Mapping[str, set[str]]) -> None:
    """Check that a database is Prodigy's.

    where (object): the database, for the error.
    tables (Mapping[str, set[str]]): all tables; the columns of those in SCHEMA.
    RAISES (InputError): a table or column is missing.
    """
    if not all(columns <= tables.get(name, set()) for name, columns in SCHEMA.items()):
        raise InputError(
            f"{where}: this isn't Prodigy's schema, which has the tables dataset, example and link; the tables found "
            f"are: {', '.join(sorted(tables)) or 'none'}; export the data set with `prodigy db-out` and declare the "
            "file as `path:`"
        )


def no_such_dataset(where: object, name: str, others: Iterable[str]) -> InputError:
    """Make the error for a data set that a database lacks."""
    listed = ", ".join(map(repr, others)) or "none"
    return InputError(f"{where}: it has no data set {name!r}, but {listed}; correct its `name`")


def read_database(path: Path, dataset: str) -> Iterator[Item]:
    """Yield a data set's tasks from Prodigy's SQLite database, in the order of their ids, which count as lines.

    RAISES (InputError): the tables aren't Prodigy's, or have no such data set.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes  # text that isn't UTF-8 costs its row only
        found = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        names = [_text(name) for (name,) in found]
        tables = {
            name: {_text(column[1]) for column in connection.execute(f"pragma table_info('{name}')")}
            for name in SCHEMA.keys() & names
        }
        check_schema(path, {name: tables.get(name, set()) for name in names})
        listed = [_text(name) for (name,) in connection.execute(DATASET_NAMES)]
        if dataset not in listed:
            raise no_such_dataset(path, dataset, listed)
        for number, content in connection.execute(TASKS, {"name": dataset}):
            if isinstance(number, int) and 0 <= number <= MOST:
                yield Item(number, *parse_task(content if isinstance(content, bytes) else b""))
            else:
                yield Item(0, None, f"malformed: the id {_text(number)!r} isn't a number from 0 to {MOST}")


def _text(value: Any) -> str:
    """Make text of a value as it was read."""
    return value.decode("utf8", "backslashreplace") if isinstance(value, bytes) else str(value)

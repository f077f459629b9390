"""Read the tasks of a data set from Prodigy's SQLite database, without writing to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from labelwise.common.errors import InputError
from labelwise.sources.items import Item
from labelwise.sources.prodigy import parse_task

SCHEMA = {"dataset": {"id", "name"}, "example": {"id", "content"}, "link": {"example_id", "dataset_id"}}


def read_database(path: Path, dataset: str) -> Iterator[Item]:
    """Yield a data set's tasks from Prodigy's SQLite database, in the order of their ids, which count as lines.

    RAISES (InputError): the tables aren't Prodigy's, or have no such data set.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        tables = {
            name: {column[1] for column in connection.execute(f"pragma table_info('{name}')")}
            for (name,) in found
            if name in SCHEMA
        }
        if not all(columns <= tables.get(name, set()) for name, columns in SCHEMA.items()):
            names = ", ".join(name for (name,) in found) or "none"
            raise InputError(
                f"{path}: this isn't Prodigy's schema, which has the tables dataset, example and link; the tables "
                f"found are: {names}; export the data set with `prodigy db-out` and declare the file as `path:`"
            )
        named = connection.execute("select id from dataset where name = ?", (dataset,)).fetchone()
        if named is None:
            names = ", ".join(repr(name) for (name,) in connection.execute("select name from dataset order by name"))
            raise InputError(f"{path}: it has no data set {dataset!r}, but {names or 'none'}; correct its `name`")
        query = (
            "select example.id, example.content from link join example on example.id = link.example_id "
            "where link.dataset_id = ? group by example.id order by example.id"
        )
        for number, content in connection.execute(query, named):
            yield Item(number, *parse_task(content if isinstance(content, bytes | str) else b""))

"""Write and read a source in one call."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from labelwise.annotations import Problem
from labelwise.sources.formats import read_items


def write(path: Path, content: str | bytes | list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list) and path.suffix == ".json":
        content = json.dumps(content, ensure_ascii=False)
    elif isinstance(content, list):
        content = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, content: str | bytes | list[Any] | None = None, **how: Any) -> list[Any]:
    if content is not None:
        write(path, content)
    items: list[Any] = []
    for item in read_items(path, **how):
        if isinstance(item, Problem):
            items.append(str(item))
        else:
            spans = [(item.text[span.start : span.end], span.label) for span in item.spans]
            items.append((item.text, spans + [f"invalid: {span.problem}" for span in item.unusable]))
    return items


def make_database(path, tasks: dict[str, list]) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "create table dataset (id integer primary key, name varchar unique, created integer, meta blob, session int);"
        "create table example (id integer primary key, input_hash bigint, task_hash bigint, content blob);"
        "create table link (id integer primary key, example_id integer, dataset_id integer);"
    )
    for number, (name, rows) in enumerate(tasks.items(), 1):
        for set_id, set_name in ((number, name), (number + 100, f"2020-01-0{number}_12-00-00")):
            connection.execute("insert into dataset values (?, ?, 0, x'', ?)", (set_id, set_name, set_id > 100))
        for row in rows:
            content = row if isinstance(row, bytes) else json.dumps(row).encode()
            example = connection.execute("insert into example values (null, 1, 1, ?)", (content,)).lastrowid
            for set_id in (number, number + 100):
                connection.execute("insert into link values (null, ?, ?)", (example, set_id))
    connection.commit()
    connection.close()


def write_parquet(path, rows, tags=None):
    """Write a table with schema metadata, as the `datasets` library does."""
    features = {"huggingface": json.dumps({"info": {"features": {"ner_tags": tags}}})} if tags else {}
    parquet.write_table(pyarrow.Table.from_pylist(rows).replace_schema_metadata(features), path)
    return path

"""Read Prodigy's rows of JSON, and the data sets of its SQLite database, which is opened read-only.

    {"text": "Add 5 mL", "tokens": [...], "spans": [{"start": 4, "end": 8, "label": "Amount"}], "answer": "accept",
     "_view_id": "ner_manual", "_input_hash": 1903341263, "_task_hash": -1016463132, "_timestamp": 1700000000}

The decoder skips `tokens`, the bulk of the bytes, and `token_end`, which is inclusive in some recipes and exclusive in
others: only character offsets count. The interface: https://prodi.gy/docs/api-interfaces

    dataset(id, name, session, ...)    example(id, content, ...)    link(example_id, dataset_id, ...)

`content` is a row as JSON in UTF-8. An answer is linked to its data set and to that of its session.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from labelwise.annotations import Found, Kind, Problem, Reason
from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, State
from labelwise.corpus.tasks import PROBLEM, REVIEW, UNCOVERED
from labelwise.sources.clean import RawSpan, clean
from labelwise.sources.json_text import why_not_json

COMPLETE_VIEWS = ("ner_manual", "spans_manual", "blocks", None)
BINARY_VIEWS = ("ner", "spans")
MOST = 2**32 - 1  # ids count as lines, which have 32 bits in a run
TABLES = ("dataset", "example", "link")

# Each row once, however often it is linked.
ROWS = (
    "select example.id, example.content from example where example.id in (select link.example_id from link "
    "join dataset on dataset.id = link.dataset_id where dataset.name = :name) order by example.id"
)
OWN_NAMES = "select name from dataset where coalesce(session, 0) = 0 order by name"  # but for those of sessions


class ProdigyRow(msgspec.Struct, gc=False):
    """The keys of a row that count.

    spans (list[RawSpan] | None): None, as an empty list, means that nothing was marked.
    no_missing (Any): old versions' switch for "unmarked tokens are outside any entity".
    uncovered (dict | None): the labels that it isn't complete for, a key of our own exports.
    review (Any): whether it decides between several annotators, another key of ours; so does the interface `review`.
    problem (Problem | None): what `convert-brat` couldn't convert, with its own place: the row has no other key.
    """

    text: str | None = None
    spans: list[RawSpan] | None = None
    answer: Any = "accept"
    timestamp: Any = msgspec.field(default=None, name="_timestamp")
    view_id: Any = msgspec.field(default=None, name="_view_id")
    reviewed_view_id: Any = msgspec.field(default=None, name="view_id")
    is_binary: Any = msgspec.field(default=None, name="_is_binary")
    annotator_id: Any = msgspec.field(default=None, name="_annotator_id")
    session_id: Any = msgspec.field(default=None, name="_session_id")
    no_missing: Any = None
    meta: Any = None
    uncovered: dict[str, State] | None = msgspec.field(default=None, name=UNCOVERED)
    review: Any = msgspec.field(default=None, name=REVIEW)
    problem: Problem | None = msgspec.field(default=None, name=PROBLEM)


_decode = msgspec.json.Decoder(ProdigyRow).decode


def parse_prodigy(line: int, content: bytes | str, offsets: str = "") -> Found:
    """Decode a row, or say why it can't be used."""
    try:
        row = _decode(content)
    except msgspec.ValidationError as error:
        return Problem(line, Reason.MALFORMED, str(error))
    except DECODE_ERRORS:
        return Problem(line, Reason.BAD_JSON, why_not_json(content))
    return task_of(line, row, offsets)


def task_of(line: int, row: ProdigyRow, offsets: str = "") -> Found:
    """Convert a decoded row to a task, or to the problem that it has no text."""
    text = row.text
    if not text or text.isspace():
        return Problem(line, Reason.NO_TEXT)
    return clean(
        line,
        text,
        row.spans,
        answer=row.answer,
        kind=kind_of(row),
        who=(row.annotator_id, row.session_id),
        when=row.timestamp,
        review=row.view_id == "review" or row.review is True,
        meta=row.meta,
        uncovered=row.uncovered,
        offsets=offsets,
    )


def kind_of(row: ProdigyRow) -> Kind:
    """Return whether a row asked for everything at once ("complete") or for yes or no on its spans ("binary").

    A review has the kind of the reviewed tasks. A row that names no interface is binary if its spans have answers. Rows
    of other interfaces, such as `classification`, say nothing about spans ("other").
    """
    view = row.reviewed_view_id if row.view_id == "review" else row.view_id
    if view not in BINARY_VIEWS and view not in COMPLETE_VIEWS:
        return "other"
    if row.is_binary is not None:
        return "binary" if row.is_binary else "complete"
    if row.no_missing:
        return "complete"
    if view in BINARY_VIEWS or (view is None and any(span.answer is not None for span in row.spans or ())):
        return "binary"
    return "complete"


def read_database(path: Path, dataset: str, offsets: str = "") -> Iterator[Found]:
    """Yield a data set's tasks from an SQLite file, in the order of their ids, which count as lines.

    They are read in one transaction, as of one moment.

    RAISES (InputError): the tables aren't Prodigy's, or have no such data set.
    """
    with closing(_connect(path)) as connection:
        connection.execute("begin")
        found = _names(connection, "select name from sqlite_master where type = 'table' order by name")
        if not {*TABLES} <= {*found}:
            raise InputError(
                f"{path}: this isn't Prodigy's schema, which has the tables {', '.join(TABLES)}; the tables found are: "
                f"{', '.join(found) or 'none'}; export the data set with `prodigy db-out`, declare the file as `path:`"
            )
        if dataset not in (names := _names(connection, "select name from dataset order by name")):
            listed = ", ".join(map(repr, names)) or "none"
            remedy = "correct its `name`, or delete the entry"
            raise InputError(f"{path}: it has no data set {dataset!r}, but {listed}; {remedy}")
        for number, content in connection.execute(ROWS, {"name": dataset}):
            if isinstance(number, int) and 0 <= number <= MOST:
                yield parse_prodigy(number, content if isinstance(content, bytes) else b"", offsets)
            else:
                why = f"the id {_text(number)!r} isn't a number from 0 to {MOST}"
                yield Problem(0, Reason.MALFORMED, why)


def find_names(path: Path) -> list[str]:
    """List the data sets of an SQLite file, without those of sessions.

    RAISES (sqlite3.DatabaseError): it isn't Prodigy's, or can't be read.
    """
    with closing(_connect(path)) as connection:
        return _names(connection, OWN_NAMES)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = bytes  # text that isn't UTF-8 costs only its row
    return connection


def _names(connection: sqlite3.Connection, query: str) -> list[str]:
    return [_text(name) for (name,) in connection.execute(query)]


def _text(value: Any) -> str:
    """Convert a value, as it was read, to text."""
    return value.decode("utf8", "backslashreplace") if isinstance(value, bytes) else str(value)

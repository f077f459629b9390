"""Take snapshots of data sets in a Prodigy database on a PostgreSQL, MySQL or MariaDB server.

A server can't be seen by weasel or DVC, and changes while a team annotates. The merge therefore reads a snapshot: a
JSONL file for each data set, as `prodigy db-out` writes them, and `digests.json`, which says where each came from:

    {"person": {"db": "postgresql://box/prodigy", "snapshot": "May", "file": "person.jsonl", "tasks": 412, ...}}

A snapshot has a name. As long as that stays, its files stay, and experiments have the same data.

The password comes from the environment (or, for PostgreSQL, from ~/.pgpass), and is written nowhere.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.errors import InputError
from labelwise.common.files import check_replaceable, staged
from labelwise.corpus.tasks import file_names
from labelwise.sources.addresses import MYSQL, Address, check_host
from labelwise.sources.prodigy_db import DATASET_NAMES, SCHEMA, TASKS, check_schema, no_such_dataset

DIGESTS = "digests.json"
BUFFERED = 100  # rows that are held at a time
PATIENCE = 10  # seconds to wait for a connection


class Snapshot(msgspec.Struct):
    """The tasks taken of a data set.

    db (str): the server and database that it was in.
    snapshot (str): the snapshot's name.
    file (str): the JSONL file's name.
    tasks (int): its rows.
    sha256 (str): of the file.
    """

    db: str
    snapshot: str
    file: str
    tasks: int
    sha256: str


def take_snapshots(
    datasets: Sequence[tuple[str, Address]],
    out: Path,
    snapshot: str = "",
    servers: str = "",
    tell: Callable[[str, int], object] = lambda name, tasks: None,
) -> dict[str, Snapshot]:
    """Write the declared data sets of servers to a folder, which is replaced as a whole; returns them by name.

    Files of the same snapshot are kept, also while they aren't declared. All that is taken from a database is read
    in one transaction, and so as it was at one moment.

    datasets (Sequence[tuple[str, Address]]): name and database of each, none twice.
    snapshot (str): any name; with another one, all is taken anew.
    servers (str): hosts that may get a password; see `check_host`.
    tell (Callable): is told a data set's name, and how many of its tasks have been written since it was told before.
    RAISES (InputError): a server isn't named, can't be reached, refuses, isn't Prodigy's, or lacks a data set.
    """
    check_replaceable(out, (DIGESTS,), "snapshot")
    before = _read_digests(out) if (out / DIGESTS).is_file() else {}
    declared = {name: str(address) for name, address in datasets}
    taken = {
        name: one
        for name, one in before.items()
        if (one.db, one.snapshot) == (declared.get(name, one.db), snapshot)
        and one.sha256 == _digest(out / Path(one.file).name)
    }
    files = file_names({**taken, **declared})
    if before and taken.keys() == before.keys() and taken.keys() >= declared.keys():
        return {name: taken[name] for name in declared}
    with staged(out, folder=True) as folder:
        folder.mkdir()
        for name, one in taken.items():
            shutil.copy2(out / one.file, folder / files[name])
            one.file = files[name]
        for address in dict.fromkeys(address for name, address in datasets if name not in taken):
            with reading(address, servers) as connection:
                _check_tables(connection, address)
                for name in (name for name, own in datasets if own == address and name not in taken):
                    tasks, digest = _write(connection, name, address, folder / files[name], tell)
                    taken[name] = Snapshot(declared[name], snapshot, files[name], tasks, digest)
        content = {name: taken[name] for name in sorted(taken)}
        (folder / DIGESTS).write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    return {name: taken[name] for name in declared}


def find_snapshot(name: str, address: Address, fetched: Path) -> Path:
    """Find the file that a data set of a server was written to.

    RAISES (InputError): there is none, or one of another database.
    """
    digests = fetched / DIGESTS
    if not digests.is_file():
        raise InputError(f"data set {name!r} is in {address}, and {fetched} has no snapshot of it; {_REMEDY}")
    taken = _read_digests(fetched)
    snapshot = taken.get(name)
    if snapshot is None or snapshot.db != str(address):
        found = "is of another database" if snapshot else f"has only {', '.join(map(repr, taken)) or 'none'}"
        raise InputError(f"data set {name!r} is in {address}, but the snapshot in {fetched} {found}; {_REMEDY}")
    path = fetched.resolve() / snapshot.file  # which may be a link into DVC's cache
    if path.name != snapshot.file or not path.is_file():
        raise InputError(f"{digests}: it names {snapshot.file!r}, which isn't there; {_REMEDY}")
    return path


_REMEDY = "take one: weasel run fetch-prodigy"


def _read_digests(fetched: Path) -> dict[str, Snapshot]:
    path = fetched / DIGESTS
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Snapshot])
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: {error}; delete {fetched}, and {_REMEDY}") from error


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(address: Address, servers: str = "") -> Iterator[Any]:
    """Connect to a server, in a transaction that can't write.

    servers (str): hosts that may get a password; see `check_host`.
    RAISES (InputError): it isn't among them, its packages aren't installed, or it reports an error.
    """
    check_host(address, servers)
    server = address.server
    try:
        import sqlalchemy

        url = sqlalchemy.URL.create(
            server.dialect,
            address.user,
            None,
            address.host or None,
            address.port,
            address.database,
            dict(address.options),
        )
        options: dict[str, Any] = {} if "connect_timeout" in url.query else {"connect_timeout": PATIENCE}
        if server is MYSQL:  # libpq, below psycopg, reads its variable itself; pymysql would encode a str as Latin-1
            options["password"] = os.environ.get(server.password, "").encode("utf8", "surrogateescape")
        engine = sqlalchemy.create_engine(url, connect_args=options, poolclass=sqlalchemy.NullPool)
    except ImportError as error:
        raise InputError(f"{address}: to read it, install what is needed: pip install {server.packages}") from error
    try:
        connected = engine.connect()
    except (TypeError, ValueError, RuntimeError, OSError) as error:  # of the driver, which is handed the options
        raise InputError(f"{address}: {address.hide(str(error))}; correct its options") from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise _refused(address, error) from None
    try:
        with connected as connection:
            connection.execute(sqlalchemy.text(server.read_only))
            if server is MYSQL:
                connection.rollback()  # the setting holds from the next transaction on
            yield connection
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise _refused(address, error) from None
    finally:
        engine.dispose()


def _refused(address: Address, error: Exception) -> InputError:
    why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    return InputError(
        f"{address}: {address.hide(why)}; check user, host and database, and that {address.server.password} in the "
        "environment is the password"
    )


def _check_tables(connection: Any, address: Address) -> None:
    """Check that a database is Prodigy's.

    RAISES (InputError): a table or column is missing.
    """
    import sqlalchemy

    inspector = sqlalchemy.inspect(connection)
    tables = {
        name: {column["name"] for column in inspector.get_columns(name)} if name in SCHEMA else set()
        for name in inspector.get_table_names()
    }
    check_schema(address, tables)


def _write(
    connection: Any, name: str, address: Address, path: Path, tell: Callable[[str, int], object]
) -> tuple[int, str]:
    """Write the tasks of a data set, in the order of their ids; returns their number, and the file's digest."""
    import sqlalchemy

    names = [name for (name,) in connection.execute(sqlalchemy.text(DATASET_NAMES))]
    if name not in names:
        raise no_such_dataset(address, name, names)
    digest, tasks = hashlib.sha256(), 0
    streaming = connection.execution_options(stream_results=True, max_row_buffer=BUFFERED)
    with path.open("wb") as file, streaming.execute(sqlalchemy.text(TASKS), {"name": name}) as rows:
        for _, content in rows:
            line = as_line(content)
            digest.update(line)
            file.write(line)
            tasks += 1
            if tasks % BUFFERED == 0:
                tell(name, BUFFERED)
    return tasks, digest.hexdigest()


def as_line(content: bytes | memoryview | str | object) -> bytes:
    r"""Write the content of a row, as the driver gives it, as one line, which counts whatever it holds.

    Between its values, JSON may have line ends, which are as good as spaces. Within strings it can't, and so it is
    damaged, and stays so.

    >>> as_line(b'{"text":\n"one"}'), as_line(None), as_line({"text": "a JSON column"})
    (b'{"text": "one"}\n', b'null\n', b'{"text":"a JSON column"}\n')
    >>> as_line(b'{"text": "one\ntwo"}')
    b'{"text": "one\x1ftwo"}\n'
    """
    if isinstance(content, str):
        content = content.encode("utf8", "surrogatepass")
    elif not isinstance(content, bytes | memoryview):
        content = msgspec.json.encode(content)
    line = bytes(content).strip()
    if b"\n" in line or b"\r" in line:
        try:
            msgspec.json.decode(line)
            line = line.translate(bytes.maketrans(b"\r\n", b"  "))
        except DECODE_ERRORS:
            line = line.translate(bytes.maketrans(b"\r\n", b"\x1f\x1f"))
    return (line or b"null") + b"\n"

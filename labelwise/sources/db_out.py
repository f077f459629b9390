"""Write data sets of Prodigy's database to JSONL files, as `prodigy db-out` does.

The database is an SQLite file or on a PostgreSQL, MySQL or MariaDB server, which changes while a team annotates; weasel
and DVC see files alone. The drivers find passwords where they always do: PostgreSQL's in PGPASSWORD or ~/.pgpass,
MySQL's in ~/.my.cnf.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from labelwise.corpus.tasks import file_names
from labelwise.errors import InputError
from labelwise.files import staged
from labelwise.sources.prodigy_tables import DATASET_NAMES, TASKS, check_names, check_schema

DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
}
BUFFERED = 100  # rows that are held at a time
PASSWORD = re.compile(r"(?i):/?[^/].*@|[?&][^=&]*(passw|pwd)[^=&]*=")
WITHOUT = (
    "leave it out, as it would be seen in the shell's history and in lists of processes: PGPASSWORD or ~/.pgpass has "
    "PostgreSQL's, ~/.my.cnf MySQL's"
)


def write_datasets(
    url: str,
    names: Sequence[str],
    out: Path,
    progress: Callable[[Iterable[Any], str], Iterable[Any]] = lambda rows, name: rows,
) -> dict[str, tuple[Path, int]]:
    """Write data sets into a folder, each as it was at the same moment, over files with their names.

    url (str): the database's address, as SQLAlchemy has it.
    progress (Callable): wraps the rows of a data set, to show how far it is.
    RETURNS (dict): the file of each, and how many tasks it has.
    RAISES (InputError): the address has a password in it, the database refuses, isn't Prodigy's, or lacks a data set.
    """
    with connected(url) as connection:
        import sqlalchemy

        check_schema(url, sqlalchemy.inspect(connection).get_table_names())
        check_names(url, names, connection.scalars(sqlalchemy.text(DATASET_NAMES)))
        out.mkdir(parents=True, exist_ok=True)
        written = {}
        for name, file in file_names(names).items():
            rows = connection.execute(sqlalchemy.text(TASKS), {"name": name}, execution_options={"yield_per": BUFFERED})
            tasks = 0
            with staged(out / file) as unfinished, unfinished.open("wb") as lines:
                for _, content in progress(rows, name):
                    lines.write(as_line(content))
                    tasks += 1
            written[name] = out / file, tasks
        return written


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Connect to a database, in a transaction that sees it as it is at its start.

    RAISES (InputError): the address isn't one or has a password in it, the packages aren't installed, or the database
        reports an error.
    """
    if PASSWORD.search(url):
        raise InputError(f"the address has a password in it; {WITHOUT}")
    try:
        import sqlalchemy

        address = sqlalchemy.make_url(url)
        kind = address.get_backend_name()
        options: dict[str, Any] = {"isolation_level": "REPEATABLE READ"}
        if kind == "sqlite":
            file = Path(address.database or "").resolve()
            address = address.set(database=file.as_uri(), query={"mode": "ro", "uri": "true"})
            options = {}
        elif kind in ("mysql", "mariadb"):
            options["connect_args"] = {"read_default_file": "~/.my.cnf"}
        engine = sqlalchemy.create_engine(address.set(drivername=DRIVERS[kind]), **options)
    except ImportError as error:
        packages = 'sqlalchemy "psycopg[binary]" "pymysql[rsa]"'
        raise InputError(f"{url}: to read it, install what is needed: pip install {packages}") from error
    except (sqlalchemy.exc.ArgumentError, ValueError, KeyError) as error:
        raise InputError(
            f"{url}: not the address of a database; write postgresql://user@host/database, "
            "mysql://user@host/database or sqlite:///folder/prodigy.db"
        ) from error
    try:
        with engine.connect() as connection:
            if kind == "sqlite":
                connection.exec_driver_sql("begin")  # which its driver leaves out before a query
            yield connection
    except sqlalchemy.exc.SQLAlchemyError as error:
        why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise InputError(
            f"{url}: {why}; check user, host and database, and that PGPASSWORD, ~/.pgpass or ~/.my.cnf has the password"
        ) from error
    finally:
        engine.dispose()


def as_line(content: Any) -> bytes:
    r"""Write the content of a row, as the driver gives it, as one line; JSON may have line ends between its values.

    >>> as_line(b'{"text":\n"one"}'), as_line(None)
    (b'{"text": "one"}\n', b'null\n')
    """
    if isinstance(content, str):
        content = content.encode("utf8", "surrogatepass")
    elif not isinstance(content, bytes | memoryview):
        content = msgspec.json.encode(content)
    return (bytes(content).strip().translate(bytes.maketrans(b"\r\n", b"  ")) or b"null") + b"\n"

"""Databases with Prodigy's tables: an SQLite file, and real servers, started for the tests that need one."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy

PASSWORD = "open-sesame-4711"
USER = "annotator"

# As peewee, which Prodigy uses, makes its tables; {key}: a key that counts up, {blob}: bytes.
SCHEMA = (
    "create table dataset (id {key}, name varchar(255) not null unique, created integer not null, "
    "meta {blob} not null, session smallint not null)",
    "create table example (id {key}, input_hash bigint not null, task_hash bigint not null, content {blob})",
    "create table link (id {key}, example_id integer not null, dataset_id integer not null)",
)
TYPES = {
    "postgresql": {"key": "serial primary key", "blob": "bytea"},
    "mysql": {"key": "integer auto_increment primary key", "blob": "longblob"},
    "sqlite": {"key": "integer primary key", "blob": "blob"},
}
PASSWORD_FILES = {
    ".pgpass": f"127.0.0.1:*:prodigy:{USER}:{PASSWORD}\n",
    ".my.cnf": f"[client]\npassword={PASSWORD}\n",
}


class ProdigyDatabase:
    """A database with Prodigy's tables.

    db (str): its address, without the password.
    """

    def __init__(self, kind: str, where: str) -> None:
        self.kind, self.db = kind, f"{kind}://{where}"
        self.url = sqlalchemy.make_url(self.db)
        self.options = {}
        if kind != "sqlite":
            driver = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}[kind]
            self.url, self.options = self.url.set(drivername=driver), {"password": PASSWORD}
        self.engine = sqlalchemy.create_engine(self.url, connect_args=self.options, poolclass=sqlalchemy.NullPool)

    def run(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(sqlalchemy.text(statement))

    def clear(self) -> None:
        """Make Prodigy's tables anew, and empty."""
        with self.engine.connect() as connection:
            names = sqlalchemy.inspect(connection).get_table_names()
        self.run(*(f"drop table {name}" for name in names), *(table.format(**TYPES[self.kind]) for table in SCHEMA))

    def add(self, dataset: str, contents: list[bytes | None]) -> None:
        """Add tasks to a data set, as Prodigy does: each linked to it, and to the data set of a session."""
        with self.engine.begin() as connection:

            def run(statement: str, **values: object) -> sqlalchemy.CursorResult:
                return connection.execute(sqlalchemy.text(statement), values)

            session = f"{dataset}-anna"
            for number, name in enumerate((dataset, session)):
                if not run("select id from dataset where name = :name", name=name).all():
                    columns = "insert into dataset (name, created, meta, session) values (:name, 0, :meta, :session)"
                    run(columns, name=name, meta=b"{}", session=number)
            both = "select (select max(id) from example), id from dataset where name in (:dataset, :session)"
            for content in contents:
                run("insert into example (input_hash, task_hash, content) values (1, 2, :content)", content=content)
                run(f"insert into link (example_id, dataset_id) {both}", dataset=dataset, session=session)


@contextmanager
def sqlite() -> Iterator[ProdigyDatabase]:
    """An SQLite file that can be written to while it is read."""
    with tempfile.TemporaryDirectory() as folder:
        database = ProdigyDatabase("sqlite", f"/{folder}/prodigy.db")
        database.run("pragma journal_mode = wal")
        yield database


@contextmanager
def postgresql() -> Iterator[ProdigyDatabase]:
    """A PostgreSQL server of Debian's packages; the test is skipped where there is none."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if programs is None:
        pytest.skip("there is no PostgreSQL server here: apt-get install postgresql")
    # The server refuses to run as root.
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    with _folder("postgres" if as_user else "") as folder:
        port, data = _free_port(), folder / "data"
        (folder / "password").write_text(PASSWORD, encoding="utf8")
        (folder / "password").chmod(0o644)
        options = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={folder}/password", "--encoding=UTF8"]
        _run([*as_user, programs / "initdb", "--pgdata", data, "--no-sync", "--locale=C.UTF-8", *options])
        options = ["-p", port, "-k", folder, "-F", "-c", "listen_addresses=127.0.0.1"]
        with _running([*as_user, programs / "postgres", "-D", data, *options], port, folder / "log"):
            server = ProdigyDatabase("postgresql", f"{USER}@127.0.0.1:{port}/prodigy")
            outside = server.url.set(database="postgres")
            engine = sqlalchemy.create_engine(outside, connect_args=server.options, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text("create database prodigy"))
            engine.dispose()
            yield server


@contextmanager
def mariadb() -> Iterator[ProdigyDatabase]:
    """A MariaDB server of Debian's packages, which is MySQL to its clients; the test is skipped where there is none."""
    server, install = (shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("mariadbd", "mariadb-install-db"))
    if not server or not install:
        pytest.skip("there is no MariaDB server here: apt-get install mariadb-server")
    with _folder("") as folder:
        port, start = _free_port(), folder / "start.sql"
        common = ["--no-defaults", f"--datadir={folder / 'data'}"]
        common.append(f"--user={'root' if os.geteuid() == 0 else os.environ.get('USER', 'nobody')}")
        _run([install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"])
        statements = [
            *("set names utf8mb4", "create database prodigy"),
            f"create user {USER}@'127.0.0.1' identified by '{PASSWORD}'",
            f"grant all on prodigy.* to {USER}@'127.0.0.1'",
        ]
        start.write_text("".join(f"{statement};\n" for statement in statements), encoding="utf8")
        options = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket", f"--init-file={start}"]
        options += [f"--pid-file={folder}/pid", "--skip-name-resolve", "--character-set-server=utf8mb4"]
        with _running([server, *common, *options], port, folder / "log"):
            yield ProdigyDatabase("mysql", f"{USER}@127.0.0.1:{port}/prodigy")


@contextmanager
def _folder(owner: str) -> Iterator[Path]:
    """A folder of its own, not below pytest's, which nobody else may enter; sockets need short paths, too."""
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        if owner:
            shutil.chown(folder, owner, owner)
        yield Path(folder)


@contextmanager
def _running(command: list[object], port: int, log: Path) -> Iterator[None]:
    """Run a server, and wait until it can be connected to."""
    with log.open("wb") as output, socket.socket() as client:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + 60
            while client.connect_ex(("127.0.0.1", port)):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(log.read_text(errors="replace"))
                time.sleep(0.1)
            client.close()
            yield
        finally:
            process.terminate()
            process.wait(60)


def _run(command: list[object]) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]

"""Addresses of databases: nothing shows a secret that stands in one, and a password goes to named hosts alone."""

import socket
import struct
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwise.common.errors import InputError
from labelwise.sources.addresses import SERVERS, check_host, parse_address
from labelwise.sources.declarations import load_datasets, load_servers
from labelwise.sources.infer import declare_folder
from labelwise.sources.prodigy_server import take_snapshots

SECRET = "Zq7" + "x9Kw"  # in two, as tracebacks quote lines
CREDENTIALS = (
    "{}",
    "anna:{}",
    "{}:1",
    "anna:2024/{}PW",
    "anna:{}/@:1",
    "a@b:{}",
    "anna:1{}?x",
    "anna%3A{}",
    ":{}",
    "a {}",
)
BEHIND = (
    "?auth={}",
    "?options=-cpassword%3D{}",
    "?{}",
    "?sslmode={}",
    "?ssl_ca=/{}",
    "?passfile={}",
    "#{}",
    "?a=1&b={}#c",
)
HOSTS = ("127.0.0.1:1", "[::1]:1", "127.0.0.1:port", "box", "b/x", "[box", "box,127.0.0.1", "")
SCHEMES = (*SERVERS, "oracle", "sqlite", "MySQL", "postgresql+psycopg", "")


def declare(folder: Path, **declared: object) -> Path:
    folder.mkdir(exist_ok=True)
    content = [
        {"name": "other", "path": "other.jsonl", "labels": ["A"]},
        {"name": "person", **declared, "labels": ["A"]},
    ]
    (folder / "datasets.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    (folder / "other.jsonl").write_text('{"text": "Anna", "spans": []}\n')
    return folder / "datasets.yml"


@settings(max_examples=200, deadline=None)
@given(
    scheme=st.sampled_from(SCHEMES),
    separator=st.sampled_from(("://", ":/", ":", ":///")),
    host=st.sampled_from(HOSTS),
    database=st.sampled_from(("/prodigy", "", "/", "/a/b", "//")),
    secret=st.sampled_from([*product(CREDENTIALS, ("", "?sslmode=disable")), *product(("", "anna"), BEHIND)]),
    key=st.sampled_from(("db", "path")),
    listed=st.booleans(),
)
def test_no_secret_in_an_address_is_printed_or_written(scheme, separator, host, database, secret, key, listed):
    before, behind = (part.format(SECRET) for part in secret)
    address = f"{scheme}{separator}{before}{'@' if before else ''}{host}{database}{behind}"
    shown = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = declare(folder / "data", **{key: [address] if listed and key == "path" else address})
        taken = []

        def snapshot() -> None:
            taken.extend(load_servers([file]))
            take_snapshots(taken, folder / "fetched")

        def find() -> None:
            (folder / "data/new.jsonl").write_text(
                '{"text": "Anna", "spans": [{"start": 0, "end": 4, "label": "B"}]}\n'
            )
            shown.append(repr(declare_folder(folder / "data")))

        for step in (snapshot, lambda: load_datasets([file], folder / "fetched"), find):
            try:
                step()
            except (InputError, OSError) as error:
                shown += traceback.format_exception(error)
        shown += [str(address) + repr(address) for _, address in taken]
        shown += [path.read_text() for path in (folder / "fetched").glob("*")]
    assert SECRET not in "".join(shown)


def test_a_snapshot_is_stored_with_scheme_host_port_and_database_alone():
    written = f"mysql://{SECRET}@Box.Example.com.:3306/prodigy?ssl_ca=/{SECRET}"
    assert str(parse_address(written, "here")) == "mysql://box.example.com:3306/prodigy"
    assert str(parse_address("postgresql://[::1]/prodigy", "here")) == "postgresql://[::1]/prodigy"
    assert str(parse_address("postgresql:///prodigy", "here")) == "postgresql:///prodigy"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"db": "mysql://anna:2024/S3cretPW@host/db"},
            r"datasets.yml, line 6: data set 'person': its address can't .* MYSQL_PWD",
        ),
        ({"db": "postgresql:/anna:S3cretPW@host/db"}, "line 6: data set 'person': its address can't be read"),
        (
            {"db": "mysql://host/db?auth=S3cretPW"},
            "mysql://host/db: behind .* isn't one of .*ssl_ca",
        ),
        (
            {"db": "postgresql://host/db?options=-cpassword=S3cretPW"},
            "one of the options connect_timeout, sslmode",
        ),
        ({"path": "mysql://anna:S3cretPW@host/db"}, "its path looks like an address.* write .* `db:`"),
        ({"path": ["other.jsonl", "mysql:/anna:S3cretPW@host/db"]}, "its path looks like an address"),
        ({"path": "host=box password=S3cretPW"}, "its path looks like an address"),
    ],
)
def test_what_is_said_of_an_address_that_is_refused(declared, message, tmp_path):
    file = declare(tmp_path, **declared)
    with pytest.raises(InputError, match=message) as refused:
        load_datasets([file])
    assert "S3cret" not in str(refused.value)
    if "db" in declared:
        with pytest.raises(InputError, match=message):
            load_servers([file])


class Listener:
    """A server that asks for the password in the clear, and records what it is sent.

    received (bytes): by all who connected.
    """

    def __init__(self, kind: str) -> None:
        self.kind, self.received, self.connected = kind, b"", 0
        self.listening = socket.create_server(("127.0.0.2", 0))
        self.port = self.listening.getsockname()[1]
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def answer(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                self.connected += 1
                client.settimeout(5)
                with client, suppress(OSError):
                    self.greet(client)

    def take(self, client: socket.socket) -> bytes:
        content = client.recv(4096)
        self.received += content
        return content

    def greet(self, client: socket.socket) -> None:
        if self.kind == "postgresql":
            while self.take(client)[4:8] in (struct.pack("!i", 80877103), struct.pack("!i", 80877104)):
                client.sendall(b"N")  # neither SSL nor GSS
            client.sendall(b"R" + struct.pack("!ii", 8, 3))
        else:
            flags = 0x0008_A20F  # plugins, secure connections, protocol 4.1, transactions
            head = (
                b"\x0a8.0.0\0" + struct.pack("<i", 1) + b"12345678\0" + struct.pack("<H", flags & 0xFFFF) + b"\x2d\2\0"
            )
            greeting = head + struct.pack("<HB", flags >> 16, 21) + bytes(10) + b"123456789012\0mysql_native_password\0"
            client.sendall(struct.pack("<I", len(greeting))[:3] + b"\0" + greeting)
            self.take(client)
            other = b"\xfemysql_clear_password\0"
            client.sendall(struct.pack("<I", len(other))[:3] + b"\2" + other)
        self.take(client)


@contextmanager
def listening(kind: str) -> Iterator[Listener]:
    listener = Listener(kind)
    try:
        yield listener
    finally:
        listener.listening.close()


@pytest.fixture(params=["postgresql", "mysql"])
def listener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Listener]:
    """A stranger's server, at an address that isn't among those of this machine that are free."""
    for variable in ("PGHOST", "MYSQL_HOST", "PGPASSFILE", "PGSERVICEFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("MYSQL_PWD", SECRET)
    with listening(request.param) as listener:
        yield listener


def fetch(db: str, folder: Path, servers: str = "") -> None:
    take_snapshots(load_servers([declare(folder / "data", db=db)]), folder / "fetched", servers=servers)


@pytest.mark.parametrize(
    "address",
    [
        "{kind}://anna@127.0.0.2:{port}/prodigy",
        "{kind}://127.0.0.2:{port}/prodigy",
        "{kind}://anna@2130706434:{port}/prodigy",  # the same, as a number
        "{kind}://anna@127.0.2:{port}/prodigy",
        "{kind}://anna@[::ffff:127.0.0.2]:{port}/prodigy",
        "{kind}://anna@127.0.0.2.:{port}/prodigy",
        "{kind}://anna@127%2E0%2E0%2E2:{port}/prodigy",
        "{kind}://anna@localhost,127.0.0.2:{port}/prodigy",
        "{kind}://anna@127.0.0.2,localhost:{port}/prodigy",
        "{kind}://anna@localhost@127.0.0.2:{port}/prodigy",
        "{kind}://anna%20host=127.0.0.2@localhost:1/prodigy",
        "{kind}://anna@localhost:1/prodigy?host=127.0.0.2&port={port}",
        "{kind}://anna@localhost:1/prodigy?host=127.0.0.2:{port}",
        "{kind}://anna@localhost:{port}/prodigy?hostaddr=127.0.0.2",
        "{kind}:///prodigy?host=127.0.0.2&port={port}",
        "{kind}:///prodigy?service=stranger&servicefile={folder}/service",
        "{kind}:///host=127.0.0.2 port={port}",
        "{kind}:///prodigy?passfile={folder}/.pgpass&host=127.0.0.2&port={port}",
        "{kind}://anna@localhost:1/prodigy?read_default_file={folder}/my.cnf",
        "{kind}+pymysql://anna@127.0.0.2:{port}/prodigy",
    ],
)
def test_a_stranger_s_server_is_sent_nothing(listener, address, tmp_path):
    (tmp_path / ".pgpass").write_text(f"# of all\n*:*:*:*:{SECRET}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    (tmp_path / "service").write_text(f"[stranger]\nhost=127.0.0.2\nport={listener.port}\n")
    (tmp_path / "my.cnf").write_text(f"[client]\nhost=127.0.0.2\nport={listener.port}\n")
    with pytest.raises(InputError, match=r"data/datasets.yml, line 6: data set 'person'|connection|connect to"):
        fetch(address.format(kind=listener.kind, port=listener.port, folder=tmp_path), tmp_path)
    assert (listener.connected, listener.received) == (0, b"")


@pytest.mark.parametrize("named", ["servers", "PGHOST", "MYSQL_HOST", "~/.pgpass", "PGPASSFILE"])
def test_a_named_server_is_sent_the_password(listener, named, tmp_path, monkeypatch):
    db = f"{listener.kind}://anna@127.0.0.2:{listener.port}/prodigy"
    with pytest.raises(InputError, match=r"only the declaration names 127\.0\.0\.2, .*add 127.0.0.2 to .* `servers`"):
        fetch(db, tmp_path)
    assert listener.connected == 0
    if "HOST" in named:
        monkeypatch.setenv(named, "db.example.com,127.0.0.2")
    elif named != "servers":
        file = tmp_path / (".pgpass" if named == "~/.pgpass" else "passwords")
        file.write_text(f"# mine\n127.0.0.2:*:*:*:{SECRET}\n")
        file.chmod(0o600)
        if named == "PGPASSFILE":
            monkeypatch.setenv("PGPASSFILE", str(file))
    with pytest.raises(InputError, match=r"^\w+://127.0.0.2:\d+/prodigy: ") as refused:
        fetch(db, tmp_path, servers="db.example.com 127.0.0.2" if named == "servers" else "")
    assert listener.connected == 1
    assert SECRET.encode() in listener.received
    assert "anna" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "servers", "free"),
    [
        ("localhost", "", True),
        ("LocalHost.", "", True),
        ("127.0.0.1", "", True),
        ("[::1]", "", True),
        ("", "", True),
        ("db.example.com", "", False),
        ("db.example.com", "db.example.com", True),
        ("DB.Example.com.", "other, db.example.COM", True),
        ("db.example.com", "DB.example.com. other", True),
        ("db.example.com", "example.com", False),
        ("xdb.example.com", "db.example.com", False),
        ("db.example.com", "*", False),
        ("[fe80::1]", "[FE80::1]", True),
        ("10.0.0.5", "a,fe80::1\n10.0.0.5", True),
    ],
)
def test_which_hosts_are_named(host, servers, free, monkeypatch, tmp_path):
    for variable in ("PGHOST", "MYSQL_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    address = parse_address(f"postgresql://{host}/prodigy", "datasets.yml, line 2: data set 'person'")
    if free:
        check_host(address, servers)
    else:
        with pytest.raises(InputError, match=r"^datasets\.yml, line 2: data set 'person': only the declaration names"):
            check_host(address, servers)


def test_hosts_in_the_file_of_passwords(monkeypatch, tmp_path):
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passwords"))
    (tmp_path / "passwords").write_bytes(b"#db:*:*:*:x\n\\:\\:2:*:*:*:\xff\n*:*:*:*:x\nbox:5432:*:anna:x\nno\n")
    for host in ("[::2]", "box"):
        check_host(parse_address(f"mysql://{host}/prodigy", ""), "")
    for host in ("db", "no", "x"):
        with pytest.raises(InputError, match="only the declaration"):
            check_host(parse_address(f"mysql://{host}/prodigy", ""), "")

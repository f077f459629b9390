"""Addresses of databases on servers: what of one is shown, and which hosts may get a password.

    postgresql://anna@db.example.com:5432/prodigy?sslmode=verify-full

A password may have been put into any part of an address, and an address that can't be read may be one with a password.
So an error, a table or a file has only the scheme, host, port and database of one that could be read. And a stranger's
`datasets.yml` could name the stranger's server, which would be sent the password; so only hosts get it that are named
elsewhere, see `check_host`, and the options are few: libpq and PyMySQL know some that lead to other hosts and files.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from labelwise.common.errors import InputError

THIS_MACHINE = {"", "localhost", "127.0.0.1", "::1"}  # an empty host is a socket, or what PGHOST says
# What is no path, or may be an address; conninfo strings are one, too: `host=box password=...`.
LIKE_ADDRESS = re.compile(r"(?is):/|:.*[@=?#]|@.*=|(?:passw\w*|pwd)\s*=")


class Server(NamedTuple):
    """A kind of server.

    dialect (str): SQLAlchemy's name of it, with the driver.
    packages (str): for pip to install.
    password (str): the environment variable that has the password: the one that the server's own programs read.
    read_only (str): the statement that makes a transaction read-only, all of it as the data were at its start.
    options (tuple[str, ...]): the driver's that an address may have.
    """

    dialect: str
    packages: str
    password: str
    read_only: str
    options: tuple[str, ...]


MYSQL = Server(
    *("mysql+pymysql", 'sqlalchemy "pymysql[rsa]"', "MYSQL_PWD"),
    "set session transaction isolation level repeatable read, read only",
    ("connect_timeout", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "unix_socket"),
)
SERVERS = {
    "postgresql": Server(
        *("postgresql+psycopg", 'sqlalchemy "psycopg[binary]"', "PGPASSWORD"),
        "set transaction isolation level repeatable read, read only",
        ("connect_timeout", "sslmode", "sslrootcert"),
    ),
    "mysql": MYSQL,
    "mariadb": MYSQL,
}
ADDRESS = re.compile(
    rf"(?P<scheme>{'|'.join(SERVERS)})://(?:(?P<user>[^\s:/?#@]+)@)?"
    r"(?:(?P<host>[A-Za-z0-9._-]+)|\[(?P<ipv6>[0-9A-Fa-f:.]+)\])?(?::(?P<port>[0-9]{1,5}))?"
    r"/(?P<database>[\w.-]+)(?:\?(?P<options>[\w./~=&-]*))?"
)
_REMEDY = (
    "write postgresql://user@host/database or mysql://user@host/database, or the path of an SQLite file; a password "
    "would end up in git, in DVC's lock file and in logs: set it as PGPASSWORD or MYSQL_PWD in the environment"
)


@dataclass(frozen=True, repr=False)
class Address:
    """The address of a database, as it may be printed and stored: without user and options.

    host (str): in small letters, without a dot at its end; empty for a socket.
    place (str): of the declaration, for errors.
    """

    scheme: str
    host: str
    port: int | None
    database: str
    user: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Write what may be seen of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port is None else f':{self.port}'}/{self.database}"

    @property
    def server(self) -> Server:
        """The kind of server."""
        return SERVERS[self.scheme]

    def hide(self, text: str) -> str:
        """Take out of a driver's message what of the address isn't to be seen."""
        for secret in filter(None, (self.user, *(value for _, value in self.options))):
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
        return text


def is_address(declared: str) -> bool:
    """Tell whether what is declared as a database or a path may be meant as an address; only paths may be printed.

    >>> is_address("mysql:/anna:secret@box/prodigy"), is_address("exports/anna@example.com.jsonl")
    (True, False)
    """
    return LIKE_ADDRESS.search(declared) is not None


def parse_address(declared: str, place: str) -> Address:
    """Read an address.

    place (str): where it is declared, for errors.
    RAISES (InputError): it isn't one, or has a password or an unknown option in it; it isn't repeated.
    """
    found = ADDRESS.fullmatch(declared)
    if found is None:
        raise InputError(f"{place}: its address can't be read, or has a password in it, and isn't repeated; {_REMEDY}")
    options = found["options"].split("&") if found["options"] else []
    address = Address(
        found["scheme"],
        (found["host"] or found["ipv6"] or "").lower().removesuffix("."),
        int(found["port"]) if found["port"] else None,
        found["database"],
        unquote(found["user"]) if found["user"] else None,
        tuple((key, value) for key, _, value in (option.partition("=") for option in options)),
        place,
    )
    if not {key for key, _ in address.options} <= {*address.server.options}:
        raise InputError(
            f"{place}: {address}: behind `?` it has something that isn't one of the options "
            f"{', '.join(address.server.options)}; take it out, and set a password as {address.server.password} in the "
            "environment"
        )
    return address


def check_host(address: Address, servers: str) -> None:
    """Check that a password may be sent to a host: this machine, or one that is named outside of `datasets.yml`.

    servers (str): names of hosts, separated by spaces or commas; those in the environment and ~/.pgpass count, too.
    RAISES (InputError): it isn't named.
    """
    listed = re.split(r"[\s,]+", " ".join((servers, *map(os.environ.get, ("PGHOST", "MYSQL_HOST"), ("", "")))))
    named = {host.strip("[]").lower().removesuffix(".") for host in (*listed, *_hosts_in_pgpass())}
    if address.host not in THIS_MACHINE | named:
        raise InputError(
            f"{address.place}: only the declaration names {address.host}, so it isn't connected to, and gets no "
            f"password; if you trust it, add {address.host} to the variable `servers` of project.yml"
        )


def _hosts_in_pgpass() -> Iterator[str]:
    r"""Yield the hosts in libpq's file of passwords: lines of `host:port:database:user:password`, `\:` for a colon.

    Source: https://www.postgresql.org/docs/current/libpq-pgpass.html
    """
    try:
        file = os.environ.get("PGPASSFILE") or os.path.expanduser("~/.pgpass")  # noqa: PTH111  Path's fails without a home
        lines = Path(file).read_text("utf8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        if found := re.match(r"((?:\\.|[^\\:])+):", line):
            yield re.sub(r"\\(.)", r"\1", found[1])

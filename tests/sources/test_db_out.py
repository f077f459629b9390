"""Data sets of Prodigy's database as files, from SQLite and real servers; and what is said where something is wrong."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from labelwise.errors import InputError
from labelwise.sources.db_out import write_datasets
from labelwise.sources.declarations import load_datasets
from scripts.db_out import db_out_cli
from tests.sources.servers import PASSWORD_FILES, ProdigyDatabase, mariadb, postgresql, sqlite

SERVERS = [pytest.param(server, marks=pytest.mark.long) for server in (postgresql, mariadb)]


@pytest.fixture(scope="module", params=[sqlite, *SERVERS])
def started(request: pytest.FixtureRequest) -> Iterator[ProdigyDatabase]:
    with request.param() as database:
        yield database


@pytest.fixture
def database(started: ProdigyDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProdigyDatabase:
    """A database without rows, the password of which is where its driver looks for it."""
    started.clear()
    (tmp_path / "home").mkdir()
    for name, content in PASSWORD_FILES.items():
        (tmp_path / "home" / name).write_text(content)
        (tmp_path / "home" / name).chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return started


def task(number: int, label: str = "PERSON") -> bytes:
    text = f"Änne № {number} 🚀 spoke."
    span = {"start": 0, "end": 4, "label": label}
    return json.dumps({"text": text, "spans": [span], "answer": "accept", "_view_id": "ner_manual"}).encode()


def test_a_file_has_the_tasks_of_a_data_set_once_in_the_order_of_their_ids(database, tmp_path):
    database.add("person", [task(1), task(2)])
    database.add("place", [task(3, "PLACE")])
    spread = task(2).replace(b", ", b",\r\n")  # JSON may have line ends between its values
    database.add("person", [spread, b"\xff", b"", None])
    written = write_datasets(database.db, ["person", "place"], tmp_path / "out")
    lines = [task(1), task(2), spread.replace(b"\r\n", b"  "), b"\xff", b"null", b"null"]
    assert (tmp_path / "out/person.jsonl").read_bytes() == b"\n".join(lines) + b"\n"
    assert (tmp_path / "out/place.jsonl").read_bytes() == task(3, "PLACE") + b"\n"
    assert written["person"] == (tmp_path / "out/person.jsonl", 6)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["person.jsonl", "place.jsonl"]


def test_all_data_sets_are_as_they_were_at_one_moment(database, tmp_path):
    database.add("a", [task(number) for number in range(150)])
    database.add("b", [task(1)])

    def annotate(rows, name):
        if name == "a":
            database.add("b", [task(2)])
        return rows

    written = write_datasets(database.db, ["a", "b"], tmp_path / "out", annotate)
    assert (written["a"][1], written["b"][1]) == (150, 1)


def test_earlier_files_stay_where_something_is_wrong(database, tmp_path):
    out = tmp_path / "out"
    database.add("person", [task(1)])
    write_datasets(database.db, ["person"], out)
    with pytest.raises(InputError, match="it has no data set 'persons', but 'person', 'person-anna'; correct"):
        write_datasets(database.db, ["person", "persons"], out)
    database.run("drop table link")
    with pytest.raises(InputError, match=r"isn't Prodigy's schema.* found are: dataset, example;"):
        write_datasets(database.db, ["person"], out)
    database.run("drop table example", "drop table dataset")
    with pytest.raises(InputError, match=r"isn't Prodigy's schema.* found are: none;"):
        write_datasets(database.db, ["person"], out)
    assert (out / "person.jsonl").read_bytes() == task(1) + b"\n"
    assert [path.name for path in out.iterdir()] == ["person.jsonl"]


@pytest.mark.parametrize(
    ("db", "key"),
    [
        ("postgresql://anna:s3cr3t@127.0.0.1:1/prodigy", "db"),
        ("mysql://anna:2024/s3cr3t@127.0.0.1:1/prodigy", "path"),
        ("postgresql:/anna:/s3cr3t@127.0.0.1/prodigy", "db"),
        ("mysql://anna@127.0.0.1:1/prodigy?passwd=s3cr3t", "path"),
        ("postgresql://127.0.0.1:1/prodigy?sslmode=require&sslPassword=s3cr3t", "db"),
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(db, key, tmp_path):
    """By the command, and by a merge, which reads files and says which command makes them."""
    with pytest.raises(InputError, match=r"the address has a password in it; leave it out.* ~/.my.cnf") as refused:
        write_datasets(db, ["person"], tmp_path / "out")
    assert "s3cr3t" not in str(refused.value)
    (tmp_path / "datasets.yml").write_text(yaml.safe_dump([{"name": "person", key: db, "labels": ["PERSON"]}]))
    with pytest.raises(InputError, match=r"is on a server, .*: python -m scripts.db_out URL person \S+$") as refused:
        load_datasets([tmp_path / "datasets.yml"])
    assert "s3cr3t" not in str(refused.value)


def test_the_command_prints_what_to_record(tmp_path):
    app = typer.Typer()
    app.command()(db_out_cli)
    (tmp_path / "person.jsonl.dvc").touch()
    with sqlite() as database:
        database.clear()
        for name in ("person", "a place's"):
            database.add(name, [task(3, "PLACE")])
        printed = CliRunner().invoke(app, [database.db, "person", "a place's", str(tmp_path)]).output
    *_, one, other = printed.splitlines()
    assert (one, other) == (f"dvc add {tmp_path}/person.jsonl", f"git add {tmp_path}/a_place_s-78e03f60.jsonl")


@pytest.mark.parametrize(
    ("db", "message"),
    [
        ("postgresql://anna@127.0.0.1:1/prodigy", r"^postgresql://anna@127.0.0.1:1/prodigy: .*refused.*; check user"),
        ("mysql://anna@127.0.0.1:1/prodigy", r"^mysql://anna@127.0.0.1:1/prodigy: .*refused.*; check user"),
        ("postgresql://anna@127.0.0.1:1/prodigy?sslmode=ful", "sslmode.*; check user"),
        ("oracle://anna@127.0.0.1/prodigy", "not the address of a database; write postgresql://user@host/database"),
        ("postgresql://anna@127.0.0.1:port/prodigy", "not the address of a database"),
        ("prodigy.db", "not the address of a database; .* or sqlite:///folder/prodigy.db"),
    ],
)
def test_addresses_that_lead_nowhere(db, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write_datasets(db, ["person"], tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_what_is_to_be_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(InputError, match=re.escape('pip install sqlalchemy "psycopg[binary]" "pymysql[rsa]"')):
        write_datasets("postgresql://anna@localhost/prodigy", ["person"], tmp_path / "out")

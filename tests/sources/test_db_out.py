"""Data sets of Prodigy's database as files, from SQLite and real servers; and what is said where something is wrong."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
import yaml

from benchmarks.measure import measure
from labelwise.errors import InputError
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources import db_out
from labelwise.sources.db_out import write_datasets
from labelwise.sources.declarations import load_datasets
from tests.conftest import ROOT
from tests.sources.servers import PASSWORD, PASSWORD_FILES, ProdigyDatabase, mariadb, postgresql, sqlite

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


def declare(folder: Path, *declared: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "datasets.yml").write_text(yaml.safe_dump(list(declared)))
    return folder / "datasets.yml"


def paste(lines: str, folder: Path, status: int = 0) -> str:
    """Run lines as somebody would in a terminal, with the project's environment active."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = ["bash", "-euc", lines]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_file_has_the_tasks_of_a_data_set_once_in_the_order_of_their_ids(database, tmp_path):
    database.add("person", [task(1), task(2)])
    database.add("place", [task(3, "PLACE")])
    database.add("person", [task(4)])
    written = write_datasets(database.db, ["person", "place"], tmp_path / "out")
    assert (tmp_path / "out/person.jsonl").read_bytes() == b"\n".join([task(1), task(2), task(4)]) + b"\n"
    assert (tmp_path / "out/place.jsonl").read_bytes() == task(3, "PLACE") + b"\n"
    assert written["person"] == (tmp_path / "out/person.jsonl", 3, ["PERSON"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["person.jsonl", "place.jsonl"]


def test_a_merge_counts_the_rows_that_are_damaged(database, tmp_path):
    spread = task(2).replace(b", ", b",\r\n")  # JSON may have line ends between its values
    database.add("person", [task(1), spread, b"\xff", b"", b'{"text": ', None])
    write_datasets(database.db, ["person"], tmp_path / "data")
    declared = declare(tmp_path / "data", {"name": "person", "path": "person.jsonl", "labels": ["PERSON"]})
    ledger = merge_data([declared], tmp_path / "corpus", Settings(), workers=1)
    assert ledger.rows["merged"] == 2
    assert ledger.rows["bad JSON"] == 2
    assert ledger.rows["malformed"] == 2  # an empty row, and none at all
    assert ledger.labels["PERSON"]["entity"] == 2
    problems = [json.loads(line) for line in (tmp_path / "corpus/problems.jsonl").read_text().splitlines()]
    assert [problem["line"] for problem in problems] == [3, 4, 5, 6]


def test_all_data_sets_are_as_they_were_at_one_moment(database, tmp_path):
    database.add("a", [task(number) for number in range(150)])
    database.add("b", [task(1)])

    def annotate(rows, name):
        if name == "a":
            database.add("b", [task(2)])
        return rows

    written = write_datasets(database.db, ["a", "b"], tmp_path / "out", annotate)
    assert (written["a"].tasks, written["b"].tasks) == (150, 1)


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


def test_an_sqlite_file_is_not_written_to(tmp_path, monkeypatch):
    with sqlite() as database:
        database.clear()
        database.run("pragma journal_mode = delete")
        with pytest.raises(InputError, match="readonly"), db_out.connected(database.db) as connection:
            connection.execute(sqlalchemy.text("insert into link (example_id, dataset_id) values (1, 1)"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"sqlite:///prodigy.db: unable to open database file"):
        write_datasets("sqlite:///prodigy.db", ["person"], tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("start", [postgresql, mariadb])
def test_where_a_server_s_password_is_looked_for(start, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with start() as server:
        server.clear()
        server.add("person", [task(1)])
        command = f"python -m scripts.db_out {server.db} person out"
        printed = paste(command, tmp_path, status=1)
        assert "check user, host and database, and that PGPASSWORD" in " ".join(printed.split())
        assert not (tmp_path / "out").exists()
        if start is postgresql:
            monkeypatch.setenv("PGPASSWORD", PASSWORD)
        else:
            (tmp_path / ".my.cnf").write_text(PASSWORD_FILES[".my.cnf"])
        printed = paste(command, tmp_path)
        assert PASSWORD not in printed + (tmp_path / "out/person.jsonl").read_text()


@pytest.mark.long
def test_memory_does_not_grow_with_the_tasks(database, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    filler = json.dumps({"text": "x" * 50_000}).encode()
    database.add("small", [filler] * 20)
    database.add("large", [filler] * 3_000)
    peaks = {name: measure("scripts.db_out", database.db, name, str(tmp_path)).peak_pss for name in ("small", "large")}
    assert (tmp_path / "large.jsonl").stat().st_size > 150_000_000
    # What is held at a time, twice, and not the 150 MB.
    assert peaks["large"] - peaks["small"] < 30 * 2**20


PASSWORDS = [
    "postgresql://anna:s3cr3t@127.0.0.1:1/prodigy",
    "mysql://anna:2024/s3cr3t@127.0.0.1:1/prodigy",
    "mysql://anna:s3cr3t/@:1@127.0.0.1:1/prodigy",
    "postgresql://:s3cr3t@127.0.0.1/prodigy",
    "postgresql://anna:/s3cr3t@127.0.0.1/prodigy",
    "postgresql:/anna:s3cr3t@127.0.0.1/prodigy",
    "mysql://anna@127.0.0.1:1/prodigy?passwd=s3cr3t",
    "postgresql://127.0.0.1:1/prodigy?sslmode=require&sslPassword=s3cr3t",
]


@pytest.mark.parametrize("db", PASSWORDS)
def test_an_address_with_a_password_is_refused_and_not_repeated(db, tmp_path):
    with pytest.raises(InputError, match=r"the address has a password in it; leave it out.* ~/.my.cnf") as refused:
        write_datasets(db, ["person"], tmp_path / "out")
    assert "s3cr3t" not in str(refused.value)
    for key in ("db", "path"):
        declared = declare(tmp_path, {"name": "person", key: db, "labels": ["PERSON"]})
        with pytest.raises(InputError, match=r"scripts.db_out URL person \S+$") as refused:
            load_datasets([declared])
        assert "s3cr3t" not in str(refused.value)


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


def test_a_merge_says_how_the_data_sets_of_a_server_become_files_and_what_is_printed_works(tmp_path):
    """What it prints is pasted: the command, the declaration, and what records the files."""
    with sqlite() as database:
        database.clear()
        database.add("person", [task(1), task(2)])
        database.add("a place's", [task(3, "PLACE")])
        names = ("person", "a place's")
        declare(tmp_path / "data", *({"name": name, "db": database.db, "labels": ["A"]} for name in names))
        merge = "python -m scripts.merge data/datasets.yml corpus --workers 1"
        command = paste(merge, tmp_path, status=1).splitlines()[-1]
        assert command.startswith(f"python -m scripts.db_out {database.db} person ")
        printed = paste(command, tmp_path)
    entry, _, record = printed.partition("too:\n")[2].partition("ℹ Record what was written:\n")
    (tmp_path / "data/datasets.yml").write_text(entry)
    assert "corpus has 3 texts, and 3 spans as entities" in paste(merge, tmp_path)
    paste(f"git init -q\n{record}", tmp_path)
    staged = paste("git diff --cached --name-only", tmp_path)
    assert staged.splitlines() == ["data/a_place_s-78e03f60.jsonl", "data/person.jsonl"]


def test_what_is_declared_or_recorded_by_dvc_already(tmp_path):
    with sqlite() as database:
        database.clear()
        database.add("person", [task(1)])
        declare(tmp_path / "data", {"name": "person", "path": "person.jsonl", "labels": ["PERSON"]})
        (tmp_path / "data/person.jsonl.dvc").touch()
        printed = paste(f"python -m scripts.db_out {database.db} person data", tmp_path)
    assert "datasets.yml" not in printed
    assert printed.splitlines()[-1] == "dvc add data/person.jsonl"
    assert "person.jsonl.dvc" not in paste("python -m scripts.merge data corpus --workers 1", tmp_path)

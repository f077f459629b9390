"""Snapshots of data sets on servers: against real ones, and what is said where something is wrong."""

import hashlib
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
from labelwise.common.errors import InputError
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.addresses import Address, parse_address
from labelwise.sources.declarations import load_datasets, load_servers
from labelwise.sources.prodigy_server import find_snapshot, reading, take_snapshots
from tests.conftest import ROOT
from tests.sources.servers import PASSWORD, USER, ProdigyServer, mariadb, postgresql


@pytest.fixture(scope="module", params=[postgresql, mariadb])
def started(request: pytest.FixtureRequest) -> Iterator[ProdigyServer]:
    with request.param() as server:
        yield server


@pytest.fixture
def server(started: ProdigyServer, monkeypatch: pytest.MonkeyPatch) -> ProdigyServer:
    started.clear()
    monkeypatch.setenv(started.variable, PASSWORD)
    return started


def at(db: str) -> Address:
    return parse_address(db, "datasets.yml")


def task(number: int, label: str = "PERSON") -> bytes:
    text = f"Änne № {number} 🚀 spoke."
    span = {"start": 0, "end": 4, "label": label}
    return json.dumps({"text": text, "spans": [span], "answer": "accept", "_view_id": "ner_manual"}).encode()


def declare(folder: Path, *declared: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "datasets.yml").write_text(yaml.safe_dump(list(declared)))
    return folder / "datasets.yml"


def test_a_snapshot_has_the_tasks_of_each_data_set_once_in_the_order_of_their_ids(server, tmp_path):
    server.add("person", [task(1), task(2)])
    server.add("place", [task(3, "PLACE")])
    server.add("person", [task(4)])
    told = []
    taken = take_snapshots(
        [("person", at(server.db)), ("place", at(server.db))],
        tmp_path / "fetched",
        tell=lambda *news: told.append(news),
    )
    content = (tmp_path / "fetched/person.jsonl").read_bytes()
    assert content == b"\n".join([task(1), task(2), task(4)]) + b"\n"
    assert (tmp_path / "fetched/place.jsonl").read_bytes() == task(3, "PLACE") + b"\n"
    assert taken["person"].tasks == 3
    written = json.loads((tmp_path / "fetched/digests.json").read_text())
    assert written["person"] == {
        "db": server.db.replace("annotator@", ""),
        "snapshot": "",
        "file": "person.jsonl",
        "tasks": 3,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert told == []  # fewer tasks than are told of at a time


def test_a_merge_takes_the_snapshot_and_counts_what_is_damaged(server, tmp_path):
    spread = task(2).replace(b", ", b",\r\n")  # JSON may have line ends between its values
    server.add("person", [task(1), spread, b"\xff", b"", b'{"text": ', None, b'{"text": "one\ntwo"}'])
    declared = declare(tmp_path / "data", {"name": "person", "db": server.db, "labels": "auto"})
    take_snapshots(load_servers([declared]), tmp_path / "corpus/fetched")
    ledger = merge_data([declared], tmp_path / "corpus", Settings(), workers=1)
    assert ledger.rows["merged"] == 2
    assert ledger.rows["bad JSON"] == 3
    assert ledger.rows["malformed"] == 2  # an empty row, and none at all
    assert ledger.labels["PERSON"]["entity"] == 2
    problems = [json.loads(line) for line in (tmp_path / "corpus/problems.jsonl").read_text().splitlines()]
    assert [problem["line"] for problem in problems if problem["dataset"] == "person"] == [3, 4, 5, 6, 7]


def test_all_data_sets_are_as_they_were_at_one_moment(server, tmp_path):
    server.add("a", [task(number) for number in range(150)])
    server.add("b", [task(1)])

    def annotate(name: str, tasks: int) -> None:
        if name == "a":
            server.add("b", [task(2)])

    taken = take_snapshots([("a", at(server.db)), ("b", at(server.db))], tmp_path / "fetched", tell=annotate)
    assert (taken["a"].tasks, taken["b"].tasks) == (150, 1)


def test_what_was_taken_is_kept_until_the_snapshot_has_another_name(server, tmp_path, monkeypatch):
    out = tmp_path / "fetched"
    a, b = ("a", at(server.db)), ("b", at(server.db))
    server.add("a", [task(1)])
    server.add("b", [task(2)])
    take_snapshots([a], out, "May")
    before = (out / "a.jsonl").stat()
    server.add("a", [task(3)])
    with monkeypatch.context() as patch:
        patch.setenv(server.variable, "not needed")
        assert take_snapshots([a], out, "May")["a"].tasks == 1
    after = (out / "a.jsonl").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    taken = take_snapshots([a, b], out, "May")
    assert (taken["a"].tasks, taken["b"].tasks) == (1, 1)
    (out / "b.jsonl").write_bytes(task(4) + b"\n")  # by hand
    assert take_snapshots([a, b], out, "May") == taken
    assert (out / "b.jsonl").read_bytes() == task(2) + b"\n"
    assert take_snapshots([a], out, "May").keys() == {"a"}  # b isn't declared for a while
    server.add("b", [task(5)])
    assert take_snapshots([a, b], out, "May") == taken
    assert take_snapshots([a], out, "June")["a"].tasks == 2
    assert sorted(path.name for path in out.iterdir()) == ["a.jsonl", "digests.json"]


def test_nothing_can_be_written(server):
    with pytest.raises(InputError, match=r"(?i)read.?only"), reading(at(server.db)) as connection:
        connection.execute(sqlalchemy.text("insert into link (example_id, dataset_id) values (1, 1)"))


def test_an_earlier_snapshot_stays_where_one_fails(server, tmp_path, monkeypatch):
    server.add("person", [task(1)])
    take_snapshots([("person", at(server.db))], tmp_path / "fetched")
    with pytest.raises(InputError, match="it has no data set 'persons', but 'person', 'person-anna'; correct"):
        take_snapshots([("person", at(server.db)), ("persons", at(server.db))], tmp_path / "fetched", "2")
    server.run("drop table link")
    with pytest.raises(InputError, match=r"isn't Prodigy's schema.* found are: dataset, example;"):
        take_snapshots([("person", at(server.db))], tmp_path / "fetched", "2")
    monkeypatch.setenv(server.variable, "wrong-42")
    with pytest.raises(InputError, match=f"check user.*{server.variable}") as refused:
        take_snapshots([("person", at(server.db))], tmp_path / "fetched", "2")
    assert "wrong-42" not in str(refused.value)
    assert (tmp_path / "fetched/person.jsonl").read_bytes() == task(1) + b"\n"
    assert [path.name for path in tmp_path.iterdir()] == ["fetched"]


@pytest.mark.long
def test_the_password_is_in_no_file_and_in_nothing_printed(server, tmp_path):
    server.add("person", [task(number) for number in range(30)])
    declared = declare(tmp_path / "data", {"name": "person", "db": server.db, "labels": ["PERSON"]})
    printed = b""
    for command in (
        ["scripts.fetch_prodigy", str(declared), str(tmp_path / "corpus/fetched")],
        ["scripts.merge", str(declared), str(tmp_path / "corpus"), "--workers", "1"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, check=True)
        printed += done.stdout + done.stderr
    assert b"30 tasks" in printed
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != declared]
    assert len(files) > 5
    for content in (printed, *(path.read_bytes() for path in files)):
        assert PASSWORD.encode() not in content
        assert b"4711" not in content
        assert f"{USER}@".encode() not in content


@pytest.mark.long
def test_memory_does_not_grow_with_the_tasks(server, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    filler = json.dumps({"text": "x" * 50_000}).encode()
    server.add("small", [filler] * 20)
    server.add("large", [filler] * 3_000)
    peaks = {}
    for name in ("small", "large"):
        declared = declare(tmp_path / name, {"name": name, "db": server.db, "labels": ["A"]})
        peaks[name] = measure("scripts.fetch_prodigy", str(declared), str(tmp_path / name / "fetched")).peak_pss
    assert (tmp_path / "large/fetched/large.jsonl").stat().st_size > 150_000_000
    # What is held at a time, twice, and not the 150 MB.
    assert peaks["large"] - peaks["small"] < 30 * 2**20


@pytest.mark.parametrize(
    ("db", "message"),
    [
        ("postgresql://anna:s3cr3t@box/prodigy", "its address can't be read, or has a password in it, .*PGPASSWORD"),
        ("mysql://anna:s3cr3t/@:1@box/prodigy", "its address can't be read"),
        ("postgresql://anna:1s3cr3t?x@box/prodigy", "its address can't be read"),
        ("mysql://anna@box/prodigy?passwd=s3cr3t", "mysql://box/prodigy: behind .* set a password as MYSQL_PWD"),
        (
            "postgresql://box/prodigy?sslPassword=s3cr3t",
            "postgresql://box/prodigy: behind .* sslrootcert; take",
        ),
        ("oracle://anna:s3cr3t@box/prodigy", "set it as PGPASSWORD or MYSQL_PWD"),
        ("sqlite:///home/anna/prodigy.db", "write postgresql://.* or the path of an SQLite file"),
        ("postgresql://anna@box", "its address can't be read, .*; write postgresql://user@host/database"),
        ("postgresql://[box/prodigy", "its address can't be read"),
        ("postgresql://anna@box:port/prodigy", "its address can't be read"),
    ],
)
def test_wrong_addresses_are_refused_without_repeating_a_password(db, message, tmp_path):
    with pytest.raises(InputError, match=f"data set 'person': .*{message}") as refused:
        load_servers([declare(tmp_path, {"name": "person", "db": db, "labels": ["PERSON"]})])
    assert "s3cr3t" not in str(refused.value)
    with pytest.raises(InputError, match=message):
        load_datasets([tmp_path / "datasets.yml"])


def test_a_server_that_is_not_there(tmp_path):
    pytest.importorskip("sqlalchemy")
    with pytest.raises(InputError, match=r"postgresql://127.0.0.1:1/prodigy: .*refused.*; check user, host"):
        take_snapshots([("person", at("postgresql://anna@127.0.0.1:1/prodigy"))], tmp_path / "fetched")
    with pytest.raises(InputError, match=r"mysql://127.0.0.1:1/prodigy: .*refused.*; check user, host"):
        take_snapshots([("person", at("mysql://anna@127.0.0.1:1/prodigy"))], tmp_path / "fetched")
    assert not any(tmp_path.iterdir())


def test_what_the_driver_can_not_use_is_an_error_of_the_address(tmp_path):
    with pytest.raises(InputError, match=r"^mysql://127.0.0.1:1/prodigy: .*; correct its options"):
        take_snapshots([("person", at("mysql://127.0.0.1:1/prodigy?ssl_ca=/no/ca.pem"))], tmp_path / "fetched")
    with pytest.raises(InputError, match=r"^postgresql://127.0.0.1:1/prodigy: .*sslmode.*\*\*\*"):
        take_snapshots([("person", at("postgresql://127.0.0.1:1/prodigy?sslmode=ful"))], tmp_path / "fetched")


def test_what_is_to_be_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(InputError, match=re.escape('pip install sqlalchemy "psycopg[binary]"')):
        take_snapshots([("person", at("postgresql://anna@localhost/prodigy"))], tmp_path / "fetched")


def test_a_snapshot_is_of_the_database_that_is_declared(tmp_path):
    db, fetched = "postgresql://box/prodigy", tmp_path / "fetched"
    declared = declare(tmp_path, {"name": "person", "db": "postgresql://anna@box/prodigy", "labels": ["PERSON"]})
    with pytest.raises(InputError, match="has no snapshot of it; take one: weasel run fetch-prodigy"):
        load_datasets([declared], fetched)
    fetched.mkdir()
    snapshot = {"db": db, "snapshot": "", "file": "person.jsonl", "tasks": 1, "sha256": ""}
    for content, message in (
        ('{"person": 1}', "digests.json: Expected `object`.*take one"),
        (json.dumps({"place": snapshot}), "has only 'place'; take one"),
        (json.dumps({"person": snapshot | {"db": "mysql://box/other"}}), "is of another database; take one"),
        (json.dumps({"person": snapshot}), "it names 'person.jsonl', which isn't there"),
        (
            json.dumps({"person": snapshot | {"file": "../datasets.yml"}}),
            "it names '../datasets.yml', which isn't there",
        ),
    ):
        (fetched / "digests.json").write_text(content)
        with pytest.raises(InputError, match=message):
            load_datasets([declared], fetched)
    (fetched / "digests.json").write_text(json.dumps({"person": snapshot}))
    (tmp_path / "cache").write_bytes(task(1) + b"\n")
    (fetched / "person.jsonl").symlink_to(tmp_path / "cache")  # as DVC may have it
    assert find_snapshot("person", at(db), fetched) == fetched / "person.jsonl"
    (dataset,) = load_datasets([declared], fetched)
    assert dataset.files == (fetched / "person.jsonl",)
    assert not dataset.database


def test_a_name_that_comes_twice_is_refused(tmp_path):
    one = {"name": "person", "db": "postgresql://anna@box/prodigy", "labels": ["PERSON"]}
    with pytest.raises(InputError, match="'person' is declared twice"):
        load_servers([declare(tmp_path, one, one | {"db": "mysql://anna@box/prodigy"})])


def test_nothing_on_a_server_is_an_empty_snapshot(tmp_path):
    declared = declare(tmp_path, {"name": "person", "path": "person.jsonl", "labels": ["PERSON"]})
    command = [sys.executable, "-m", "scripts.fetch_prodigy", str(declared), str(tmp_path / "fetched")]
    environment = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    assert "nothing to fetch" in done.stdout
    assert (tmp_path / "fetched/digests.json").read_text() == "{}\n"

import os
import sqlite3

import pytest

from labelwise.base.errors import InputError
from labelwise.sources import json_rows, prodigy
from tests.conftest import task

ROWS = [task(f"text {n} cat", (0, 4)) for n in range(9)]


@pytest.mark.parametrize("seconds", [0, -1, 10**6])
def test_a_file_that_changed_is_read_again_whatever_its_time(merging, seconds):
    merging.add("a", ["A"], ROWS)
    path = merging.root / "tasks/a.jsonl"
    merging.run()
    before, status = merging.files(), path.stat()
    with path.open("r+b") as file:
        file.writelines(path.read_bytes().splitlines(keepends=True)[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + seconds * 10**9))
    assert (path.stat().st_ino, path.stat().st_size) == (status.st_ino, status.st_size)
    merging.run()
    merging.run("fresh")
    assert merging.files() == merging.files("fresh")
    assert merging.files() != before


def append(path):
    with path.open("a") as file:
        file.write('{"text": "one more"}\n')


def replace(path):
    other = path.with_name("other")
    other.write_text('{"text": "another file"}\n' * 99)
    other.rename(path)


def rewrite(path):
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b'{"text": "as long"}\n')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.guarantee("changing-source")
@pytest.mark.parametrize("change", [append, replace, rewrite, os.unlink])
@pytest.mark.parametrize("after", [5, 9])
def test_a_file_that_changes_while_it_is_read_is_an_error_that_names_it(merging, monkeypatch, change, after):
    merging.add("b", ["A"], [{"text": "one", "spans": []}])
    merging.run()
    before = merging.files()
    merging.add("a", ["A"], ROWS)
    path = merging.root / "tasks/a.jsonl"
    parse_row, read = json_rows.parse_row, []

    def read_and_change(line, row, *how):
        read.append(row)
        if len(read) == after:
            change(path)
        return parse_row(line, row, *how)

    with monkeypatch.context() as patch:
        patch.setattr(json_rows, "parse_row", read_and_change)
        with pytest.raises((InputError, FileNotFoundError), match=r"a\.jsonl"):
            merging.run()
    assert merging.files() == before
    if change is append:
        merging.run()
        merging.run("fresh")
        assert merging.files() == merging.files("fresh")


@pytest.mark.guarantee("changing-source")
def test_a_database_that_changes_while_it_is_read_is_read_as_it_was(merging, monkeypatch):
    (merging.root / "tasks").mkdir()
    connection = sqlite3.connect(merging.root / "tasks/p.db")
    connection.executescript(
        "pragma journal_mode = wal; create table dataset (id, name); create table example (id, content);"
        "create table link (example_id, dataset_id); insert into dataset values (1, 'a');"
    )

    def insert(text):
        number = connection.execute("select count(*) from example").fetchone()[0] + 1
        connection.execute("insert into example values (?, ?)", (number, f'{{"text": "{text}"}}'))
        connection.execute("insert into link values (?, 1)", (number,))
        connection.commit()

    for text in ("one", "two"):
        insert(text)
    merging.declared.append({"name": "a", "db": "p.db", "labels": ["A"]})
    merging.add("b", ["A"], ROWS[:1])
    with monkeypatch.context() as patch:
        parse = prodigy.parse_row
        patch.setattr(prodigy, "parse_row", lambda *args: insert("later") or parse(*args))
        assert merging.run().datasets["a"]["rows"] == 2
    assert merging.run().datasets["a"]["rows"] == 4
    connection.close()

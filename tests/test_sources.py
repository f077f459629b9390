"""What a data set can be read from."""

import gzip
import json
import sqlite3

import pytest
import spacy
from backports import zstd
from spacy.tokens import DocBin

from labelwise.errors import InputError
from labelwise.sources import read_items


def read(*args, **kwargs) -> list[tuple]:
    """Line, text or problem of each row."""
    items = list(read_items(*args, **kwargs))
    return [(item.line, item.task.text if item.task else item.problem) for item in items if item.task or item.problem]


def test_bad_rows_cost_nothing_and_lines_are_counted(tmp_path):
    rows = ['{"text": "one"}', "{oops", "", '{"text": 3}', '{"html": "x"}', '{"text": " "}', '{"text": "\\u00e9"}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    assert read(tmp_path / "a.jsonl") == [
        (1, "one"),
        (2, "bad JSON"),
        (4, "malformed: Expected `str | null`, got `int` - at `$.text`"),
        (5, "no text"),
        (6, "no text"),
        (7, "é"),
    ]


def test_bytes_that_are_no_text_are_bad_json(tmp_path):
    rows = [b'\xef\xbb\xbf{"text": "one"}', b'{"text": "\xff"}', b'{"text": "two", "meta": ' + b"[" * 5000]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(rows))
    assert read(tmp_path / "a.jsonl") == [(1, "one"), (2, "bad JSON"), (3, "bad JSON")]


@pytest.mark.parametrize("width", range(1, 40))
def test_every_line_is_in_one_part_wherever_it_is_cut(tmp_path, width):
    rows = [json.dumps({"text": "x" * n}) for n in (1, 2, 30, 4, 5)]
    rows.insert(2, "")
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(rows) + "\n")
    size = path.stat().st_size
    parts = [list(read_items(path, start=start, end=start + width)) for start in range(0, size, width)]
    assert [item.task.text for part in parts for item in part if item.task] == ["x" * n for n in (1, 2, 30, 4, 5)]
    # Lines are counted from each part's beginning, so that those of the parts before can be added.
    assert sum(len(part) for part in parts) == len(rows)
    assert all([item.line for item in part] == list(range(1, len(part) + 1)) for part in parts)


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_compressed_files(tmp_path, suffix, compress):
    data = b'{"text": "one"}\n{oops\n{"text": "three"}\n' * 1000
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compress(data))
    assert read(path)[:4] == [(1, "one"), (2, "bad JSON"), (3, "three"), (4, "one")]
    assert len(read(path)) == 3000
    path.write_bytes(compress(data)[:-9])
    with pytest.raises(InputError, match=r"a\.jsonl\..*can't be read to its end.*make it again"):
        read(path)


def make_database(path, tasks: dict[str, list], extra: str = "") -> None:
    """A database as Prodigy writes it: each answer is linked to its data set and to that of its session."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "create table dataset (id integer primary key, name varchar unique, created integer, meta blob, session int);"
        "create table example (id integer primary key, input_hash bigint, task_hash bigint, content blob);"
        "create table link (id integer primary key, example_id integer, dataset_id integer);" + extra
    )
    for number, (name, rows) in enumerate(tasks.items(), 1):
        for set_id, set_name in ((number, name), (number + 100, f"2020-01-0{number}_12-00-00")):
            connection.execute("insert into dataset values (?, ?, 0, x'', ?)", (set_id, set_name, set_id > 100))
        for row in rows:
            content = row if isinstance(row, bytes) else json.dumps(row).encode()
            example = connection.execute("insert into example values (null, 1, 1, ?)", (content,)).lastrowid
            for set_id in (number, number + 100):
                connection.execute("insert into link values (null, ?, ?)", (example, set_id))
    connection.commit()
    connection.close()


def test_a_prodigy_database_is_read_by_the_name_of_the_data_set(tmp_path):
    path = tmp_path / "prodigy.db"
    make_database(path, {"a": [{"text": "one"}, b"{oops"], "b": [{"text": "two"}, {"text": "three"}]})
    before = path.read_bytes()
    assert read(path, "a") == [(1, "one"), (2, "bad JSON")]
    assert read(path, "b") == [(3, "two"), (4, "three")]
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["prodigy.db"]
    with pytest.raises(InputError, match=r"no data set 'c', but '2020-01-01_12-00-00', .*'a', 'b'; mend its `name`"):
        read(path, "c")


def test_an_example_that_is_linked_twice_is_read_once(tmp_path):
    make_database(tmp_path / "p.db", {"a": [{"text": "one"}]}, extra="insert into link values (99, 1, 1);")
    assert read(tmp_path / "p.db", "a") == [(1, "one")]


def test_other_schemas_are_named(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.executescript("create table example (id integer, text varchar); create table people (name varchar);")
    connection.close()
    with pytest.raises(InputError, match=r"isn't Prodigy's schema.*the tables found are: example, people; export"):
        read(tmp_path / "other.db", "a")
    (tmp_path / "none.db").write_text("no database")
    with pytest.raises(InputError, match=r"none\.db: it can't be read to its end: file is not a database"):
        read(tmp_path / "none.db", "a")
    with pytest.raises(InputError, match=r"this is a database; declare it as `db:`"):
        read(tmp_path / "other.db")


def test_docs_of_other_projects(tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("Jordan drinks tea"), nlp.make_doc("Tea in Jordan"), nlp.make_doc("")]
    docs[0].set_ents([docs[0].char_span(0, 6, "PERSON")])
    docs[1].set_ents([docs[1].char_span(7, 13, "PLACE")], default="missing")
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    whole, part, empty = read_items(tmp_path / "gold.spacy")
    assert [(span.start, span.end, span.label) for span in whole.task.spans] == [(0, 6, "PERSON")]
    assert (whole.task.is_binary, part.task.is_binary) == (None, True)
    assert (empty.line, empty.problem) == (3, "no text")
    (tmp_path / "bad.spacy").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad\.spacy: spaCy can't read it"):
        read(tmp_path / "bad.spacy")


def test_brat_folders(tmp_path):
    (tmp_path / "a.txt").write_text("Add 5 mL of water.")
    (tmp_path / "a.ann").write_text("T1\tAmount 4 8\t5 mL\nT2\tReagent 12 17\tmilk\nR1\tOf Arg1:T1 Arg2:T2\n")
    (tmp_path / "b.txt").write_text("Not annotated")
    (tmp_path / "c.txt").write_bytes(b"\xff")
    (tmp_path / "c.ann").write_text("T1\tAmount 0 1\tx\n")
    items = list(read_items(tmp_path))
    assert [(item.file, item.line, item.problem) for item in items if item.problem] == [
        ("a.ann", 2, "invalid: mention differs: T2\tReagent 12 17\tmilk"),
        ("b.txt", 0, "not annotated: no annotation file"),
        ("c.txt", 0, "malformed: not decodable"),
    ]
    (task,) = (item.task for item in items if item.task)
    assert (task.text, [(span.start, span.end, span.label) for span in task.spans]) == (
        "Add 5 mL of water.",
        [(4, 8, "Amount")],
    )

"""What a data set can be read from."""

import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing

import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from labelwise.corpus.annotation import annotation_of, entities
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.errors import InputError
from labelwise.sources import prodigy_tables
from labelwise.sources.formats import read_items
from tests.conftest import Merging
from tests.merge.test_run import random_datasets, read_docs


def read(*args, **kwargs) -> list[tuple]:
    """Line, text or problem of each row."""
    items = list(read_items(*args, **kwargs))
    return [(item.line, item.task.text if item.task else item.problem) for item in items if item.task or item.problem]


def test_bad_rows_cost_nothing_and_lines_are_counted(tmp_path):
    rows = [b'\xef\xbb\xbf{"text": "one"}', b"{oops", b"", b'{"text": 3}', b'{"html": "x"}', b'{"text": " "}']
    rows += [b'{"text": "\\u00e9"}', b'{"text": "\xff"}', b'{"text": "two", "meta": ' + b"[" * 5000]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(rows))
    assert read(tmp_path / "a.jsonl") == [
        (1, "one"),
        (2, "bad JSON"),
        (4, "malformed: Expected `str | null`, got `int` - at `$.text`"),
        (5, "no text"),
        (6, "no text"),
        (7, "é"),
        (8, "bad JSON"),
        (9, "bad JSON"),
    ]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress)])
def test_compressed_files(tmp_path, suffix, compress):
    data = b'{"text": "one"}\n{oops\n{"text": "three"}\n' * 1000
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compress(data))
    assert read(path)[:4] == [(1, "one"), (2, "bad JSON"), (3, "three"), (4, "one")]
    assert len(read(path)) == 3000
    path.write_bytes(compress(data)[:-9])
    with pytest.raises(InputError, match=r"a\.jsonl\..*can't be read to the end.*make it again"):
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
    with pytest.raises(InputError, match=r"no data set 'c', but '2020-01-01_12-00-00', .*'a', 'b'; correct its `name`"):
        read(path, "c")


def test_a_database_is_read_as_it_was_at_one_moment(tmp_path, monkeypatch):
    path = tmp_path / "p.db"
    make_database(path, {"a": [{"text": "one"}]}, extra="insert into link values (99, 1, 1);")
    check_names = prodigy_tables.check_names

    def annotate(*given):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("insert into example values (2, 1, 1, x'7b7d')")
            connection.execute("insert into link values (null, 2, 1)")
        check_names(*given)

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        monkeypatch.setattr(prodigy_tables, "check_names", annotate)
        assert read(path, "a") == [(1, "one")]
        monkeypatch.undo()
        assert read(path, "a") == [(1, "one"), (2, "no text")]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_rows_of_a_database_that_cannot_be_used_cost_only_themselves(tmp_path, encoding):
    connection = sqlite3.connect(tmp_path / "p.db")
    connection.executescript(
        f"pragma encoding = '{encoding}'; create table dataset (id, name);"
        "create table example (id, content); create table link (example_id, dataset_id);"
        "insert into dataset values ('d', 'a'), (cast(x'ff' as text), cast(x'ff' as text));"
    )
    rows = [(1, '{"text": "one é"}'), (2, b'{"text": "two"}'), ("x", '{"text": "three"}'), (2**32, '{"text": "four"}')]
    rows += [(-1, '{"text": "five"}'), (3, None), (4, 5), (None, '{"text": "six"}'), (1.5, '{"text": "seven"}')]
    connection.executemany("insert into example values (?, ?)", rows)
    connection.execute("insert into example values (6, cast(x'7bff00' as text))")
    connection.execute("insert into link select id, 'd' from example")
    connection.commit()
    connection.close()
    found = read(tmp_path / "p.db", "a")
    malformed = {name: f"malformed: the id {name!r} isn't a number from 0 to 4294967295" for name in ("-1", "1.5", "x")}
    assert set(found) == {
        (1, "one é"),
        (2, "two"),
        *((number, "bad JSON") for number in (3, 4, 6)),
        *((0, problem) for problem in malformed.values()),
        (0, malformed["x"].replace("'x'", "'4294967296'")),
    }
    with pytest.raises(InputError, match="no data set 'b', but"):
        read(tmp_path / "p.db", "b")


def test_other_schemas_are_named(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.executescript("create table example (id integer, text varchar); create table people (name varchar);")
    connection.close()
    with pytest.raises(InputError, match=r"isn't Prodigy's schema.*the tables found are: example, people; export"):
        read(tmp_path / "other.db", "a")
    (tmp_path / "none.db").write_text("no database")
    with pytest.raises(InputError, match=r"none\.db: it can't be read to the end: file is not a database"):
        read(tmp_path / "none.db", "a")
    with pytest.raises(InputError, match=r"this is a database; declare it as `db:`"):
        read(tmp_path / "other.db")


def test_docs_of_other_projects(tmp_path):
    """Tokens with the missing value may be anything, so only what is marked is known."""
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("Jordan drinks tea"), nlp.make_doc("Tea in Jordan"), nlp.make_doc("")]
    docs[0].set_ents([docs[0].char_span(0, 6, "PERSON")])
    docs[1].set_ents([docs[1].char_span(7, 13, "PLACE")], default="missing")
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    whole, part, empty = read_items(tmp_path / "gold.spacy")
    assert [(span.start, span.end, span.label) for span in whole.task.spans] == [(0, 6, "PERSON")]
    assert (whole.task.is_binary, part.task.is_binary, empty.problem) == (None, True, "no text")


SC = "other format: ents lacks spans of spans['sc']; declare `spans: sc` or `spans: ents`"
LACKS = "other format: spans['gold'] lacks spans of ents; declare `spans: ents` or `spans: gold`"


@pytest.mark.parametrize(
    ("ents", "groups", "key", "expected"),
    [
        ([], {}, "", []),
        (["E"], {}, "", ["E"]),
        (["E"], {"sc": ["S"]}, "", SC),
        (["E"], {"sc": ["S"]}, "sc", ["S"]),
        ([], {"sc": ["S"]}, "", SC),
        ([], {"sc": ["S"]}, "ents", []),
        ([], {"incorrect_spans": ["I"]}, "", ["I"]),
        (["E"], {"gold": ["G", "E"]}, "", ["G", "E"]),
        (["E"], {"gold": ["G"]}, "", LACKS),
        (["E"], {"gold": ["G"]}, "gold", ["G"]),
        (["E"], {"gold": ["G"]}, "ents", ["E"]),
        (["E"], {}, "sc", "not annotated: it has no spans['sc']"),
    ],
)
def test_the_spans_of_docs_are_those_declared_or_said(tmp_path, ents, groups, key, expected):
    doc = spacy.blank("en")("Jordan drinks tea")
    doc.set_ents([spacy.tokens.Span(doc, 0, 1, label) for label in ents])
    for name, labels in groups.items():
        doc.spans[name] = [spacy.tokens.Span(doc, 0, 1, label) for label in labels]
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "a.spacy")
    (item,) = read_items(tmp_path / "a.spacy", key=key)
    assert (item.problem or [span.label for span in item.task.spans]) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"attrs": []},
        {"attrs": [2**40, 77, 78]},
        {"strings": [float("inf")]},
        {"user_data": [srsly.msgpack_dumps(3)]},
        {"user_data": [b"\xc1"]},
    ],
)
def test_docs_that_are_none(tmp_path, change):
    """spaCy raises exceptions of many kinds, or none."""
    doc = spacy.blank("en").make_doc("Tea in Jordan")
    doc.set_ents([doc.char_span(7, 13, "PLACE")])
    content = srsly.msgpack_loads(zlib.decompress(DocBin(["ENT_IOB", "ENT_TYPE"], True, [doc]).to_bytes()))
    path = tmp_path / "a.spacy"
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))
    assert [len(item.task.spans) for item in read_items(path)] == [len(one.gold) + 1 for one in read_stored_docs(path)]
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content | change)))
    with pytest.raises(InputError, match=r"a\.spacy: spaCy can't read it: .*; make it again"):
        read(path)
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file with entities .*; run the merge again"):
        list(read_stored_docs(path))


def declare(merging, *declared: dict) -> None:
    """Declare data sets that are already there."""
    merging.declared += declared
    (merging.root / "tasks").mkdir(exist_ok=True, parents=True)
    (merging.root / "tasks" / "datasets.yml").write_text(json.dumps(merging.declared))


def view(merging) -> dict:
    """What each Doc says, but for the names of data sets."""
    return {
        text: (
            split,
            annotation_of(doc).accepted,
            entities(doc),
            annotation_of(doc).uncovered,
            [s.label_ for s in doc.spans["incorrect_spans"]],
        )
        for text, (split, doc) in read_docs(merging.root).items()
    }


def test_an_earlier_merge_can_be_merged_again(merging, tmp_path):
    random_datasets(merging, 1)
    rejected = {"text": "0 big", "spans": [{"start": 2, "end": 5, "label": "B"}], "answer": "reject", "_view_id": "ner"}
    merging.add("binary", ["B"], [rejected])
    first = merging.run(docs_per_partition=10)
    again = Merging(tmp_path / "again")
    declare(again, {"name": "earlier", "path": str(merging.root / "corpus"), "labels": ["A", "B", "C"]})
    ledger = again.run()
    assert ledger.rows.keys() == {"merged"}
    assert {text: seen[1:] for text, seen in view(again).items()} == {
        text: seen[1:] for text, seen in view(merging).items()
    }
    assert any(states for _, _, _, states, _ in view(again).values())
    assert [labels for *_, labels in view(again).values() if labels] == [["B"]]
    # Split by split, as the earlier merge had it.
    apart = Merging(tmp_path / "apart")
    for split in ("train", "dev", "test"):
        folder = str(merging.root / "corpus" / split)
        declare(apart, {"name": split, "path": folder, "labels": ["A", "B", "C"], "split": split})
    assert (
        sum(apart.run().texts[split] for split in ("train", "dev", "test"))
        == first.texts.total() - first.texts["no usable answer"]
    )
    assert view(apart) == view(merging)


def test_all_kinds_of_files_are_the_same_data_set(tmp_path):
    rows = [{"text": f"text {i} cat", "spans": [{"start": 0, "end": 4, "label": "A"}]} for i in range(30)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    made = []
    for path, files in {
        "a.jsonl": {"a.jsonl": data},
        "a.jsonl.gz": {"a.jsonl.gz": gzip.compress(data)},
        "a-*.jsonl": {f"a-{number}.jsonl": b"\n".join(data.splitlines()[number::3]) for number in range(3)},
        "p.db": {},
    }.items():
        merging = Merging(tmp_path / path.replace("*", ""))
        where = {"db": path} if path == "p.db" else {"path": path}
        declare(merging, {"name": "a", **where, "labels": ["A"]})
        for name, content in files.items():
            (merging.root / "tasks" / name).write_bytes(content)
        if path == "p.db":
            make_database(merging.root / "tasks/p.db", {"other": [{"text": "other"}], "a": rows})
        merging.run(docs_per_partition=10)
        made.append(merging.files())
        assert made[-1].pop("places.jsonl")  # which has the files' names
    assert all(other == made[0] for other in made)
    assert json.loads(made[0]["manifest.json"])["datasets"] == {"a": 30}


def test_files_whose_name_hides_what_they_are_are_named(tmp_path):
    path = tmp_path / "a.jsonl"
    for content, message in (
        (gzip.compress(b"{}"), r"suffix \.gz"),
        ("{}".encode("utf-16"), "save it as UTF-8"),
        (b"PK\3\4", r"a\.jsonl: this is a ZIP file; unpack it"),
        (b"SQLite format 3\0", "this is a database; declare it as `db:`"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read(path)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"path": "empty"}, r"has no \.spacy file; .* folder/\*\.jsonl"),
        ({"path": "a.jsonl", "spans": "sc"}, r"`spans` is of \.spacy files; leave it out"),
        ({"path": "a.jsonl", "text": "body"}, r"`text` is of \.json files; leave it out"),
        ({"path": "a.jsonl", "db": "p.db"}, "needs either a path or a db;"),
        ({}, "needs either a path or a db;"),
        ({"path": "a\0.jsonl"}, r"datasets\.yml: data set .a.: no path can have the character .*; correct"),
        ({"path": "none-*.jsonl"}, r"no file matches .*none-\*\.jsonl"),
        ({"db": "none.db"}, r"there is no file .*none\.db"),
    ],
)
def test_wrong_sources(merging, declared, message):
    declare(merging, {"name": "a", "labels": ["A"], **declared})
    (merging.root / "tasks/empty").mkdir()
    (merging.root / "tasks/a.jsonl").touch()
    with pytest.raises((InputError, FileNotFoundError), match=message):
        merging.run()


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_rows_end_as_prodigy_has_them_end(tmp_path, end):
    """As in Python's text files, CR alone ends a row, too."""
    rows = ['{"text": "one"}', "", "{oops", '{"text": "four\\r"}', '{"text": "five"}']
    path = tmp_path / "a.jsonl"
    path.write_bytes(("\ufeff" + end.join(rows) + end).encode())
    assert read(path) == [(1, "one"), (3, "bad JSON"), (4, "four\r"), (5, "five")]
    good = [row for row in rows if row != "{oops"]
    path.write_bytes(end.join(good).encode())
    assert [text for _, text in read(path)] == [row["text"] for row in srsly.read_jsonl(path)]


def user_data(**data) -> spacy.tokens.Doc:
    doc = spacy.blank("xx")("one two")
    doc.user_data["labelwise"] = {"gold": [[0, 3, "A", ["x"]]], "rejected": [], **data}
    return doc


@pytest.mark.parametrize(
    "data",
    [
        *({"uncovered": {"A": "some"}}, {"uncovered": ["A"]}, {}),
        {"uncovered": {}, "gold": [[0, 1]]},
    ],
)
def test_a_doc_that_says_nonsense_of_its_annotation_costs_only_itself(tmp_path, data):
    docs = [user_data(**data), user_data(uncovered={})]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    (bad, problem), good = read(tmp_path / "a.spacy")
    assert (bad, good) == (1, (2, "one two"))
    assert problem.startswith("malformed: its user data: ")
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file with entities .*; run the merge again"):
        list(read_stored_docs(tmp_path / "a.spacy"))


# Texts of 1 to 30 words, each of which is an entity.
MANY = [" ".join(f"word{number}" for number in range(length)) for length in range(1, 31)]


def words_of(text: str) -> list[tuple[int, int, str]]:
    """The words as spans, with labels in turn."""
    return [(*word.span(), "ABC"[number % 3]) for number, word in enumerate(re.finditer(r"\S+", text))]


def result(start: int, end: int, label: str) -> dict:
    value = {"start": start, "end": end, "labels": [label]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def json_lines(make: Callable[[str], dict]) -> Callable[[], str]:
    return lambda: "".join(json.dumps(make(text)) + "\n" for text in MANY)


MANY_AS = {
    "prodigy.jsonl": json_lines(
        lambda text: {"text": text, "spans": [{"start": s, "end": e, "label": label} for s, e, label in words_of(text)]}
    ),
    "doccano.jsonl": json_lines(lambda text: {"text": text, "label": words_of(text)}),
    "relations.jsonl": json_lines(
        lambda text: {
            "text": text,
            "entities": [{"start_offset": s, "end_offset": e, "label": label} for s, e, label in words_of(text)],
        }
    ),
    "tags.jsonl": json_lines(
        lambda text: {"tokens": text.split(), "ner_tags": [f"B-{label}" for *_, label in words_of(text)]}
    ),
    "a.conll": lambda: "\n".join(
        "".join(f"{text[start:end]} B-{label}\n" for start, end, label in words_of(text)) for text in MANY
    ),
    "studio.json": lambda: json.dumps(
        [
            {
                "id": n,
                "data": {"text": text},
                "annotations": [{"id": n, "result": [result(*s) for s in words_of(text)]}],
            }
            for n, text in enumerate(MANY)
        ]
    ),
}


@pytest.mark.parametrize("name", MANY_AS)
def test_nothing_of_a_file_is_lost_however_much_there_is(tmp_path, name):
    (tmp_path / name).write_text(MANY_AS[name]())
    tasks = [item.task for item in read_items(tmp_path / name)]
    assert [task.text for task in tasks] == MANY
    assert [[(span.start, span.end, span.label) for span in task.spans] for task in tasks] == list(map(words_of, MANY))

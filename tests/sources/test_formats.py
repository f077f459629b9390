import gzip
import json
import sqlite3
import sys
from collections import Counter

import pytest
import spacy
from spacy.tokens import DocBin, Span

from labelwise.annotations import Problem, Task
from labelwise.base.errors import InputError
from labelwise.corpus.annotation import annotation_of
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.datasets.declarations import load_datasets
from labelwise.sources.formats import read_items
from tests.conftest import Merging, task
from tests.merge.test_merge_data import random_datasets
from tests.sources.reading import make_database, read, write, write_parquet


def texts_of(path, *args) -> list[tuple]:
    items = [(item.line, item.text if isinstance(item, Task) else str(item)) for item in read_items(path, *args)]
    return [(line, "bad JSON" if text.startswith("bad JSON: ") else text) for line, text in items]


@pytest.mark.guarantee("one-bad-line")
@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_bad_rows_cost_nothing_and_lines_are_counted(tmp_path, end, suffix):
    rows = [b'\xef\xbb\xbf{"text": "one"}', b"{oops", b"", b'{"text": 3}', b'{"html": "x"}', b'{"text": " "}']
    rows += [b'{"text": "\\u00e9\\r"}', b'{"text": "\xff"}', b'{"text": "two", "meta": ' + b"[" * 5000]
    content = end.join(rows)
    path = write(tmp_path / f"a.jsonl{suffix}", gzip.compress(content) if suffix else content)
    assert texts_of(path) == [
        *((1, "one"), (2, "bad JSON"), (4, "malformed: its `text` isn't a string: write each text as a row")),
        *((5, "no text: its keys are html"), (6, "no text"), (7, "é\r"), (8, "bad JSON"), (9, "bad JSON")),
    ]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_a_database_is_read_by_the_name_of_the_data_set_and_a_bad_row_costs_itself(tmp_path, encoding):
    connection = sqlite3.connect(path := tmp_path / "p.db")
    connection.executescript(
        f"pragma encoding = '{encoding}'; create table dataset (id, name);"
        "create table example (id, content); create table link (example_id, dataset_id);"
        "insert into dataset values ('d', 'a'), ('e', 'b'), (cast(x'ff' as text), cast(x'ff' as text));"
    )
    rows = [(1, '{"text": "one é"}'), (2, b'{"text": "two"}'), (3, None), (4, 5), (None, '{"text": "six"}')]
    connection.executemany("insert into example values (?, ?)", [*rows, ("x", "{}"), (2**32, "{}"), (1.5, "{}")])
    connection.execute("insert into example values (6, cast(x'7bff00' as text))")
    connection.execute("insert into link select id, 'd' from example union select id, 'e' from example where id = 1")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert set(texts_of(path, "a")) == {
        *((1, "one é"), (2, "two"), (3, "bad JSON"), (4, "bad JSON"), (6, "bad JSON")),
        *(
            (0, f"malformed: the id {name!r} isn't a number from 0 to 4294967295")
            for name in ("4294967296", "1.5", "x")
        ),
    }
    assert texts_of(path, "b") == [(1, "one é")]
    with pytest.raises(InputError, match=r"no dataset 'c', but .*'a', 'b'.*; correct its `name`, or delete the entry"):
        texts_of(path, "c")
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (before, [path]), "nothing is written"


OPENED: Counter[str] = Counter()
sys.addaudithook(lambda event, args: OPENED.update([str(args[0])]) if event == "open" else None)


@pytest.mark.parametrize(
    ("name", "content", "times"),
    [
        ("a.jsonl", [{"text": "Add", "spans": [{"start": 0, "end": 3, "label": "A"}]}], 1),
        ("a.jsonl", [{"text": "\U0001f600 Add", "label": [[3, 6, "A"]]}], 1),
        ("a.jsonl.gz", gzip.compress(b'{"text": "Add"}', mtime=0), 1),
        ("a.json", [{"data": {"text": "Add"}, "annotations": [{"result": []}]}], 1),
        ("a.conll", "Add B-A\n", 2),
        ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n#Text=Add\n1-1\t0-3\tAdd\t\n", 2),
    ],
)
def test_a_file_is_opened_once_or_twice(tmp_path, name, content, times):
    path = write(tmp_path / name, content)
    OPENED.clear()
    assert len(read(path)) == 1
    assert OPENED[str(path)] == times


def database(script: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    return connection.serialize()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"\x1f\x8b\x08\0", r"compress that as \.jsonl\.gz"),
        ("a.jsonl", "{}".encode("utf-16"), "save it as UTF-8"),
        ("a.jsonl", b"PK\3\4", r"a\.jsonl: this is an archive; unpack it"),
        ("a.jsonl", b"SQLite format 3\0", "this is a database; declare it as `db:`"),
        ("a.jsonl.gz", gzip.compress(b"{}", mtime=0)[:-9], r"a\.jsonl\.gz: it can't be read to the end.*make it again"),
        (
            "other.db",
            database("create table example (id integer, text varchar); create table people (name varchar);"),
            r"isn't Prodigy's schema.*the tables found are: example, people; export",
        ),
        ("a.parquet", b"PAR1 something", r"a\.parquet: it can't be read as Parquet"),
        ("none.db", b"no database", r"none\.db: it can't be read to the end: file is not a database"),
        *(
            ("a.json", content, r"a\.json: it isn't one JSON array \(.*\); make it again, or write JSONL")
            for content in (b"[1]\n[2]", b'["a, b]', b'[{"id": 1}')
        ),
        ("a.json", b'{\n  "id": 1}', r"a\.json: it is one JSON object; write an array of tasks, or JSONL"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, content, dataset="a" if name.endswith(".db") else "")


SC = "unsupported format: ents lacks spans of spans['sc']; declare `spans: sc` or `spans: ents`"
LACKS = "unsupported format: spans['gold'] lacks spans of ents; declare `spans: ents` or `spans: gold`"


@pytest.mark.parametrize(
    ("ents", "groups", "key", "expected"),
    [
        ([], {}, "", []),
        (["E"], {}, "", ["E"]),
        (["E"], {"sc": ["S"]}, "", SC),
        (["E"], {"sc": ["S"]}, "sc", ["S"]),
        ([], {"sc": ["S"]}, "ents", []),
        ([], {"incorrect_spans": ["I"]}, "", ["I"]),
        (["E"], {"gold": ["G", "E"]}, "", ["G", "E"]),
        (["E"], {"gold": ["G"]}, "", LACKS),
        (["E"], {"gold": ["G"]}, "ents", ["E"]),
        (["E"], {}, "sc", "not annotated: it has no spans['sc']"),
    ],
)
def test_the_spans_of_docs_are_those_declared_or_said(tmp_path, ents, groups, key, expected):
    docs = [spacy.blank("xx")("Jordan drinks tea") for _ in range(2)]
    for doc, default in zip(docs, ("outside", "missing"), strict=True):
        doc.set_ents([Span(doc, 0, 1, label) for label in ents], default=default)
        for name, labels in groups.items():
            doc.spans[name] = [Span(doc, 0, 1, label) for label in labels]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    whole, part = read_items(tmp_path / "a.spacy", key=key)
    for item in (whole, part):
        assert (str(item) if isinstance(item, Problem) else [span.label for span in item.spans]) == expected
    if isinstance(whole, Task):
        assert (whole.kind, part.kind) == ("complete", "binary" if key != "sc" else "complete")


@pytest.mark.parametrize(
    "data", [{"uncovered": {"A": "some"}}, {"uncovered": ["A"]}, {}, {"uncovered": {}, "gold": [[0, 1]]}]
)
def test_a_doc_that_says_nonsense_of_its_annotation_costs_only_itself(tmp_path, data):
    docs = [spacy.blank("xx")("one two") for _ in range(2)]
    for doc, said in zip(docs, (data, {"uncovered": {}}), strict=True):
        doc.user_data["labelwise"] = {"gold": [[0, 3, "A", ["x"]]], "rejected": [], **said}
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "a.spacy")
    problem, good = read(tmp_path / "a.spacy")
    assert problem.startswith("malformed: its user data: ")
    assert good == ("one two", [("one", "A")])
    with pytest.raises(InputError, match=r"a\.spacy: not a \.spacy file with entities .*; run the merge again"):
        list(read_stored_docs(tmp_path / "a.spacy"))


def view(merging) -> dict:
    view = {}
    for file in (merging.root / "corpus").glob("*/*.spacy"):
        for doc in read_stored_docs(file):
            said, rejected = doc.annotation, [doc.strings[label] for *_, label in doc.rejected]
            view[doc.text] = file.parent.name, said.accepted, said.rejected, doc.entities(), said.uncovered, rejected
    return view


def test_an_earlier_merge_can_be_merged_again(merging, tmp_path):
    random_datasets(merging, 1, texts=30)
    merging.add("binary", ["B"], [task("0 big", (2, 5, "B"), (3, 5, "B"), answer="reject", _view_id="ner")])
    first = merging.run(docs_per_partition=10)
    earlier = view(merging)
    assert any(states for *_, states, _ in earlier.values())
    assert [labels for *_, labels in earlier.values() if labels] == [["B"]]
    assert first.spans["misaligned"] > first.spans["rejected, misaligned"] == 1
    again, apart = Merging(tmp_path / "again"), Merging(tmp_path / "apart")
    again.add("earlier", ["A", "B", "C"], [], path=str(merging.root / "corpus"), expect_losses=True)
    once = again.run()
    assert once.rows.keys() == {"merged"}
    assert once.spans["misaligned"] == first.spans["misaligned"]
    assert {text: seen[1:] for text, seen in view(again).items()} == {text: seen[1:] for text, seen in earlier.items()}
    for split in ("train", "dev", "test"):
        entry = {"path": str(merging.root / "corpus" / split), "split": split, "expect_losses": True}
        apart.add(split, ["A", "B", "C"], [], **entry)
    assert apart.run().texts.total() == first.texts.total() - first.texts["no usable answer"]
    assert view(apart) == earlier


def result(start: int, end: int, label: str) -> dict:
    return {"type": "labels", "value": {"start": start, "end": end, "labels": [label]}}


# Texts of 1 to 30 words, all of them entities.
MANY = [" ".join(f"word{number}" for number in range(length)) for length in range(1, 31)]
SPANS = {
    text: [(text.index(word), text.index(word) + len(word), "ABC"[n % 3]) for n, word in enumerate(text.split())]
    for text in MANY
}
TAGGED = [{"tokens": text.split(), "ner_tags": [f"B-{label}" for *_, label in SPANS[text]]} for text in MANY]
PRODIGYS = [task(text, *SPANS[text]) for text in MANY]
MANY_AS = {
    "prodigy.jsonl": PRODIGYS,
    "doccano.jsonl": [{"text": text, "label": SPANS[text]} for text in MANY],
    "tags.jsonl": TAGGED,
    "a.conll": "\n".join("".join(f"{text[s:e]} B-{label}\n" for s, e, label in SPANS[text]) for text in MANY),
    "studio.json": [
        {"id": n, "data": {"text": text}, "annotations": [{"id": n, "result": [result(*s) for s in SPANS[text]]}]}
        for n, text in enumerate(MANY)
    ],
    "zipped.jsonl.gz": gzip.compress("".join(json.dumps(row) + "\n" for row in PRODIGYS).encode()),
    "one-*.jsonl": "",
    "table.parquet": "",
    "prodigy.db": "",
}


@pytest.mark.guarantee("outcomes")
@pytest.mark.parametrize("name", MANY_AS)
def test_nothing_of_a_file_is_lost_however_much_there_is(merging, name):
    folder = merging.root / "tasks"
    merging.add("a", ["A", "B", "C"], [], **({"db": name, "path": None} if name.endswith(".db") else {"path": name}))
    if name == "prodigy.db":
        make_database(folder / name, {"other": [{"text": "other"}], "a": PRODIGYS})
    elif name == "table.parquet":
        write_parquet(folder / name, TAGGED)
    elif "*" in name:
        for number in range(3):
            write(folder / name.replace("*", str(number)), PRODIGYS[number::3])
    else:
        write(folder / name, MANY_AS[name])
    assert merging.run(docs_per_partition=10).rows == {"merged": len(MANY)}
    docs = {text: annotation_of(doc).accepted for text, (_, doc) in merging.docs().items()}
    assert docs == {text: set(spans) for text, spans in SPANS.items()}


A = "- {name: a, path: a.jsonl, labels: [A]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- {name: a, path: a.jsonl, labels: []}", "dataset 'a': no `labels`"),
        ("- {name: a, path: a.jsonl, label: [A]}", r"datasets\.yml: .*unknown field `label`|missing required field"),
        (A + ", split: eval}", r"datasets\.yml: Invalid enum value 'eval'"),
        ("[]", "no dataset is declared"),
        ("- {name: a, path: a.jsonl, labels: [B], rename: {A: ' '}}", "'a': `rename` gives 'A' an empty name; give it"),
        (A + ", rename: {A: B}}", "'A' is renamed to 'B', and listed as a label; list"),
        (A + "}\n- {name: a, path: b.jsonl, labels: [A]}", "'a' is declared twice"),
        (A + ", absent: [A]}", "'A' is both in `labels` and `absent`"),
        (A + ", absent: [B]}", "`absent` names 'B', which no dataset has; the labels are A"),
        (A + "}\n- {name: b, path: ./a.jsonl, labels: [A]}", "'a' and 'b' are the same file"),
        ("- {name: a, path: empty, labels: [A]}", r"has no \.spacy file; .* folder/\*\.jsonl"),
        (A + ", spans: sc}", r"`spans` is for \.spacy files; leave it out"),
        (A + ", text: body}", r"`text` is for \.json files; leave it out"),
        (A + ", db: p.db}", "needs either a path or a db;"),
        ("- {name: a, labels: [A]}", "needs either a path or a db;"),
        ('- {name: a, path: "a\\0.jsonl", labels: [A]}', r"dataset .a.: no path can have the character .*; correct"),
        ("- {name: a, path: none-*.jsonl, labels: [A]}", r"no file matches .*none-\*\.jsonl"),
        ("- {name: a, db: none.db, labels: [A]}", r"there is no file .*none\.db"),
        ("- {name: a, db: 'mysql://ann@db/prodigy', labels: [A]}", r"is on a server, .*: prodigy db-out a > a\.jsonl"),
        ("name: a", r"datasets\.yml: Expected `array`, got `object`"),
    ],
)
def test_wrong_declarations_say_what_is_wrong(tmp_path, content, message):
    (tmp_path / "empty").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").touch()
    (tmp_path / "datasets.yml").write_text(content)
    with pytest.raises(InputError, match=message):
        load_datasets([tmp_path / "datasets.yml"])

"""What fuzzing begins with: small files of each kind, which hold what the formats have."""

import json
import sqlite3
import zlib
from collections.abc import Callable
from itertools import combinations

import spacy
from spacy.tokens import Doc, DocBin, Span

from labelwise.corpus.annotation import Annotation, annotate
from tests.conftest import write_docs
from tests.fuzz import json_formats, text_formats
from tests.fuzz.mutate import pack
from tests.fuzz.promises import folder
from tests.fuzz.targets import NO_TEXT

TEXT = "Add 5 mL of a cat's don't, twice."
TASKS = [
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A"}, {"start": 4, "end": 5, "label": "B"}]},
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A", "answer": "reject"}], "_timestamp": 5},
    {"text": TEXT, "spans": [{"start": 12, "end": 17, "label": "C"}], "_view_id": "ner", "answer": "reject"},
    {"text": "e\u0301 \U0001f600\r\n x", "spans": [], "answer": "ignore", "_annotator_id": "ann"},
    {"text": TEXT, "_view_id": "review", "view_id": "ner_manual", "_session_id": "a-ann", "_input_hash": 1},
    {"text": "two", "spans": [{"start": 0, "end": 3, "label": "A"}], "_is_binary": True, "no_missing": True},
    {"text": TEXT, "_labelwise_uncovered": {"A": "partial"}, "_labelwise_document": "d.txt", "meta": {"x": 1}},
]


def rows() -> list[bytes]:
    """Rows of Prodigy's JSONL, after three bytes of options."""
    lines = [json.dumps(task).encode() for task in TASKS]
    pairs = [b"\n".join(pair) for pair in combinations(lines, 2)]
    return [b"\0\x80" + bytes([number]) + pair for number, pair in enumerate(pairs)] + [
        b"\0\x20\xff" + b"\n".join(lines) + b"\n",
        b"abc\xef\xbb\xbf" + lines[0] + b"\n{oops\n\n \n" + lines[1],
        b"\x05\x20\xff" + lines[0] + b"\r\n" + lines[0],
    ]


def brats() -> list[bytes]:
    """Documents: two bytes of options, the text, the annotations."""
    ann = "T1\tA 4 8\t5 mL\nT2\tB 4 5;6 8\t5 mL\nE1\tA:T1\nR1\tX Arg1:T1 Arg2:T2\nA1\tX T1\n#1\tNote T1\tx\n\nstray\n"
    crlf = "\ufeffone\r\n\U0001f600 cat\r\n"
    found = [
        (TEXT, ann),
        (crlf, "T1\tA 0 3\tone\nT2\tA 7 10\tcat\nT3\tB 0 3;7 10\tone cat\n"),
        (TEXT, "T1\tA 40 50\tx\rT2\tA 3 3\t\rT3 A 1 2 x\rT4\tA 5 2\tx\rT5\tA 0 3\tadd\rT6\tA 3 4"),
        ("cat cat  cat", "T1\tA 1 4\tcat\nT2\tA 1 4;5 8\tcat cat\nT1\tA 0 3\tcat\nT1\tA 0 3\tcat\n"),
    ]
    options = (b"\0\xff", b"\x68\0", b"\x22\xff", b"\xd7\0")
    return [head + text.encode() + NO_TEXT + lines.encode() for head in options for text, lines in found] + [
        b"\0\0" + ann.encode()
    ]


def databases() -> list[bytes]:
    """Databases of a few pages."""
    made = []
    for number, encoding in enumerate(("UTF-8", "UTF-16")):
        path = folder() / f"seed-{number}.db"
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.executescript(
            f"pragma page_size = 512; pragma encoding = '{encoding}';"
            "create table dataset (id integer primary key, name varchar unique, created integer, meta blob);"
            "create table example (id integer primary key, input_hash bigint, content blob);"
            "create table link (id integer primary key, example_id integer, dataset_id integer);"
            "insert into dataset values (1, 'a', 0, x''), (2, 'b', 0, x'');"
        )
        for example, task in enumerate(TASKS[:3], 1):
            connection.execute("insert into example values (?, 1, ?)", (example, json.dumps(task).encode()))
            connection.execute("insert into link values (null, ?, 1)", (example,))
        connection.commit()
        connection.close()
        made.append(path.read_bytes())
    return made


def cells() -> list[bytes]:
    """The cells of a database's tables."""
    content = [json.dumps(task) for task in TASKS]
    tables = {
        "dataset": [[1, "a"], [2, "b"], [None, b"\xff"]],
        "example": [[1, content[0]], [2, content[1].encode()], [-1, "x"], [2**32, content[2]], ["x", None], [1.5, 3]],
        "link": [[1, 1], [2, 1], [2, 1], [-1, 1], [2**32, 1], ["x", 1], [1.5, 1], [3, 2]],
    }
    return [pack(tables), pack({**tables, "utf16": True}), pack({"dataset": [[1, "a"]], "example": [], "link": []})]


def docs() -> list[bytes]:
    """`.spacy` files, not compressed, after a byte of options: spaCy's own, with all that Docs have, and a merge's."""
    nlp = spacy.blank("en")
    doc = nlp("Add 5 mL of a cat's fur")
    doc.set_ents([Span(doc, 1, 3, label="A", kb_id="Q1", span_id="x")], default="missing")
    other = Doc(
        nlp.vocab,
        words=["a", "cat", " ", "sat"],
        spaces=[True, True, False, False],
        heads=[1, 3, 1, 3],
        deps=["det", "nsubj", "", "ROOT"],
        tags=["D", "N", "S", "V"],
        pos=["DET", "NOUN", "SPACE", "VERB"],
        morphs=["", "Number=Sing", "", ""],
        lemmas=["a", "cat", " ", "sit"],
        ents=["O", "B-A", "O", "O"],
    )
    doc.spans["gold"] = [doc[1:3], doc[2:3]]
    doc.spans["incorrect_spans"] = [Span(doc, 4, 6, label="B")]
    other.cats["x"] = 0.5
    merged = nlp("Add 5 mL")
    merged.set_ents([Span(merged, 1, 3, label="A")], default="outside")
    merged.spans["gold"] = list(merged.ents)
    merged.spans["incorrect_spans"] = [Span(merged, 0, 1, label="B")]
    gold = [(4, 8, "A", ["one"]), (0, 2, "B", ["two"])]
    annotate(merged, Annotation(gold, [(0, 3, "B")], {"C": "none"}, ["one", "two"]))
    path = folder() / "seed.spacy"
    write_docs([merged, merged], path)
    made = [path.read_bytes()]
    for attrs in (
        ["ORTH", "ENT_IOB", "ENT_TYPE"],
        ["ORTH", "TAG", "HEAD", "DEP", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID", "LEMMA", "MORPH", "POS"],
        ["ORTH", "SENT_START", "ENT_IOB", "ENT_TYPE", "SPACY", "NORM"],
    ):
        made += [DocBin(attrs, True, [one]).to_bytes() for one in (doc, other, merged)]
    return [bytes([number]) + zlib.decompress(content) for number, content in enumerate(made)]


def declarations() -> list[bytes]:
    """Declarations of data sets."""
    return [
        b"- name: a\n  path: a.jsonl\n  labels: [A, B]\n- {name: b, db: p.db, labels: [C], absent: [A], split: test}\n",
        b"- name: c\n  path: '*.jsonl*'\n  labels:\n  - A\n  kind: binary\n- {name: d, path: docs, labels: [A]}\n",
        b"- &a {name: e, path: brat, labels: &l [A]}\n- {<<: *a, name: f, path: up/b.jsonl.gz, labels: *l}\n",
        b"- {name: !!int 1_0, path: !!timestamp 2020-01-02, labels: !!set {A, B}}\n- !!binary aGk=\n- 1:2:3.4\n",
        b'- {"name": "g\\u00e9", "path": "c.spacy", "labels": ["\\x41", "~"], "split": "auto", "kind": "auto"}\n',
        b"- {name: h, path: loop, labels: [A]}\n- {name: i, path: 'empty', labels: []}\n- {name: j, path: '**/[ab]*'}",
    ]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "brat": brats,
    "rows": rows,
    "database": databases,
    "cells": cells,
    "spacy": docs,
    "declarations": declarations,
    "conll": text_formats.conlls,
    "webanno": text_formats.webannos,
    "tags": text_formats.tags,
    "parquet": text_formats.parquets,
    "label-studio": json_formats.label_studios,
    "doccano": json_formats.rows,
}

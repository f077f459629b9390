"""What fuzzing begins with: small files of each kind, which hold what the formats have, by the name of the file."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import spacy
from pyarrow import parquet
from spacy.tokens import Doc, DocBin, Span

from labelwise.corpus.annotation import Annotation, annotate
from tests.conftest import write_docs
from tests.sources.test_formats import make_database

TEXT = "Add 5 mL of a cat's don't, twice."
TASKS: list[Any] = [
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A"}, {"start": 4, "end": 5, "label": "B"}]},
    {"text": TEXT, "spans": [{"start": 4, "end": 8, "label": "A", "answer": "reject"}], "_timestamp": 5},
    {"text": TEXT, "spans": [{"start": 12, "end": 17, "label": "C"}], "_view_id": "ner", "answer": "reject"},
    {"text": "e\u0301 \U0001f600\r\n x", "spans": [], "answer": "ignore", "_annotator_id": "ann"},
    {"text": TEXT, "_view_id": "review", "view_id": "ner_manual", "_session_id": "a-ann", "_input_hash": 1},
    {"text": TEXT, "tokens": [{"text": "Add", "start": 0, "end": 3, "id": 0}], "spans": [], "no_missing": True},
    {"text": TEXT, "_labelwise_uncovered": {"A": "partial"}, "_labelwise_document": "d.txt", "meta": {"x": 1}},
]
# doccano's, tokens and tags, and what contradicts itself.
ROWS: list[Any] = [
    {"id": 1, "text": TEXT, "label": [[4, 8, "A"], [4, 5, "B"]]},
    {"id": 2, "text": "two", "label": [], "entities": [{"id": 7, "label": "A", "start_offset": 0, "end_offset": 3}]},
    {"text": TEXT, "labels": ["A", "B"], "answer": "reject", "_input_hash": 1},
    {"id": "0", "tokens": ["EU", "rejects", "German", "call"], "ner_tags": ["B-A", "O", "B-B", "I-B"]},
    {"tokens": ["a", "", "\U0001f600"], "ner_tags": ["E-C", "I-C", "S-C"]},
    {"data": TEXT, "labels": [[0, 3, "A"]], "predicted": [[0, 3, "A"]], "_labelwise_uncovered": {"B": "none"}},
    {"text": "nothing"},
]
VALUES = [{"start": 4, "end": 8, "labels": ["A"]}, {"start": 0, "end": 3, "text": "Add", "labels": ["B", "C"]}]
RESULTS = [{"id": "1", "type": "labels", "from_name": "l", "to_name": "t", "value": value} for value in VALUES]
STUDIO: list[Any] = [
    {"id": 1, "data": {"text": TEXT}, "annotations": [{"id": 7, "completed_by": 1, "result": RESULTS[:1]}]},
    {"id": 2, "data": {"text": TEXT}, "annotations": [{"was_cancelled": True, "result": []}, {"result": RESULTS}]},
    {"id": 4, "text": TEXT, "annotator": 3, "annotation_id": 5, "label": VALUES, "created_at": "2021-03-09T22:16:08Z"},
    {"id": 5, "data": {"text": "a \U0001f600 cat"}, "predictions": [{"result": RESULTS}], "annotations": []},
]
CONLL = [
    "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-A\nrejects VB O O\nGerman JJ B-NP B-B\ncalls NN I-NP I-B\n\nAnn NNP X S-A\n",
    "# global.columns = ID FORM MISC:NER LEMMA\n# sent_id = 1\n1\tNew York\tB-A\tnew\n2\t#\tO\t#\n\n1\tin\tO\tin\n",
    "#win=now\tB-A\nis\tO\n\n#\tO\n#end document\tB-B\n# x\tU-A\n\nb\tL-A\nc\tI-A\n\n\nd\t_\n",
    "Ann _ _ B-A\r# _ _ O\r\r# id 5b4a domain=train\rBob _ _ I-A\rand _ _ I-B\r10\u00a0000 _ _ E-B\r",
]
HEADER = (
    "#FORMAT=WebAnno TSV 3.3\n#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value\n"
    "#T_SP=custom.Drug|kind\n\n"
)
WEBANNO = [
    HEADER + "#Text=Ann moved to New York .\n1-1\t0-3\tAnn\t_\tPER\t_\t\n1-2\t4-9\tmoved\t_\t_\t_\t\n"
    "1-3\t10-12\tto\t_\t_\tX[3]|Y[4]\t\n1-4\t13-16\tNew\t_\tLOC[1]\tX[3]\t\n1-5\t17-21\tYork\t_\tLOC[1]\t_\t\n"
    "1-6\t22-23\t.\t_\t_\t*\t\n\n#Text=So did Bob\n2-1\t26-28\tSo\t_\t_\t_\t\n2-2\t29-32\tdid\t_\t_\tA\\[1\\]|B\t\n"
    "2-2.1\t30-31\ti\t_\t_\tC\t\n2-3\t33-36\tBob\t*\tPER\t_\t\n",
    HEADER + "#Text=\U0001f600 a\\tb\\\\\n#Text=c\n1-1\t0-2\t\U0001f600\t_\tE\t_\t\n"
    "1-2\t3-7\ta\\tb\\\\\t_\t_\tD\t\n1-3\t8-9\tc\t_\t_\tD\t\n",
]
BRAT = [
    (
        TEXT,
        "T1\tA 4 8\t5 mL\nT2\tB 4 5;6 8\t5 mL\nE1\tA:T1\nR1\tX Arg1:T1 Arg2:T2\n#1\tNote T1\tx\n\nstray\n",
    ),
    ("\ufeffone\r\n\U0001f600 cat\r\n", "T1\tA 0 3\tone\nT2\tA 7 10\tcat\nT3\tB 0 3;7 10\tone cat\n"),
    ("cat cat  cat", "T1\tA 1 4\tcat\nT2\tA 1 4;5 8\tcat cat\nT1\tA 0 3\tcat\rT5\tA 5 2\tx\rT3\tA 3 3\t\n"),
]


def jsonl(rows: list[Any]) -> list[bytes]:
    """Write rows one a line, in two orders."""
    lines = [json.dumps(row).encode() for row in rows]
    return [b"\n".join(lines), b"\r\n".join(reversed(lines)) + b'\n{oops\n{"text": "caf\xe9"}\n\n']


def databases(path: Path) -> list[bytes]:
    """Make Prodigy's tables."""
    make_database(path, {"a": TASKS[:3], "b": []})
    return [path.read_bytes()]


def docs(path: Path) -> list[bytes]:
    """Write `.spacy` files: spaCy's own, with all that Docs have, and a merge's."""
    nlp = spacy.blank("en")
    doc = nlp("Add 5 mL of a cat's fur")
    doc.set_ents([Span(doc, 1, 3, label="A", kb_id="Q1", span_id="x")], default="missing")
    doc.spans["incorrect_spans"] = [Span(doc, 4, 6, label="B")]
    words = ["a", "cat", " ", "sat"]
    other = Doc(nlp.vocab, words=words, spaces=[True, True, False, False], ents=["O", "B-A", "O", "O"])
    merged = nlp("Add 5 mL")
    merged.set_ents([Span(merged, 1, 3, label="A")], default="outside")
    merged.spans["gold"] = list(merged.ents)
    merged.spans["incorrect_spans"] = [Span(merged, 0, 1, label="B")]
    annotate(merged, Annotation([(4, 8, "A", ["one"])], [(0, 3, "B")], {"C": "none"}, ["one", "two"]))
    write_docs([merged, merged], path)
    bins = [DocBin(["ORTH", "TAG", "ENT_IOB", "ENT_TYPE", "SPACY", "NORM"], True, [one]) for one in (doc, other)]
    return [path.read_bytes(), *(one.to_bytes() for one in bins)]


def tables(path: Path) -> list[bytes]:
    """Write a table of tokens and tags."""
    parquet.write_table(pyarrow.Table.from_pylist([row for row in ROWS if "tokens" in row]), path)
    return [path.read_bytes()]


def make_seeds(folder: Path) -> dict[str, list[bytes]]:
    """Make the seeds, by the name of the file that they are written to; a folder is for files on the way."""
    return {
        "prodigy.jsonl": jsonl(TASKS),
        "rows.jsonl": jsonl(ROWS + TASKS),
        "studio.json": [json.dumps(STUDIO).encode(), b"\n".join(json.dumps([one]).encode() for one in STUDIO[:2])],
        "tokens.conll": [text.encode() for text in CONLL],
        "webanno.tsv": [*(text.encode() for text in WEBANNO), WEBANNO[0].replace("\n", "\r\n").encode()],
        "table.parquet": tables(folder / "seed.parquet"),
        "docs.spacy": docs(folder / "seed.spacy"),
        "prodigy.db": databases(folder / "seed.db"),
        "doc.ann": [text.encode() + b"\0\0" + lines.encode() for text, lines in BRAT],
    }

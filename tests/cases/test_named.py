import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from tests.cases.making import jsonl, merge_folder, sentences, table

ONE = sentences(1)[0]
TRAIN_DATA = [[sentence.text, {"entities": sentence.spans}] for sentence in sentences()]
TOKENS = [{"orth": token, "ner": tag} for token, tag in ONE.tagged]
PYTHONS = str([(sentence.text, {"entities": sentence.spans}) for sentence in sentences()])
HYPERTEXT = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 0, "endOffset": 3}
RESULT = {"type": "hypertextlabels", "value": HYPERTEXT | {"hypertextlabels": ["A"]}}
SPACY_2 = [{"id": 0, "paragraphs": [{"raw": "Noa", "sentences": [{"tokens": TOKENS}]}]}]


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("all.jsonl", jsonl([{"text": ONE.text, "label": ONE.spans}]))
    return content.getvalue()


CAS = {
    "%TYPES": {"a.NamedEntity": {"%NAME": "a.NamedEntity", "%SUPER_TYPE": "uima.tcas.Annotation"}},
    "%FEATURE_STRUCTURES": [{"%ID": 2, "%TYPE": "a.NamedEntity", "@sofa": 1, "begin": 0, "end": 3, "value": "PER"}],
}


BIOC = "<?xml version='1.0'?><!DOCTYPE collection SYSTEM 'BioC.dtd'><collection><source>x</source></collection>"


def label_studios(separator: str) -> str:
    rows = [["text", "id", "label", "annotator", "annotation_id"], [ONE.text, "0", '"[{""start"": 0}]"', "1", "0"]]
    return "".join(separator.join(row) + "\n" for row in rows)


def tags(*rows: tuple[str, ...]) -> str:
    return table([rows] * 60)


# The file, its content, the message, and an entry written by hand.
FILES: list[tuple[str, str | bytes, str]] = [
    ("a.json", json.dumps({"classes": ["PER"], "annotations": TRAIN_DATA}), "this is ner-annotator's"),
    ("b.json", json.dumps({"classes": ["PER"], "annotations": TRAIN_DATA}, indent=2), "this is ner-annotator's"),
    ("c.json", json.dumps(SPACY_2), "spacy convert"),
    ("d.jsonl", jsonl([{"pages": [{"text": ONE.text, "spans": ONE.objects()}], "answer": "accept"}]), "it has `pages`"),
    ("e.jsonl", jsonl([{"text": ONE.text, "annotation": ONE.objects()}]), "its spans are under `annotation`"),
    ("f.jsonl", jsonl([{"text": ONE.text, "ner": ONE.spans}]), "its spans are under `ner`"),
    ("g.jsonl", jsonl([{"text": ONE.text, "entities": {"PER": [[0, 3]]}}]), "its spans are under `entities`"),
    (
        "h.jsonl",
        jsonl([{"tokens": ["a"], "entities": [{"type": "A", "start": 0, "end": 1}]}]),
        "its spans count `tokens`",
    ),
    (
        "i.json",
        json.dumps([{"data": {"text": "<p>Noa</p>"}, "annotations": [{"result": [RESULT]}]}]),
        "it marks HTML (HyperText)",
    ),
    ("j.conll", tags(("Noa", "X=y|Case=Nom"), ("ran", "Tense=Past")), "no column has tags"),
    ("k.tsv", tags(("Noa", "B-PER", "B-X"), ("ran", "O", "O")), "columns 2 and 3 have tags"),
    ("k.conll", tags(("Noa", "B-PER", "NN", "B-X"), ("ran", "O", "VB", "O")), "`# global.columns = FORM NER _ _`"),
    ("l.conll", tags(("Noa,B-PER",), ("ran,O",)), "its lines have one column; a line is a token and its tag"),
    (
        "m.conll",
        "".join(f"{sentence.text[5:]}\n{sentence.text}\n" for sentence in sentences()),
        "the number of columns differs",
    ),
    ("n.tsv", "text\tstart\tend\tlabel\n" + tags((ONE.text, "0", "3", "PER")), "most rows have several words"),
    ("o.tsv", "".join(f"{sentence.text}\tnews\n" for sentence in sentences()), "most rows have several words"),
    ("p.tsv", "Ghent\tLOC\nNoa\tPER\n" * 9, "no row is outside (O), and no blank line ends a sentence"),
    (
        "q.tsv",
        "token\ttag\n" + tags(("Noa", "1"), ("ran", "0")),
        "its tags are numbers, such as 1; write the tags' names",
    ),
    ("r.conll", tags(("Noa", "1"), ("Moreau", "2"), ("ran", "0")), "its tags are numbers, such as 2; write the tags'"),
    (
        "t.conll",
        "word PER LOC\n" + table([[("Noa", "B", "O"), ("in", "O", "O"), ("Lyon", "O", "B")]], " "),
        "each label (PER",
    ),
    ("u.tsv", "Token\tPerson\tPlace\n" + tags(("Noa", "1", "0"), ("ran", "0", "0")), "each label (Person, Place)"),
    (
        "s.json",
        json.dumps({"tasks": [{"data": {"text": ONE.text}, "annotations": []}]}),
        "write its list `tasks` alone",
    ),
    ("l.zip", zipped(), "unpack it"),
    ("p.xmi", '<xmi:XMI xmlns:xmi="http://www.omg.org/XMI"/>', "export WebAnno TSV 3 instead"),
    ("q.json", json.dumps(CAS), "this is UIMA's CAS; export WebAnno TSV 3 instead"),
    ("r.json", json.dumps(CAS, indent=2), "this is UIMA's CAS; export WebAnno TSV 3 instead"),
    ("l.xlsx", zipped(), "a sheet; save it as .tsv"),
    ("l.tar.gz", gzip.compress(b""), "this is an archive; unpack it"),
    ("l.conll.gz", gzip.compress(b""), "this is compressed; decompress it"),
    ("m.csv", "Noa,B-PER\n", "or .jsonl (a text with its `spans`: docs/data.md)"),
    ("s.csv", label_studios(","), "this is Label Studio's table, whose spans are JSON in a cell; export JSON instead"),
    ("t.tsv", label_studios("\t"), "this is Label Studio's table"),
    ("u.xml", BIOC, "this is BioC; convert it to brat with the Python library bconv"),
    ("v.xml", "<?xml version='1.0'?>\n<!-- x -->\n<GateDocument version='3'>", "this is GATE's"),
    ("w.xml", "<?xml version='1.0'?>\n<TEI/>", "this is XML; write each text"),
    ("x.txt", "123|t|Noa ran.\n123|a|\n123\t0\t3\tNoa\tPER\n", "this is PubTator; convert it to brat"),
    ("y.conll", "Noa B-PER\n".encode("utf-16"), "this is UTF-16; save it as UTF-8"),
    ("z.json", json.dumps({"version": 1, "data": [{"text": "Noa"}]}), "write its list `data` alone"),
    ("z.jsonl", jsonl([[{"entity": "I-PER", "score": 0.9, "word": "Noa"}]]), "this is a pipeline's output"),
    (
        "aa.json",
        json.dumps({"text": "Noa", "tokens": [{"id": 0}]}, indent=1) * 2,
        "its JSON objects have several lines",
    ),
    (
        "ab.jsonl",
        jsonl([{"text": ONE.text, "prediction": ONE.objects(), "annotation": ONE.objects()}]),
        "its spans are under `annotation`",
    ),
    ("ac.jsonl", jsonl([{"text": ONE.text, "x.suggestion": ONE.objects()}]), "its only spans are predictions, under"),
    (
        "ad.jsonl",
        jsonl({"text": ONE.text, **span} for span in ONE.objects()),
        "it is a single span: write each text once",
    ),
    ("ae.jsonl", jsonl([{"text": ONE.text, "entities": json.dumps(ONE.spans)}]), "`entities` aren't a list of spans"),
    ("af.jsonl", jsonl([{"text": ONE.text, "label": {"PER": {"Noa": [[0, 2]]}}}]), "`label` aren't a list of spans"),
    (
        "ag.json",
        json.dumps([{"data": {"dialogue": [{"text": "Noa"}]}, "annotations": []}]),
        "no text in its data: no value is a string",
    ),
    ("ah.jsonl", jsonl([{"tokens": [{"text": "Noa", "ner": "O"}]}]), "no text: its keys are tokens)"),
    ("ai.py", f"TRAIN_DATA = {PYTHONS}", "a list of Python's; write it"),
    ("aj.txt", PYTHONS, "a list of Python's; write it as JSON"),
    ("ak.conll", PYTHONS, "a list of Python's; write it as JSON"),
    ("al.json", json.dumps({"data": [{"paragraphs": [{"context": ONE.text, "qas": []}]}]}), "this is SQuAD"),
    (
        "am.py",
        f"import spacy\n\nTRAIN_DATA = [\n    ({ONE.text!r}, {{'entities': {ONE.spans}}}),\n]",
        "a list of Python's",
    ),
    ("an.jsonl", f"{{'text': {ONE.text!r}, 'spans': []}}\n", "these are Python's dicts; write each as JSON"),
    ("ao.json", "```json\n[]\n```\n", "Markdown around JSON; delete its lines of ```"),
    (
        "ap.tsv",
        "tokens\tner_tags\n" + "['Noa', 'ran']\t['B-PER', 'O']\n" * 60,
        "its cells are lists of Python's; write rows",
    ),
    ("aq.jsonl", jsonl([{"label": "PER", "pattern": [{"lower": "noa"}]}]), "these are patterns of an EntityRuler"),
    ("ar.json", json.dumps({"_views": {}, "_referenced_fss": {}}), "this is UIMA's CAS; export WebAnno TSV 3 instead"),
    (
        "as.jsonl",
        jsonl([{"text_snippet": {"content": ONE.text}, "annotations": [{"text_extraction": {}}]}]),
        "this is Google AutoML's; write each text",
    ),
    (
        "at.json",
        json.dumps([{"content": "Noa", "externalId": "1", "labels": [{"jsonResponse": {}}]}]),
        "this is Kili's",
    ),
    ("au.ndjson", jsonl([{"data_row": {"row_data": "Noa"}, "projects": {}}]), "this is Labelbox's"),
    ("av.jsonl", jsonl([{"fields": {"text": "Noa"}, "responses": {}}]), "this is Argilla's"),
    ("aw.jsonl", jsonl([{"messages": [{"role": "user", "content": "Noa"}]}]), "this is a chat with a language model"),
    (
        "bj.jsonl",
        jsonl([{"conversations": [{"from": "human", "value": "Noa"}]}]),
        "this is a chat with a language model",
    ),
    ("bk.jsonl", jsonl([{"source": "Noa", "a": {"entities": [{"startOffset": 0}]}}]), "this is SageMaker's"),
    (
        "bl.json",
        json.dumps([{"id": "b", "data": [{"text": "Noa", "alias": "a", "userDefined": True}]}]),
        "this is Dialogflow's",
    ),
    ("bm.json", json.dumps([{"context": "Noa ran", "span_position": ["0;0"]}]), "these are questions about labels"),
    (
        "bn.jsonl",
        jsonl([{"input": {}, "accept": {"text": "Noa"}, "reject": {}, "mapping": {}, "_view_id": "compare"}]),
        "it compares two answers",
    ),
    ("bo.jsonl", jsonl([{"doc_annotation": {}, "token_annotation": {}}]), "these are spaCy's Examples"),
    ("bp.jsonl", jsonl([{"tokens": ["Noa"], "spans": [{"start": 0, "end": 1, "label": "A"}]}]), "spans count `tokens`"),
    ("bu.jsonl", jsonl([json.dumps({"text": ONE.text})]), "a task is an object, not str; decode it: jq -c fromjson"),
    ("bq.json", json.dumps({"text": {"0": "Noa"}, "spans": {"0": ONE.objects()}}), "its `text` isn't a string"),
    ("br.jsonl", jsonl([{"text": ONE.text, "spans": json.dumps(ONE.objects())}]), "its `spans` aren't a list of spans"),
    ("bs.jsonl", jsonl([{"sentence": ONE.text, "entities": ONE.spans}]), "if `sentence` is the text, name it `text`"),
    ("bt.jsonl", jsonl([{"words": ["Noa"], "entities": ["B-PER"]}]), "its `entities` are tags: write a list of"),
    ("bv.jsonl", jsonl([[{"text": "Noa"}], [{"text": "ran"}]]), "or write JSONL, a row per line: jq -c '.[]'"),
    (
        "bw.json",
        json.dumps([{"data": {"text": "Noa"}, "annotations": [], "predictions": [{"result": []}]}]),
        "not annotated: only predictions",
    ),
    (
        "bx.jsonl",
        jsonl([{"text": "Noa", "b": [{"tokens": [{"begin": 0, "end": 3}]}], "mentions": [ONE.objects()[0]]}]),
        "its spans are under `mentions`",
    ),
    ("ax.train", "A note .\n<START:person> Noa <END> ran .\n", "this is OpenNLP's"),
    ("ay.ttl", "@prefix nif: <http://a/nif#> .\n", "this is RDF, such as NIF"),
    ("az.arrow", b"\xff\xff\xff\xff", "this is Arrow; write Parquet"),
    ("ba.xml", "<corpus><PER>Noa</PER></corpus>", "this is XML"),
    ("bb.conll", tags(("Noa", "B-PER"), ("ran", "O")).encode("utf-16-le"), "this is UTF-16; save it as UTF-8"),
    ("bc.json", json.dumps({"tokens": [["Noa"]], "ner_tags": [["B-PER"]]}), "its `tokens` aren't those of one text"),
    (
        "bd.conll",
        tags(
            *((str(n), word, *"______", "SBJ", *"____", mark) for n, word, mark in ((1, "Noa", "A0"), (2, "ran", "_")))
        ),
        "no column has tags",
    ),
    ("be.tsv", tags(("Noa", "_"), ("ran", "_")), "not annotated: its tags are all _"),
    (
        "bf.jsonl",
        jsonl([{"text": "<PER>Noa</PER> ran", "spans": []}, {"text": "No", "spans": []}]),
        "its text has tags",
    ),
    ("bg.jsonl", jsonl([{"text": "Noa", "ner.responses": [ONE.objects()]}]), "its spans are under `ner.responses`"),
    ("bh.jsonl", jsonl([{"text": "Noa", "annotations": [{"begin": 0, "end": 3, "type": "A"}]}]), "under `annotations`"),
    (
        "bi.tsv",
        tags(
            *((mark, str(9 * n), word, "NP") for n, (word, mark) in enumerate(ONE.tagged)),
            *(("O", "7", f"w{n}", "N") for n in range(9)),
        ),
        "such as `# global.columns = NER _ FORM _`",
    ),
    (
        "u.tsv",
        "token\tann\tbob\n"
        + table([(token, tag, "O") for token, tag in sentence.tagged] for sentence in sentences())
        + tags(("Noa", "O", "B-PER"), ("ran", "O", "O")),
        "columns 2 and 3 have tags",
    ),
    ("by.json", json.dumps({"columns": ["text"], "index": [0], "data": [["Noa"]]}), "this is a table of pandas'"),
    ("bz.json", json.dumps({"0": {"text": ONE.text, "entities": ONE.spans}, "1": {"text": "No"}}), "an object of rows"),
    ("cb.jsonl", jsonl([{"text": "Noa"}]).replace("}\n", "},\n"), "more follows its end; write each row on a line"),
    ("cc.jsonl", jsonl([{"text": "Noa"}] * 2).replace("}\n", "}"), "more follows its end; write each row on a line"),
    ("cd.jsonl", "", "it has no rows"),
    ("CE.CONLL", tags(("Noa", "B-PER"), ("ran", "O")), "its suffix has capitals; rename it"),
    ("n.jsonl", '{"text": "Noa", "spans": [], "score": Nan}\n', "invalid character (byte 38): 'Nan}"),
    ("o.jsonl", '{"text": "No\xeb"}\n'.encode("latin-1"), "byte 0xeb isn't UTF-8; save the file as UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES, ids=[name for name, *_ in FILES])
def test_unreadable_files_are_named(tmp_path: Any, name: str, content: str | bytes, message: str) -> None:
    outcome = merge_folder(tmp_path, {f"prodigy/{name}": content})
    assert (outcome.status, outcome.ledger) == (1, None)
    assert message in outcome.said
    assert "To merge it" not in outcome.printed, "an entry would read nothing"
    entry = f"- {{name: a, path: {name}, labels: [A, PER]}}\n"
    assert merge_folder(tmp_path, {f"prodigy/{name}": content, "prodigy/datasets.yml": entry}).status == 1


def test_rows_of_json_in_a_text_file_are_named(tmp_path: Any) -> None:
    outcome = merge_folder(tmp_path, {"prodigy/a.txt": jsonl([{"text": ONE.text, "spans": ONE.objects()}])})
    assert (outcome.status, "if its rows are JSON, rename it to .jsonl" in outcome.said) == (1, True)


def test_a_lone_surrogate_is_named_and_costs_its_row(tmp_path: Any) -> None:
    good = jsonl({"text": sentence.text, "spans": sentence.objects()} for sentence in sentences())
    bad = r'{"text": "\ud83d Noa", "spans": []}' + "\n"
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": good + bad})
    assert outcome.entities == {"PER": 60, "LOC": 60, "DATE": 60}
    from labelwise.corpus.tables import read_groups

    details = [row["detail"] for group in read_groups(tmp_path / "corpus") for row in group.rows.to_pylist()]
    assert [detail for detail in details if detail] == [
        r"a lone surrogate, such as \ud83d: half of a character that was cut; delete it"
    ]


def test_half_of_the_rows_under_a_key_that_nobody_knows_are_counted(tmp_path: Any) -> None:
    rows = [
        {"text": sentence.text, ("annotation", "spans")[n % 2]: sentence.objects()}
        for n, sentence in enumerate(sentences())
    ]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert outcome.ledger["rows"] == {"merged": 30, "unsupported format": 30}


RELATED = [
    {"text": sentence.text, "spans": sentence.objects(), "relations": [], "answer": "accept"}
    for sentence in sentences()
]


@pytest.mark.parametrize("view", ["relations", "choice", "classification"])
def test_rows_about_something_else_are_named_with_the_entry_to_paste(tmp_path: Path, view: str) -> None:
    outcome = merge_folder(tmp_path, {"prodigy/rel.jsonl": jsonl(row | {"_view_id": view} for row in RELATED)})
    message = "rel.jsonl, line 1: unsupported interface: it asks about something other than its spans, such as "
    assert "relations; if they are complete, add `kind: complete`" in outcome.said
    assert (outcome.status, message in outcome.said) == (1, True)
    entry = "- name: rel\n  path: rel.jsonl\n  labels: [DATE, LOC, PER]\n  kind: complete\n"
    assert entry in outcome.printed
    assert merge_folder(tmp_path, {"prodigy/datasets.yml": entry}).entities == {"PER": 60, "LOC": 60, "DATE": 60}


def test_the_key_of_a_text_or_of_spans_is_named_with_the_entry_to_paste(tmp_path: Path) -> None:
    """The words that spans mark tell which text of Label Studio's they are about; a group of spaCy's has a name."""
    tasks, docs = [], DocBin()
    nlp = spacy.blank("en")
    for sentence in sentences():
        values = [
            {"start": start, "end": end, "text": sentence.text[start:end], "labels": [label]}
            for start, end, label in sentence.spans
        ]
        results = [{"type": "labels", "value": value} for value in values]
        tasks.append({"data": {"by": "Noa", "quote": sentence.text}, "annotations": [{"result": results}]})
        doc = nlp(sentence.text)
        doc.spans["sc"] = [doc.char_span(start, end, label) for start, end, label in sentence.spans]
        docs.add(doc)
    for name, content, line in (
        ("a.json", json.dumps(tasks), "text: quote"),
        ("b.spacy", docs.to_bytes(), "spans: sc"),
    ):
        root = tmp_path / name[0]
        outcome = merge_folder(root, {f"prodigy/{name}": content})
        entry = f"- name: {name[0]}\n  path: {name}\n  labels: [DATE, LOC, PER]\n  {line}\n"
        assert (outcome.status, entry in outcome.printed) == (1, True), outcome.printed
        assert merge_folder(root, {"prodigy/datasets.yml": entry}).entities == {"PER": 60, "LOC": 60, "DATE": 60}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"spans": [], "_view_id": "choice"}, "unsupported interface: it asks about something other than spans"),
        ({"spans": [{"token_start": 0, "token_end": 1, "label": "PER"}]}, "invalid: PER None None: no start, no end"),
        ({"entities": [{"text": "Noa", "label": "PER"}]}, "invalid: PER None None: no start, no end"),
        ({"spans": [{"start": 0, "end": 3, "label": 4}]}, "invalid: 4 0 3: label isn't a string"),
        ({"spans": [{"start": 3, "end": 0, "label": "PER"}]}, "invalid: PER 3 0: its end isn't after its start"),
        ({"spans": [{"start": 0, "end": 99, "label": "PER"}]}, "invalid: PER 0 99: the text has "),
        ({"entities": [["PER", 0, 3]]}, "invalid: 3 PER 0: start isn't an integer, label isn't a string"),
    ],
    ids=["interface", "tokens", "quotes", "number", "swapped", "far", "order"],
)
def test_no_entry_is_advised_for_rows_that_cannot_be_read(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    outcome = merge_folder(
        tmp_path, {"prodigy/a.jsonl": jsonl({"text": sentence.text, **row} for sentence in sentences())}
    )
    assert (outcome.status, message in outcome.said) == (1, True)
    assert "To merge it" not in outcome.printed


def test_files_of_one_unreadable_format_are_named_once(tmp_path: Any) -> None:
    files = {f"prodigy/{number}.json": json.dumps(CAS) for number in range(5)} | {"prodigy/a.jsonl": jsonl([["a"]])}
    said = merge_folder(tmp_path, files).said
    assert "0.json and 4 like it: '0' isn't declared" in said
    assert said.count("isn't declared") == 2


def test_brats_files_belong_elsewhere(tmp_path: Any) -> None:
    files: dict[str, str | bytes] = {}
    for number, sentence in enumerate(sentences(3)):
        files |= {f"prodigy/{number}.txt": sentence.text, f"prodigy/{number}.ann": "T1\tPER 0 3\tNoa\n"}
    printed = merge_folder(tmp_path, files).said
    assert "3 files of brat's: put them, with their texts, into the folder brat beside" in printed
    assert printed.count("isn't declared") == 1


@pytest.mark.parametrize(
    ("text", "annotation", "message"),
    [
        (
            "ann/{}.txt",
            "b/{}.ann",
            "ann/0.txt: not annotated: no annotation file; b/0.ann is in another folder; put both",
        ),
        ("text/{}.txt", "b/{}.ann", "b/0.txt: no text: no .txt beside it, or an empty one; text/0.txt is in another"),
        ("{}.txt", "{}.txt.ann", "0.txt: not annotated: no annotation file; 0.txt.ann is there; rename it to 0.ann"),
        ("{}.txt", "{}.ann", "0.txt: malformed: not utf-8; declare the files' `encoding` in the section brat"),
    ],
)
def test_brat_files_that_cannot_be_read_are_named(tmp_path: Any, text: str, annotation: str, message: str) -> None:
    files: dict[str, str | bytes] = {}
    for number in range(3):
        files |= {
            f"brat/{text.format(number)}": b"No\xe4",
            f"brat/{annotation.format(number)}": "T1\tPER 0 3\tNo\xe4\n",
        }
    assert message in merge_folder(tmp_path, files).said


def test_a_label_of_brats_with_a_blank_is_named(tmp_path: Any) -> None:
    files: dict[str, str | bytes] = {}
    for number, sentence in enumerate(sentences(3)):
        marks = [f"T{n}\t{label} {start} {end}\tx\n" for n, (start, end, label) in enumerate(sentence.spans)]
        files[f"brat/{number}.txt"] = sentence.text
        files[f"brat/{number}.ann"] = "".join(marks).replace("PER", "Full Name").replace("\tx\n", "\n")
    printed = merge_folder(tmp_path, files).said
    assert "0.ann, line 1: invalid: a blank in a label; write Full_Name: 'T0\\tFull Name 0" in printed


def test_spans_that_quote_other_words_cannot_be_used(tmp_path: Any) -> None:
    rows = [
        {"text": one.text, "spans": [{"start": 0, "end": end, "label": "PER", "text": one.text[:5]}]}
        for end, one in zip([5, 4] * 30, sentences(), strict=True)
    ]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert outcome.ledger["spans"]["invalid"] == 30

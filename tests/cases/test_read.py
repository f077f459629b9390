import json
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from labelwise.annotations import Task
from labelwise.sources.formats import read_items
from tests.cases.making import N, Sentence, jsonl, merge_folder, sentences, table
from tests.sources.reading import write

ALL = {"PER": 60, "LOC": 60, "DATE": 60}
EMOJI = "\U0001f600\U0001f680 "  # two characters, each with two code units of UTF-16
FIREFIGHTER = "\U0001f468\U0001f3fb\u200d\U0001f692 "  # one character for readers, and seven code units


def tagged(cells: Callable[[int, str, str], Any], separator: str = "\t", head: str = "", before: str = "") -> str:
    """Write all sentences as a table, a row per token.

    cells (Callable): return a row's cells for the token's number (from 1), the token and its tag.
    head, before (str): written before all sentences; before each.
    """
    blocks = ([cells(n, *row) for n, row in enumerate(sentence.tagged, 1)] for sentence in sentences())
    return head + "".join(before + table([block], separator) for block in blocks)


def moved(sentence: Sentence, text: str, by: int) -> dict[str, Any]:
    return {
        "text": text + sentence.text,
        "label": [(start + by, end + by, label) for start, end, label in sentence.spans],
    }


def pairs(sentence: Sentence) -> str:
    return " ".join(f"{token}|{tag}" for token, tag in sentence.tagged)


def points(sentence: Sentence) -> list[dict[str, Any]]:
    return [
        {"label": [label], "points": [{"start": start, "end": end - 1, "text": sentence.text[start:end]}]}
        for start, end, label in sentence.spans
    ]


def gliners(sentence: Sentence) -> dict[str, Any]:
    places = [(n, tag) for n, (_, tag) in enumerate(sentence.tagged) if tag != "O"]
    spans = [[n, max(m for m, other in places if other[2:] == tag[2:]), tag[2:]] for n, tag in places if tag[0] == "B"]
    return {"tokenized_text": sentence.text.split(), "ner": spans}


def in_tokens_and_characters(sentence: Sentence, start: int, end: int, label: str) -> dict[str, Any]:
    first = sentence.text[:start].count(" ")
    last = first + sentence.text[start:end].count(" ") + 1
    return {"start": first, "end": last, "start_char": start, "end_char": end, "label": label}


def brackets(n: int, token: str, tag: str) -> list[str]:
    marks = {"O": "*", "B-PER": "(PER*", "I-PER": "*)"}
    return ["d0", "0", str(n - 1), token, "NN", "*", "-", "-", "-", "-", marks.get(tag, f"({tag[2:]})"), "-"]


def numbered(cells: Callable[[int, int, str, str], Any], separator: str = "\t") -> str:
    """Like `tagged`, with the sentence's number (from 1) first."""
    blocks = (
        [cells(number, n, *row) for n, row in enumerate(sentence.tagged, 1)]
        for number, sentence in enumerate(sentences(), 1)
    )
    return "".join(table([block], separator) for block in blocks)


def on_a_line(sentence: Sentence) -> str:
    return f"{sentence.text}\t{' '.join(tag for _, tag in sentence.tagged)}\n"


def in_bmes(n: int, token: str, tag: str) -> list[str]:
    return [token, {"B-PER": "B-PER", "I-PER": "E-PER", "O": "O"}.get(tag, f"S-{tag[2:]}")]


def sheet(later: str | None) -> str:
    """Write a table with sentences in a column; `later` stands beside all but the first word, or None for the same."""
    rows = ["Sentence #\tWord\tPOS\tTag\n"]
    for number, sentence in enumerate(sentences(), 1):
        name = f"Sentence: {number}"
        for n, (token, tag) in enumerate(sentence.tagged):
            rows.append(f"{name if later is None or not n else later}\t{token}\tNN\t{tag}\n")
    return "".join(rows)


WEBANNO_2 = " # de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity | value | identifier\n#id=1\n#text=Noa\n"
GERMEVAL = "#\thttp://example.org/0 [2009-10-17]\n"
FILES: dict[str, str | bytes] = {
    # tables
    "bio": tagged(lambda n, token, tag: (tag, token)),  # the tag first
    "a.tsv": tagged(
        lambda n, token, tag: (token, tag, "O", tag.replace("PER", "PER.x"), "NoSpaceAfter" if n == 3 else "_"),
        head="TOKEN\tNE-COARSE-LIT\tNE-COARSE-METO\tNE-FINE-LIT\tMISC\n# document_id = d1\n",
    ),
    "b.tsv": tagged(lambda n, token, tag: (token, tag), head="Word\tTag\n"),
    "c.tsv": tagged(
        lambda n, token, tag: (str(n), token, tag, tag.replace("LOC", "LOCpart") if "LOC" in tag else "O"),
        before=GERMEVAL,
    ),
    "d.tsv": sheet(""),
    "o.tsv": tagged(lambda n, token, tag: (tag, token), head="Tag\tWord\n"),
    "p.tsv": sheet(None),
    "e.tsv": tagged(lambda n, token, tag: (token, tag)).replace("wrote", "# segment = 2\nwrote"),
    "f.tsv": tagged(lambda n, token, tag: (token, f"{tag[2:]}-{tag[0]}" if tag != "O" else tag)),
    "g.tsv": tagged(lambda n, token, tag: (token, tag.replace("-", "_"))),
    "i.tsv": tagged(lambda n, token, tag: (token, tag.replace("-", "\u2013"))),
    "w.tsv": tagged(lambda n, token, tag: (token, f"{tag[2:]}_{tag[0]}" if tag != "O" else "-")),
    "j.tsv": tagged(lambda n, token, tag: (token, tag.replace("-", "."))),
    "k.tsv": tagged(lambda n, token, tag: (token, f"{tag[2:]}/{tag[0]}" if tag != "O" else tag)),
    "l.tsv": tagged(lambda n, token, tag: (token, "NN", tag), head="palabra\tcategor\xeda\tetiqueta\n"),
    "m.tsv": tagged(lambda n, token, tag: (token, tag), head="# global.columns = FORM NER\nMot\tType\n"),
    "h.tsv": tagged(lambda n, token, tag: (token, tag[:2].lower() + tag[2:])),
    "aa.tsv": tagged(lambda n, token, tag: (token, tag.replace("-", ""))),
    "ab.tsv": numbered(lambda number, n, token, tag: (f"d{number}.t{n}", token, tag)),  # no identifier twice
    "ac.tsv": tagged(lambda n, token, tag: (token, tag), before="\ufeff"),  # joined files
    "d.conll": tagged(lambda n, token, tag: (token, tag), " ", before="-docstart- O\n\n"),
    "i.conll": tagged(lambda n, token, tag: (token, "NN", "B-NP", tag), " "),
    "j.conll": tagged(
        lambda n, token, tag: (str(n), token, *"_X__0", "root", "_", f"SpaceAfter=No|NE={tag}" if tag != "O" else "_"),
        before="# sent_id = 0\n",
    ),
    "k.conll": tagged(brackets, " ", before="#begin document (d0); part 000\n"),
    "l.iob": "".join(pairs(sentence) + "\n" for sentence in sentences()),
    "m.iob2": tagged(lambda n, token, tag: (token, tag), "|"),
    "n.iob": "".join(pairs(sentence).replace("|", "|NN|") + "\n" for sentence in sentences()),
    "y.tsv": "sent_id\ttoken\tner_tag\n"
    + numbered(lambda number, n, token, tag: (str(number), token, tag)).replace("\n\n", "\n"),
    "x.conll": tagged(lambda n, token, tag: (token, *tag.split("-")) if tag != "O" else (token, "O", "")),
    "r.tsv": tagged(lambda n, token, tag: (str(n - 1), token, tag)),
    "s.conll": numbered(lambda number, n, token, tag: (f"doc{number // 7}", token, tag)),
    "t.tsv": WEBANNO_2 + numbered(lambda number, n, token, tag: (f"{number}-{n}", token, tag, "_", "")),
    "u.conll": numbered(lambda number, n, token, tag: (str(1000 * number + n), str(number), "x", token, tag), " "),
    "v.tsv": "".join(map(on_a_line, sentences())),
    "w.conll": tagged(lambda n, token, tag: (token, tag[2:] or "0"), " "),
    "x.tsv": tagged(lambda n, token, tag: (token, tag if tag != "O" else "NONE")),
    "y.bmes": tagged(in_bmes, " "),
    "z.conllup": tagged(
        lambda n, token, tag: (token, token.lower(), "NOUN", tag), head="# global.columns = FORM LEMMA UPOS CONLL:NER\n"
    ),
    "a.conllu": tagged(lambda n, token, tag: (str(n), token, *"_X__0", "root", "_", f"NE={tag}")),
    "b.conllu": tagged(
        lambda n, token, tag: (str(n), token, *"_X__0", "root", "_", f"NE={tag}"),
        before="1-2\tBoth\t" + "_\t" * 7 + "SpaceAfter=No\n0.1\tEmpty" + "\t_" * 8 + "\n",
    ),
    "a.conll": tagged(lambda n, token, tag: (token, tag), " ", before="-DOCSTART- O\n").replace("\n\n", "\n"),
    "b.conll": tagged(lambda n, token, tag: (token, tag), before="# newdoc id = 1\n# text = x\n").replace("\n\n", "\n"),
    "c.conll": tagged(lambda n, token, tag: (token, tag), before="# sent_id = 1\n").replace("\n\n", "\n"),
    "q.tsv": tagged(lambda n, token, tag: (str(n), f'"{token}"', f'"{tag}"'), head='"n"\t"word"\t"tag"\n'),
    "r.conll": '"word" "tag"\n' + tagged(lambda n, token, tag: (f'"{n}"', f'"{token}"', f'"{tag}"'), " "),  # R's
    "s.tsv": sheet("nan"),
    "t.iob2": tagged(lambda n, token, tag: (token, tag), before="###MEDLINE:95369245\n\n"),
    "eng.testa": tagged(lambda n, token, tag: (token, "NN", "B-NP", tag), " "),
    # rows of JSON
    "a.jsonl": jsonl({"text": sentence.text, "entities": sentence.objects()} for sentence in sentences()),
    "aa.jsonl": jsonl(
        {"id": 1, "data": {"text": sentence.text, ("spans", "entities")[n % 2]: sentence.objects()}}
        for n, sentence in enumerate(sentences())
    ),
    "ab.jsonl": jsonl(
        {"text": sentence.text, "spans": [span | {"label": f" {span['label']} "} for span in sentence.objects()]}
        for sentence in sentences()
    ),
    "ac.jsonl": jsonl(
        {"text": sentence.text, "label": sentence.spans, "annotator": "ann", "predictions": [[0, 3, "PER"]]}
        for sentence in sentences()
    ),
    "ad.jsonl": jsonl(
        {"text": sentence.text, "entities": sentence.objects(), "annotator": "ann"} for sentence in sentences()
    ),
    "b.json": json.dumps([[sentence.text, {"entities": sentence.spans}] for sentence in sentences()]),
    "z.json": json.dumps([[sentence.text, sentence.spans] for sentence in sentences()]),
    "t.json": json.dumps([sentence.tagged for sentence in sentences()]),
    "u.json": json.dumps([[(token, "NN", tag) for token, tag in sentence.tagged] for sentence in sentences()]),
    "c.jsonl": jsonl([sentence.text, {"entities": sentence.spans}] for sentence in sentences()),
    "d.json": jsonl(
        {"id": 1, "text": sentence.text, "label": sentence.spans, "Comments": []} for sentence in sentences()
    ),
    "e.jsonl": json.dumps([{"text": sentence.text, "spans": sentence.objects()} for sentence in sentences()], indent=1),
    "f.jsonl": jsonl(
        {"content": sentence.text, "annotation": points(sentence), "extras": None} for sentence in sentences()
    ),
    "g.json": json.dumps([gliners(sentence) for sentence in sentences()]),
    "h.jsonl": jsonl(map(gliners, sentences())),
    "i.jsonl": jsonl(
        {"text": sentence.text, "spans": [span | {"start": float(span["start"])} for span in sentence.objects()]}
        for sentence in sentences()
    ),
    "j.jsonl": jsonl(
        {"text": sentence.text, "ents": sentence.objects(), "sents": [{"start": 0, "end": 9}]}
        for sentence in sentences()
    ),
    "k.jsonl": jsonl(
        {"text": sentence.text, ("entities", "spans")[n % 2]: sentence.objects()}
        for n, sentence in enumerate(sentences())
    ),
    "u.jsonl": jsonl(
        {"text": sentence.text, "entities": [{"offsets": [[s, e]], "type": label} for s, e, label in sentence.spans]}
        for sentence in sentences()
    ),
    "v.jsonl": jsonl(
        {
            "text": sentence.text,
            "spans": [{"startIndex": s, "endIndex": e, "label": [name]} for s, e, name in sentence.spans],
        }
        for sentence in sentences()
    ),
    "y.jsonl": jsonl(
        {
            "text": sentence.text,
            "entities": [(f"T{n}", label, [(s, e)]) for n, (s, e, label) in enumerate(sentence.spans)],
        }
        for sentence in sentences()
    ),
    "z.jsonl": jsonl(
        {
            "text": sentence.text,
            "entities": [{"BeginOffset": s, "EndOffset": e, "Type": x} for s, e, x in sentence.spans],
        }
        for sentence in sentences()
    ),
    "w.jsonl": jsonl(
        {"text": sentence.text, "ents": [], "spans": {"sc": sentence.objects()}} for sentence in sentences()
    ),
    "y.json": json.dumps(
        [
            {
                "data": {"text": sentence.text},
                "annotations": [
                    {
                        "result": [
                            {"type": "labels", "value": {"start": str(start), "end": float(end), "labels": [label]}}
                            for start, end, label in sentence.spans
                        ]
                    }
                ],
            }
            for sentence in sentences()
        ]
    ),
    "x.jsonl": jsonl(
        {"text": sentence.text, "entities": [in_tokens_and_characters(sentence, *span) for span in sentence.spans]}
        for sentence in sentences()
    ),
    "b.ndjson": "".join(
        "\ufeff" + jsonl([{"text": sentence.text, "spans": sentence.objects()}]) for sentence in sentences()
    ),
    "a.ndjson": jsonl({"text": sentence.text, "spans": sentence.objects()} for sentence in sentences()),
    "r.jsonl": jsonl(
        {
            "tokens": sentence.text.split(),
            "ner_tags": [tag for _, tag in sentence.tagged],
            "langs": ["en"],
            "spans": ["PER: x"],
        }
        for sentence in sentences()
    ),
    "q.jsonl": jsonl({"text": sentence.text, "spans": sentence.spans} for sentence in sentences()),
    # doccano's, in UTF-16 code units, and in what readers see as characters
    "l.jsonl": jsonl(moved(sentence, *((EMOJI, 5) if n % 2 else ("", 0))) for n, sentence in enumerate(sentences())),
    "m.jsonl": jsonl(moved(sentence, FIREFIGHTER, 8) for sentence in sentences()),
    "n.jsonl": jsonl(moved(sentence, FIREFIGHTER, 2) for sentence in sentences()),
    "o.jsonl": jsonl(moved(sentence, EMOJI, 3) for sentence in sentences()),
    "p.jsonl": jsonl([moved(sentences()[0], EMOJI, 5)] + [moved(sentence, "", 0) for sentence in sentences()[1:]]),
}


@pytest.mark.parametrize("name", FILES)
def test_each_has_all_its_spans(tmp_path: Any, name: str) -> None:
    path = write(tmp_path / (name if "." in name else f"a.{name}"), FILES[name])
    tasks = [item for item in read_items(path) if isinstance(item, Task)]
    read = [
        (
            task.text.removeprefix(EMOJI).removeprefix(FIREFIGHTER),
            [(task.text[s.start : s.end], s.label) for s in task.spans],
        )
        for task in tasks
    ]
    assert read == [
        (sentence.text, [(sentence.text[start:end], label) for start, end, label in sentence.spans])
        for sentence in sentences()
    ]
    assert not any(task.unusable for task in tasks)


@pytest.mark.parametrize(("shape", "end"), [("label", 11), ("entities", 11), ("others", 9)])
def test_offsets_of_a_file_whose_first_rows_have_no_spans_are_doccanos(tmp_path: Any, shape: str, end: int) -> None:
    """Such rows of doccano's second form could be another tool's, with offsets in code points."""
    keys = ("start", "end") if shape == "others" else ("start_offset", "end_offset")
    span = [end - 3, end, "A"] if shape == "label" else {keys[0]: end - 3, keys[1]: end, "label": "A"}
    key = "label" if shape == "label" else "entities"
    rows = [{"text": f"{EMOJI}to Ann", key: marked, "relations": []} for marked in ([], [], [span])]
    *_, last = read_items(write(tmp_path / "a.jsonl", jsonl(rows)))
    assert isinstance(last, Task)
    assert [last.text[span.start : span.end] for span in last.spans] == ["Ann"]


@pytest.mark.parametrize(
    ("name", "offsets", "by"),
    [
        ("inclusive", "inclusive", lambda text, start, end: (start, end - 1)),
        ("r", "one-based-inclusive", lambda text, start, end: (start + 1, end)),
        ("one", "one-based", lambda text, start, end: (start + 1, end + 1)),
        ("bytes", "bytes", lambda text, start, end: (len(text[:start].encode()), len(text[:end].encode()))),
        ("units", "utf-16", lambda text, start, end: (start + 2 * (start > 0), end + 2)),
        ("seen", "graphemes", lambda text, start, end: (start, end)),
    ],
)
@pytest.mark.parametrize("shape", ["prodigy", "doccano", "label studio"])
def test_offsets_are_read_as_their_entry_says(
    tmp_path: Any, name: str, offsets: str, by: Callable[[str, int, int], tuple[int, int]], shape: str
) -> None:
    text = f"{EMOJI}Noä Moreau."
    start, end = by(text, 3, 13)
    row = {
        "prodigy": {"text": text, "spans": [{"start": start, "end": end, "label": "A"}]},
        "doccano": {"text": text, "label": [[start, end, "A"]]},
        "label studio": {
            "data": {"text": text},
            "annotations": [{"result": [{"type": "labels", "value": {"start": start, "end": end, "labels": ["A"]}}]}],
        },
    }[shape]
    [task] = read_items(write(tmp_path / f"{name}.json", json.dumps([row])), offsets=offsets)
    assert isinstance(task, Task)
    assert [text[span.start : span.end] for span in task.spans] == ["Noä Moreau"]


@pytest.mark.parametrize("key", ["label", "spans"])
def test_ends_can_be_inclusive_however_the_tool_counts(tmp_path: Any, key: str) -> None:
    """doccano's rows show how they count; for others, the entry says both."""
    rows = [moved(sentence, EMOJI, 5) for sentence in sentences()]
    rows = [
        {"text": row["text"], "label": [(start, end - 1, label) for start, end, label in row["label"]]} for row in rows
    ]
    offsets = "inclusive" if key == "label" else "utf-16-inclusive"
    if key == "spans":
        rows = [
            {
                "text": row["text"],
                "spans": [dict(zip(("start", "end", "label"), span, strict=True)) for span in row["label"]],
            }
            for row in rows
        ]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert f"180 spans have unusable offsets; 0 with `{offsets}` offsets" in outcome.said
    entry = f"- {{name: a, path: a.jsonl, labels: [PER, LOC, DATE], offsets: {offsets}}}\n"
    assert merge_folder(tmp_path, {"prodigy/datasets.yml": entry}).entities == ALL


def test_an_entry_says_that_ends_are_inclusive(tmp_path: Any) -> None:
    rows = [
        {"text": sentence.text, "label": [(start, end - 1, label) for start, end, label in sentence.spans]}
        for sentence in sentences()
    ]
    entry = "- {name: a, path: %s, labels: [PER, LOC, DATE], offsets: inclusive}\n"
    files: dict[str, str | bytes] = {"prodigy/a.jsonl": jsonl(rows), "prodigy/datasets.yml": entry % "a.jsonl"}
    assert merge_folder(tmp_path, files).entities == ALL
    files = {"prodigy/b.tsv": FILES["b.tsv"], "prodigy/datasets.yml": entry % "b.tsv"}
    assert "`offsets` is for JSON files and databases; leave it out" in merge_folder(tmp_path / "b", files).printed


def test_offsets_of_bytes_are_read_by_the_mentions(tmp_path: Any) -> None:
    outcome = merge_folder(tmp_path, dict(brat_in_bytes()))
    assert outcome.entities == ALL
    assert "reading: bytes" in outcome.printed


@pytest.mark.parametrize("counted", [True, False])
def test_a_byte_order_mark_before_a_text_of_brat_is_no_part_of_a_word(tmp_path: Any, counted: bool) -> None:
    files = {}
    for number, sentence in enumerate(sentences()):
        lines = [
            f"T{n}\t{label} {start + counted} {end + counted}\t{sentence.text[start:end]}\n"
            for n, (start, end, label) in enumerate(sentence.spans)
        ]
        files |= {f"brat/{number}.txt": f"\ufeff{sentence.text}", f"brat/{number}.ann": "".join(lines)}
    assert merge_folder(tmp_path, files).entities == ALL


def test_offsets_in_a_text_that_was_decomposed_are_read_by_the_mentions(tmp_path: Any) -> None:
    """As files are on macOS: in brat, and in Label Studio."""
    files: dict[str, str | bytes] = {}
    tasks = []
    for number, sentence in enumerate(sentences()):
        before = "Zo\xeb, Andr\xe9: "
        places = [(start + len(before), end + len(before), label) for start, end, label in sentence.spans]
        text = unicodedata.normalize("NFD", before + sentence.text.replace("o", "\xf6"))
        quotes = [sentence.text[start:end].replace("o", "\xf6") for start, end, _ in sentence.spans]
        lines = [
            f"T1\t{label} {start} {end}\t{quote}\n" for (start, end, label), quote in zip(places, quotes, strict=True)
        ]
        values = [
            {"start": start, "end": end, "text": quote, "labels": [label]}
            for (start, end, label), quote in zip(places, quotes, strict=True)
        ]
        files |= {f"brat/{number}.txt": text, f"brat/{number}.ann": "".join(lines)}
        results = [{"type": "labels", "value": value} for value in values]
        tasks.append({"data": {"text": text}, "annotations": [{"result": results}]})
    assert merge_folder(tmp_path / "brat", files).entities == ALL
    assert merge_folder(tmp_path / "studio", {"prodigy/a.json": json.dumps(tasks)}).entities == ALL


def test_spans_of_another_text_of_label_studios_are_counted_apart(tmp_path: Any) -> None:
    """Without the words that they mark, their `to_name` tells them; so do their words."""
    for quoted in (False, True):
        tasks = []
        for number, sentence in enumerate(sentences()):
            title = sentences(2 * N)[N + number]
            results = [
                {
                    "type": "labels",
                    "to_name": name,
                    "value": {"start": start, "end": end, "labels": [label]}
                    | ({"text": of.text[start:end]} if quoted else {}),
                }
                for name, of in (("text", sentence), ("title", title))
                for start, end, label in of.spans
            ]
            tasks.append({"data": {"text": sentence.text, "title": title.text}, "annotations": [{"result": results}]})
        outcome = merge_folder(tmp_path / str(quoted), {"prodigy/a.json": json.dumps(tasks)})
        assert outcome.ledger
        assert (outcome.entities, quoted or outcome.ledger["spans"]["invalid"] == 180) == (ALL, True)


def brat_in_bytes() -> Iterator[tuple[str, str]]:
    for number, sentence in enumerate(sentences()):
        text, before = f"Über München: {sentence.text}", len("Über München: ".encode())
        lines = [
            f"T{n}\t{label} {start + before} {end + before}\t{sentence.text[start:end]}\n"
            for n, (start, end, label) in enumerate(sentence.spans, 1)
        ]
        yield f"brat/{number}.txt", text
        yield f"brat/{number}.ann", "".join(lines)


def test_tags_without_a_label_have_the_one_that_is_declared(tmp_path: Any) -> None:
    files: dict[str, str | bytes] = {"prodigy/a.tsv": tagged(lambda n, token, tag: (token, tag[0]))}
    assert "its tags, such as B and I, have no label; declare the one" in merge_folder(tmp_path / "none", files).printed
    for labels, entities in (("THING", {"THING": 180}), ("A, B", {})):
        files["prodigy/datasets.yml"] = f"- {{name: a, path: a.tsv, labels: [{labels}]}}\n"
        outcome = merge_folder(tmp_path / labels, files)
        assert outcome.entities == entities
        assert ("its tags, such as B and I, have no label" in outcome.printed) is not bool(entities)


def webanno(sentence: Sentence, labels: tuple[str, ...]) -> str:
    lines, place = [], 0
    for n, (token, tag) in enumerate(sentence.tagged, 1):
        value = f"{tag[2:]}[{labels.index(tag[2:]) + 1}]" if tag[2:] in labels else "_"
        lines.append(f"1-{n}\t{place}-{place + len(token)}\t{token}\t{value}\t\n")
        place += len(token) + 1
    head = "#FORMAT=WebAnno TSV 3.3\n#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value\n\n\n"
    return f"{head}#Text={sentence.text}\n{''.join(lines)}"


def test_inceptions_curation_decides(tmp_path: Any) -> None:
    entry = "- name: a\n  path: [export/annotation/*/*.tsv, export/curation/*/*.tsv]\n  labels: [PER, LOC, DATE]\n"
    files: dict[str, str | bytes] = {"prodigy/datasets.yml": entry}
    for number, sentence in enumerate(sentences()):
        for who in ("ann", "bob"):
            files[f"prodigy/export/annotation/{number}.txt/{who}.tsv"] = webanno(sentence, ("LOC",))
        files[f"prodigy/export/curation/{number}.txt/CURATION_USER.tsv"] = webanno(sentence, ("PER", "LOC", "DATE"))
    assert merge_folder(tmp_path, files).entities == ALL


def test_doccanos_offsets_are_read_by_the_words_where_they_end(tmp_path: Any) -> None:
    assert merge_folder(tmp_path, {"prodigy/a.jsonl": FILES["l.jsonl"]}).entities == ALL
    plain = merge_folder(
        tmp_path / "plain", {"prodigy/a.jsonl": jsonl(moved(sentence, "", 0) for sentence in sentences())}
    )
    assert plain.entities == ALL


def test_words_in_quotes_of_a_table_are_read_as_they_were(tmp_path: Any) -> None:
    rows = [("word", "tag"), ('""""', "O"), ("Noa", "B-PER"), ('""""', "O"), ('"5"""', "O"), ('"', "O"), ('""', "O")]
    [task] = read_items(write(tmp_path / "a.tsv", table([rows])))
    assert isinstance(task, Task)
    assert (task.text, [task.text[span.start : span.end] for span in task.spans]) == ('" Noa " 5" " ""', ["Noa"])


@pytest.mark.parametrize("name", ["a.conll", "a.jsonl"])
def test_texts_of_scripts_without_spaces_have_none_between_tokens(tmp_path: Any, name: str) -> None:
    tokens, tags = [*"王明去了 2 号楼，买 3 本".replace(" ", "")], ["B-PER", "E-PER", *"O" * 9]
    content = table([zip(tokens, tags, strict=True)])
    if name == "a.jsonl":
        content = jsonl([{"tokens": tokens, "ner_tags": tags}])
    [task] = read_items(write(tmp_path / name, content))
    assert isinstance(task, Task)
    assert (task.text, [(span.start, span.end) for span in task.spans]) == ("王明去了2号楼，买3本", [(0, 2)])


def test_texts_of_single_characters_are_joined(tmp_path: Any) -> None:
    """As in Korean files, where a token is a character or a space."""
    rows = [[(char, "B-PER" if n == 0 else "O") for n, char in enumerate("A saw B & C")]]
    [task] = read_items(write(tmp_path / "a.tsv", table(rows)))
    assert isinstance(task, Task)
    assert (task.text, [(span.start, span.end) for span in task.spans]) == ("A saw B & C", [(0, 1)])


def test_places_without_labels_are_no_spans(tmp_path: Any) -> None:
    """Such as the tokens' of a row without spans."""
    rows: list[dict[str, Any]] = [{"text": one.text, "spans": one.objects()} for one in sentences()]
    for row in rows[:30]:
        row |= {"spans": [], "sentences": [{"tokens": [{"begin": 0, "end": 3}]}]}
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert (outcome.entities["PER"], outcome.ledger["labels"]["PER"]["complete"]) == (30, 60)


def test_a_row_inside_data_has_the_answer_beside_it(tmp_path: Any) -> None:
    rows = [
        {"data": {"text": sentence.text, "spans": sentence.objects()}, "answer": ("accept", "reject")[n % 2]}
        for n, sentence in enumerate(sentences())
    ]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert outcome.ledger["rows"] == {"merged": 30, "rejected": 30}


@pytest.mark.parametrize("key", ["entity", "surface", "text"])
def test_spans_quote_words_under_any_key(tmp_path: Any, key: str) -> None:
    """A value that no reading finds at the offsets, such as another name of a person, is no quote."""
    rows = [
        {
            "text": sentence.text,
            "entities": [{"start": s, "end": e - 1, "type": label, key: sentence.text[s:e]} for s, e, label in spans],
        }
        for sentence in sentences()
        for spans in [sentence.spans]
    ]
    outcome = merge_folder(tmp_path / key, {"prodigy/a.jsonl": jsonl(rows)})
    assert "180 spans have unusable offsets; 0 with `inclusive` offsets" in outcome.said
    assert "isn't there" in outcome.printed
    for row in rows:
        row["entities"] = [
            {"start": mark["start"], "end": mark["end"] + 1, "type": mark["type"], "name": row["text"].split()[1]}
            for mark in row["entities"]
        ]
    assert merge_folder(tmp_path / "name", {"prodigy/a.jsonl": jsonl(rows)}).entities == ALL


def test_answers_about_single_spans_of_old_versions_are_partial_among_others(tmp_path: Any) -> None:
    """ner.teach of Prodigy 1.5 ranked parses, and named no interface."""
    rows = [{"text": sentence.text, "spans": sentence.objects(), "answer": "accept"} for sentence in sentences()]
    for row in rows[:20]:
        row["spans"] = [row["spans"][0] | {"rank": 0, "score": 0.5}]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert (outcome.entities, outcome.ledger["labels"]["PER"]["complete"]) == (ALL | {"LOC": 40, "DATE": 40}, 40)


@pytest.mark.parametrize(("answer", "merged"), [("Accept", 60), (None, 50), ("yes", 50)])
def test_answers_that_are_not_known_are_named(tmp_path: Any, answer: str | None, merged: int) -> None:
    rows = [{"text": sentence.text, "spans": sentence.objects(), "answer": "accept"} for sentence in sentences()]
    for row in rows[:10]:
        row["answer"] = answer
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.ledger
    assert outcome.ledger["rows"]["merged"] == merged
    assert (f"a.jsonl, line 1: unknown answer: '{str(answer).lower()}'" in outcome.said) == (merged == 50)

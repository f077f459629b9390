import json
from io import BytesIO

import pyarrow
import pytest
from pyarrow import parquet

from labelwise.annotations import Problem, Reason
from labelwise.base.errors import InputError
from labelwise.corpus.tasks import input_hash, task_hash
from labelwise.sources.clean import clean
from labelwise.sources.formats import read_items
from labelwise.sources.json_rows import parse_row
from labelwise.sources.raw_texts import read_raw_texts
from labelwise.sources.shapes import NO_OFFSETS
from tests.sources.reading import read, write, write_parquet

TEXT = "Add 5 mL"
PRODIGY = {"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "P"}], "_input_hash": 1}
TOKEN = {"text": "Add", "start": 0, "end": 3, "id": 0, "ws": True}
MATCH = {"start": 0, "end": 3, "label": "NEWS", "pattern": 7}
REJECTED = {"text": "Add", "labels": ["A", "B"], "answer": "reject"}
ENTITY = {"id": 7, "label": "D", "start_offset": 4, "end_offset": 8}
DOCCANO = {"text": TEXT, "label": [[4, 8, "D"]]}
TAGGED = {"tokens": ["Add", "5"], "ner_tags": ["B-T", "O"]}
P, D, T = (TEXT, [("Add", "P")]), (TEXT, [("5 mL", "D")]), ("Add 5", [("Add", "T")])
OTHER = "unsupported format: it has Prodigy's keys, and other annotation under another tool's; keep one of the two"
NO_SPANS = "unsupported format: its `{}` aren't a list of spans: write each with start, end and label"
UNNAMED = "malformed: the tag {} has no name; write the tags' names, or Parquet with them"
OF_OTHERS = "its `tokens` aren't those of one text; write each text as a row"
AS_LISTS = "write a list of `tokens` and one of `ner_tags`"
NOTHING = "no start, no end, no label"
NO_LIST = "not annotated: no list of spans"


ROWS = [
    (PRODIGY, P),
    ({"text": "Stir"}, ("Stir", [])),
    (
        {"text": "x", "spans": "x"},
        "malformed: its `spans` aren't a list of spans: write each with start, end and label",
    ),
    # tokens, which are skipped as Prodigy writes them, may be anything
    *(
        (json.dumps({"text": TEXT, "tokens": tokens, **PRODIGY}, separators=(",", ":")), P)
        for tokens in (
            [TOKEN, TOKEN],
            [TOKEN | {"text": '}],"spans":'}],
            [TOKEN | {"text": '"}],"'}, TOKEN | {"text": "]"}],
            [TOKEN | {"lemmas": [{"a": 1}], "x": 1}],
            [{"id": None}, 3],  # what no tokenizer writes
            [],
        )
    ),
    # doccano, in all its forms
    *(
        ({"id": 3, "text": TEXT, **marked, "username": "ann"}, D)
        for marked in (
            {"label": [[4, 8, "D"]]},
            {"labels": [[4, 8, "D"]]},
            {"entities": [[4, 8, "D"]]},
            {"entities": [ENTITY], "relations": []},
            {"label": [[4, 8, "D"]], "entities": [ENTITY], "labels": []},
        )
    ),
    ({"data": TEXT, "label": [[4, 8, "D"]]}, D),
    ({**DOCCANO, "labels": [[0, 3, "A"]]}, "malformed: its label and labels differ; keep one of them"),
    ({"text": "two", "annotations": [{"label": 7}]}, "malformed: its labels are numbers; export them as text"),
    ({"text": "Add", "label": None}, NO_LIST),
    (
        {"text": "four", "label": [[0, 4], "x", [0, 4, "A"]]},
        ("four", [("four", "A"), *[f"invalid: None None None: {NOTHING}"] * 2]),
    ),
    ({"text": "Add", "labels": ["A", "B"]}, f"unsupported format: {NO_OFFSETS}"),
    ({"text": TEXT, "label": [[4, 8, "D"]], "entities": True}, D),
    # lists for spans, an object among them
    (
        {"text": TEXT, "spans": [[4, 8, "D"], {"start": 0, "end": 3, "label": "P"}, 3]},
        (TEXT, [("5 mL", "D"), ("Add", "P"), f"invalid: None None None: {NOTHING}"]),
    ),
    # Azure's
    ({"text": TEXT, "entities": [{"category": "D", "offset": 4, "length": 4, "text": "5 mL"}]}, D),
    # what a span lacks is named
    ({"text": TEXT, "entities": [{"label": "D", "text": "5 mL"}]}, (TEXT, ["invalid: D None None: no start, no end"])),
    ({**PRODIGY, "spans": [{"token_start": 0, "label": "P"}]}, (TEXT, ["invalid: P None None: no start, no end"])),
    ({**PRODIGY, "spans": [{"start": 0, "end": 3}]}, (TEXT, ["invalid: None 0 3: no label"])),
    ({**PRODIGY, "spans": [{"start": 0, "end": 3, "label": ""}]}, (TEXT, ["invalid: None 0 3: no label"])),
    # offsets as a sheet has them, and NaN, which isn't JSON
    ({"text": TEXT, "label": [["4", "8", "D"]]}, D),
    ('{"text": "Add 5 mL", "label": [[4, 8, "D"]], "meta": {"score": NaN, "low": -Infinity, "x": "a: NaN, b"}}', D),
    ('{"text": "Add: NaN, 5", "spans": [NaN}', "bad JSON: expected ',' or ']' (byte 38): '}'"),
    # annotations in a shape that isn't read
    *(
        ({"text": TEXT, "entities": entities}, NO_SPANS.format("entities"))
        for entities in ({"D": ["5 mL"]}, {"D": [], "P": ["Add"]}, {"Person": [{"indices": [0, 3]}]})
    ),
    *(
        ({"text": TEXT, "found": found}, NO_SPANS.format("found"))
        for found in ({"D": ["5 mL"]}, [{"type": "D", "words": "5 mL"}])
    ),
    *(
        ({"text": TEXT, key: [{"start": 4, "end": 8, "label": "D"}]}, (TEXT, []))
        for key in ("cats", "versions", "_own")
    ),
    ({"text": TEXT, "found": {"D": ["5 mL"]}, "answer": "accept"}, (TEXT, [])),
    ({"text": TEXT, "entities": {}}, (TEXT, [])),
    ({"text": TEXT, "label": {"choices": ["x"]}, "answer": "accept"}, (TEXT, [])),
    # tokens and tags
    (TAGGED, T),
    ({"tokens": ["Add", "5"], "tags": ["NNP", "X"], "ner": ["B-T", "O"]}, T),
    # in strings, and beside a text
    *(
        ({key: tokens, "labels": tags}, T)
        for key, tokens in (("tokens", "Add 5"), ("words", ["Add", "5"]), ("text", "Add  5"))
        for tags in ("B-T O", ["B-T", "O"])
    ),
    *(
        ({"text": TEXT, key: tags}, f"unsupported format: its `{key}` are tags: {AS_LISTS}, a tag for each token")
        for key, tags in {
            "ner_tags": "B-T O",
            "labels": "['B-T', 'O', 'O']",
            "found": "O,B-T,O",
            "ner": ["B-T"],
        }.items()
    ),
    ({"text": "Add 5", "tags": "A B", "labels": "O"}, ("Add 5", [])),
    ({"tokens": ["a"], "ner_tags": []}, "malformed: `ner_tags` isn't a list of 1 tags"),
    ({"tokens": ["a"], "ner_tags": [3]}, UNNAMED.format(3)),
    ({"tokens": ["a", "b"], "ner_tags": ["O", None]}, UNNAMED.format(None)),
    ({"tokens": ["Ann"], "ner_tags": ["1"]}, UNNAMED.format("'1'")),
    ({"tokens": [1], "ner_tags": ["O"]}, f"unsupported format: {OF_OTHERS}"),
    # keys that contradict one another
    ({**DOCCANO, "answer": "reject"}, OTHER),
    ({**DOCCANO, "answer": "42"}, D),
    ({**DOCCANO, "spans": [{"start": 4, "end": 8, "label": "D"}]}, OTHER),
    ({**PRODIGY, "label": []}, P),
    ({**PRODIGY, "label": "A", "tags": ["x"]}, P),
    ({**PRODIGY, **TAGGED}, P),
    ({"text": "Add 5", "spans": [], **TAGGED}, OTHER),
    ({"text": "Add 5", "spans": [], "tokens": ["Add"], "ner_tags": ["O"]}, ("Add 5", [])),
    # a repeated key: decoders take the last
    *(
        (row, f"malformed: {key!r} is there twice; write it once")
        for key, row in {
            "spans": '{"text": "x", "spans": [{"start": 0, "end": 1, "label": "A"}], "spans": []}',
            "text": '{"text": "x", "text": "y", "spans": []}',
            "label": '{"text": "x", "entities": [{"start_offset": 0, "label": "A", "label": "B"}]}',
            "ner_tags": '{"tokens": ["x"], "ner_tags": ["B-A"], "ner_tags": ["O"]}',
        }.items()
    ),
]


@pytest.mark.parametrize(("row", "expected"), ROWS)
def test_a_row_is_read_by_its_own_keys_whatever_comes_before(tmp_path, row, expected):
    assert read(tmp_path / "a.jsonl", [TAGGED, DOCCANO, row, PRODIGY]) == [T, D, expected, P]


OBJECTS = [
    ({"projectFileVersion": "2022", "assets": {"documents": []}}, "Azure's labels"),
    ({"documents": [{"passages": [{"infons": {}, "annotations": []}]}]}, "BioC; convert it to brat"),
    ({"annotatable": {"parts": []}, "anncomplete": True, "entities": []}, "tagtog's"),
    ({"rasa_nlu_data": {"common_examples": []}}, "Rasa's; .*jq .rasa_nlu_data.common_examples"),
    ({"examples": [{"content": "x", "annotations": []}]}, "LightTag's"),
    ({"version": "a, b", "n": 1, "data": [{"text": "x"}]}, "write its list `data` alone to a file: jq .data"),
    ({"id": 1}, "write an array of tasks, or JSONL"),
]


@pytest.mark.parametrize(("content", "why"), OBJECTS)
def test_one_object_is_named_with_the_way_to_rows(tmp_path, content, why):
    with pytest.raises(InputError, match=rf"a\.json: .*{why}"):
        read(tmp_path / "a.json", json.dumps(content, indent=1))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"tokens": ["Add", "5"], "entities": [{"type": "T", "start": 0, "end": 1}]}, "its spans count `tokens`"),
        (
            {"audio": "a.mp3", "text": "a", "audio_spans": [{"start": 1.2, "end": 3.4, "label": "S"}], "_view_id": "x"},
            "it marks audio, in seconds",
        ),
        ({"image": "a.png", "spans": [{"points": [[1, 2]], "label": "S"}], "answer": "accept"}, "it marks an image"),
        ({"document": TEXT, "documentName": "a", "tokens": [{"entityLabel": "D"}]}, "this is UBIAI's"),
        ({"entity_group": "D", "score": 0.9, "word": "5", "start": 4, "end": 5}, "this is a pipeline's output"),
    ],
)
def test_a_row_without_a_text_is_named_with_the_way_to_one(tmp_path, row, why):
    for name in ("a.json", "a.jsonl"):
        (problem,) = read(tmp_path / name, [row])
        assert problem.startswith(f"unsupported format: {why}")


NAMES = ["O", "B-ORG", "I-ORG", "B-MISC", "I-MISC", "B-PER", "I-PER"]
SENTENCES = [
    {"id": "0", "tokens": ["EU", "rejects", "German", "call"], "ner_tags": ["B-ORG", "O", "B-MISC", "I-MISC"]},
    {"id": "1", "tokens": ["Peter", "Blackburn"], "ner_tags": ["B-PER", "I-PER"]},
    {"id": "2", "tokens": [], "ner_tags": []},
]
FOUND = [
    ("EU rejects German call", [("EU", "ORG"), ("German call", "MISC")]),
    ("Peter Blackburn", [("Peter Blackburn", "PER")]),
    "no text",
]


@pytest.mark.parametrize("tags", [{"feature": {"names": NAMES, "_type": "ClassLabel"}}, {"names": NAMES}])
def test_numbers_have_the_names_of_the_schema(tmp_path, tags):
    numbered = [{**row, "ner_tags": [NAMES.index(tag) for tag in row["ner_tags"]]} for row in SENTENCES]
    rows = [*numbered, {"id": "4", "tokens": ["a"], "ner_tags": [-1]}]
    assert read(write_parquet(tmp_path / "a.parquet", rows, tags)) == [*FOUND, UNNAMED.format(-1)]
    assert read(write_parquet(tmp_path / "b.parquet", SENTENCES)) == FOUND
    for names in ({"0": "O"}, "OB", None, [None]):
        rows = [{"tokens": ["a"], "ner_tags": [0]}]
        assert read(write_parquet(tmp_path / "c.parquet", rows, {"feature": {"names": names}})) == [UNNAMED.format(0)]


@pytest.mark.parametrize("names", [["text"], ["tokens", "ner_tags", "ner_tags"]])
def test_parquet_of_other_columns_is_named(tmp_path, names):
    path, columns = tmp_path / "a.parquet", [pyarrow.array([["O"]])] * len(names)
    parquet.write_table(pyarrow.Table.from_arrays(columns, names), path)
    message = rf"a\.parquet: its columns are {', '.join(names)}; it needs one `tokens` and one `ner_tags`"
    with pytest.raises(InputError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"text": "Add"}, "unanswered"),
        ({"text": "Add", "meta": {"source": "web"}, "_input_hash": 1}, "unanswered"),
        ({"text": "Add", "spans": None}, "unanswered"),
        ({"text": "Add <UNIT>5 mL</UNIT>"}, "tags in text"),
        ({"text": 'Add <UNIT N="1">5 mL</UNIT>', "spans": []}, "tags in text"),
        ({"text": "Add [5 mL](UNIT)"}, "tags in text"),
        ({"text": "Add <unit>5 mL</unit>"}, "tags in text"),
        ({"text": "Add <b>5 mL</b> [5 mL](http://a.b)"}, "unanswered"),
        ({"text": "Add <UNIT>5 mL</UNIT>", "spans": [], "answer": "accept"}, "complete"),
        ({"text": "<P>Add", "tokens": []}, "unanswered"),
        ({"text": "Add", "spans": []}, "complete"),
        ({"text": "Add", "answer": "accept"}, "complete"),
        ({"text": "Add", "_timestamp": 1}, "complete"),
        ({"text": "Add", "_session_id": "ann"}, "complete"),
        ({"text": "Add", "_view_id": "ner"}, "binary"),
        ({"text": "Add", "label": []}, "complete"),
        ({"text": "Add", "label": "NEWS", "spans": [MATCH], "answer": "accept"}, "other"),
        ({"text": "Add", "label": "NEWS", "answer": "reject"}, "other"),
        ({"text": "Add", "spans": [MATCH], "answer": "accept"}, "complete"),
        ({"text": "Add", "label": "NEWS", "spans": [MATCH], "_view_id": "ner_manual"}, "complete"),
    ],
)
def test_the_question_of_a_row_is_known_and_its_text_can_be_predicted(tmp_path, row, kind):
    path = write(tmp_path / "a.jsonl", [row])
    assert [item.kind for item in read_items(path)] == [kind]
    assert [raw.text for raw in read_raw_texts([path])] == [row["text"]]


def test_a_rejected_task_is_never_an_accepted_one():
    for row in (REJECTED, {"text": "Add", "label": None, "answer": "reject"}):
        (task,) = parse_row(1, json.dumps(row).encode())
        assert (task.answer, task.spans) == ("reject", ())


@pytest.mark.parametrize(
    ("predicted", "unchanged"),
    [([[4, 8, "A"], [0, 3, "B"]], True), ([[4, 8, "A"]], False), ([], False), (None, False), ([3], False)],
)
def test_a_row_of_doccanos_has_a_document_an_annotator_and_what_was_predicted(tmp_path, predicted, unchanged):
    row = {"id": 3, "text": TEXT, "label": [[0, 3, "B"], [4, 8, "A"]], "username": "ann", "predicted": predicted}
    (task,) = read_items(write(tmp_path / "a.jsonl", [row]))
    assert (task.doc, task.predicted, task.who, task.answer) == ("3", unchanged, "ann", "accept")


class Losing(BytesIO):
    def __iter__(self):
        return (line for number, line in enumerate(self.readlines()) if number != 1)


LETTERS = {"text": TEXT, "label": [[n, n + 1, "A"] for n in range(5)]}
STUDIO = {"data": {"text": TEXT}, "annotations": [{"result": [{"type": "labels"}] * 2}]}


# What reads lines, spans and so on, and what reads less of them in its place.
BREAKS = {
    "lines": ("labelwise.sources.json_rows.open_json", lambda path: Losing(path.read_bytes())),
    "spans": (
        "labelwise.sources.prodigy_row.clean",
        lambda line, text, spans, **rest: clean(line, text, spans[:3], **rest),
    ),
    "results": (
        "labelwise.sources.label_studio._read_results",
        lambda number, *_: ([], [Problem(number, Reason.INVALID)]),
    ),
    "tags": ("labelwise.sources.tags.decode_tags", lambda *_: []),
    "rows": (
        "pyarrow.parquet.ParquetFile.iter_batches",
        lambda file, *args, **named: [file.read(["tokens", "ner_tags"])[:2]],
    ),
}


@pytest.mark.guarantee("misread-rows")
@pytest.mark.parametrize(
    ("lost", "name", "rows", "problem"),
    [
        ("lines", "a.jsonl", [{"text": "Stir"}] * 3, "only 34 of 51 bytes were read"),
        ("spans", "a.jsonl", [LETTERS], "only 3 of 5 spans were read"),
        ("results", "a.json", [STUDIO], "only 1 of 2 results were read"),
        ("tags", "a.jsonl", [TAGGED], "only 0 of 1 tags that begin a span were read"),
        ("tags", "a.parquet", [TAGGED], "only 0 of 1 tags that begin a span were read"),
        ("rows", "a.parquet", [TAGGED] * 3, "only 2 of 3 rows were read"),
    ],
)
def test_what_a_reader_loses_is_miscounted(tmp_path, monkeypatch, lost, name, rows, problem):
    path = (write_parquet if name.endswith("parquet") else write)(tmp_path / name, rows)
    monkeypatch.setattr(*BREAKS[lost])
    assert f"incomplete read: {problem}" in read(path)


def test_hashes_of_one_public_task():
    """What Prodigy itself wrote for a text of one word without spans."""
    assert input_hash("Ewww") == -224066023
    assert task_hash(-224066023, []) == 92112113


MIDDLES = [
    {"tokens": ["Ny", "ran"], "ner_tags": ["M-A", "O"]},
    {"tokens": ["Bob", "Ny", "Lee"], "ner_tags": ["B-A", "M-A", "E-A"]},
]
ZEROS = [{"tokens": ["Ny", "ran", "x"], "ner_tags": tags} for tags in (["0", "0", "0"], ["A", "A", "0"])]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize(
    ("rows", "spans"), [(MIDDLES, [[("Ny", "A")], [("Bob Ny Lee", "A")]]), (ZEROS, [[], [("Ny ran", "A")]])]
)
def test_tags_are_read_by_all_rows_of_a_file(tmp_path, suffix, rows, spans):
    path = tmp_path / f"a.{suffix}"
    write_parquet(path, rows) if suffix == "parquet" else write(path, rows)
    assert [found for _, found in read(path)] == spans


def test_names_of_numbered_tags_are_read_by_all_rows(tmp_path):
    rows = [{"tokens": row["tokens"], "ner_tags": ["OBME".index(tag[0]) for tag in row["ner_tags"]]} for row in MIDDLES]
    tags = {"feature": {"names": ["O", "B-A", "M-A", "E-A"]}}
    path = write_parquet(tmp_path / "a.parquet", rows, tags)
    assert [found for _, found in read(path)] == [[("Ny", "A")], [("Bob Ny Lee", "A")]]

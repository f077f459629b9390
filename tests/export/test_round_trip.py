"""Annotation that goes to a tool and comes back is unchanged, except for edits there.

`recorded`: exports of Label Studio 1.23.2 and doccano 1.8.4 after an import of these texts and one span's deletion.
The recording client is in commit 1a823cc, `tests/export/tools.py`.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from labelwise.base.settings import read_section
from labelwise.corpus.ledger import Ledger
from labelwise.datasets.convert_brat import convert_brat
from labelwise.export.export_corpus import export
from labelwise.export.source import read_corpus
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions
from scripts.export import export_cli
from tests.conftest import Merging, call, read_jsonl, task, write_jsonl
from tests.export.test_export import write_predicted

RECORDED = Path(__file__).parent / "recorded"
FILES = {"label-studio": "label_studio_{}.json", "doccano": "doccano_{}.jsonl"}
LABELS = ("Amount", "Time span", "Vessel & lid")
# Name, text, and forms of each label; None where the text isn't annotated for it. One form is in another.
TEXTS = (
    ("lab/1.txt", "Add 5 mL 😀 to the lid of a 2 mL tube.\r\nWait for 1 h. ", ["5 mL", "2 mL"], ["1 h"], ["2 mL tube"]),
    ("lab/2.txt", "Für 3 h bei 37 °C schütteln.", [], ["3 h"], []),
    ("", "Nothing is measured here.", [], [], []),
    ("lab/4.txt", "Spin 1 mL for 90 s.", ["1 mL"], ["90 s"], None),
)
CHANGED = TEXTS[1][1]  # whose span is deleted in the tool
Texts = dict[str, tuple[str, list, dict, list]]


def spans_of(text: str, forms: tuple[list[str] | None, ...]) -> list[tuple[int, int, str]]:
    pairs = [(form, label) for label, found in zip(LABELS, forms, strict=True) for form in found or ()]
    return sorted((text.index(form), text.index(form) + len(form), label) for form, label in pairs)


def texts_of(corpus: Path) -> Texts:
    return {doc.text: (doc.name, doc.spans, doc.unknown, doc.rejected) for doc in read_corpus(corpus)}


def merge_back(folder: Path, exported: Path) -> tuple[Ledger, Texts]:
    back = Merging(folder)
    back.add("back", list(LABELS), [])
    back.declared[0]["path"] = exported.name
    back.add("other", ["Amount"], [{"text": "another text"}])
    shutil.copy(exported, folder / "tasks" / exported.name)
    ledger = back.run()
    texts = texts_of(folder / "corpus")
    del texts["another text"]
    return ledger, texts


@pytest.mark.parametrize("format", FILES)
def test_a_corpus_comes_back_with_one_change(format, merging, tmp_path):
    for number, label in enumerate(LABELS):
        rows = []
        for name, text, *forms in TEXTS:
            found = [span for span in spans_of(text, tuple(forms)) if span[2] == label]
            if forms[number] is not None:
                rows.append(task(text, *found, meta={"doc": name} if name else {}))
        merging.add(str(number), [label], rows)
    merging.run()
    before = texts_of(merging.root / "corpus")
    exported = RECORDED / FILES[format].format("gold")
    ledger, after = merge_back(tmp_path / "back", exported)
    assert ledger.rows == {"merged": 5}
    assert '"ground_truth": true' not in exported.read_text(encoding="utf8"), "it would win over all other answers"
    assert before[CHANGED][1] == [(4, 7, "Time span")]
    for text, (name, spans, *others) in before.items():
        # Label Studio and doccano give each text a number, which names a text that has no name.
        assert after[text] == (name or after[text][0], [] if text == CHANGED else spans, *others)
    assert [doc[2] for doc in after.values() if doc[2]] == [{"Vessel & lid": "none"}]


@pytest.mark.parametrize("format", FILES)
def test_only_edited_predictions_come_back(format, tmp_path):
    exported = RECORDED / FILES[format].format("predicted")
    ledger, after = merge_back(tmp_path / "back", exported)
    assert after == {CHANGED: ("lab/2.txt", [], {}, [])}
    # Label Studio exports submitted tasks; in doccano, imported ones are annotated.
    assert ledger.rows == {"merged": 2} | ({"prediction": 3} if format == "doccano" else {})
    if format == "doccano":
        rows = read_jsonl(exported)
        accepted = [{key: value for key, value in row.items() if key != "predicted"} for row in rows]
        write_jsonl(tmp_path / "accepted.jsonl", accepted)
        assert merge_back(tmp_path / "accepted", tmp_path / "accepted.jsonl")[0].rows == {"merged": 5}


@pytest.mark.parametrize("format", [*FILES, "prodigy"])
def test_an_export_is_no_annotation_before_a_tool_has_had_it(format, tmp_path):
    docs = {text: [(*span, 0.6) for span in spans_of(text, tuple(forms))] for _, text, *forms in TEXTS}
    export(write_predicted(tmp_path / "raw.jsonl", docs, LABELS), tmp_path / "out", format)
    (file,) = (tmp_path / "out").glob("[at]*.json*")
    ledger, after = merge_back(tmp_path / "back", file)
    why = "not annotated" if format == "label-studio" else "prediction"
    assert (ledger.rows, after) == ({"merged": 1, why: 4}, {})
    assert ledger.spans["in prediction task"] == ledger.spans.total() == (0 if format == "label-studio" else 7)
    if format == "prodigy":  # which gives saved answers a time
        saved = [{**row, "answer": "accept", "_timestamp": 1_790_000_000} for row in read_jsonl(file)]
        write_jsonl(tmp_path / "saved.jsonl", saved)
        assert merge_back(tmp_path / "saved", tmp_path / "saved.jsonl")[0].rows == {"merged": 5}


def verdict(text: str, form: str, label: str, answer: str, **more: object) -> dict:
    start = text.index(form)
    return task(text, (start, start + len(form), label), answer=answer, _view_id="ner", _is_binary=True, **more)


@pytest.fixture
def judged(merging) -> Path:
    """A corpus with verdicts on single spans, in complete texts and others."""
    text, name = TEXTS[0][1], {"meta": {"doc": TEXTS[0][0]}}
    merging.add("amount", ["Amount"], [task(text, (4, 8), label="Amount", **name), task(TEXTS[2][1])])
    verdicts = [
        verdict(text, "2 mL", "Amount", "reject"),
        verdict(text, "1 h", "Time span", "accept", **name),
        verdict(text, "Wait", "Time span", "reject"),
        verdict(text, "ube", "Vessel & lid", "reject"),  # within a token
        verdict(CHANGED, "3 h", "Time span", "accept"),
        verdict(CHANGED, "37 °", "Amount", "accept"),
    ]
    merging.add("verdicts", list(LABELS), verdicts, kind="binary")
    merging.run()
    return merging.root / "corpus"


@pytest.mark.parametrize("format", ["prodigy", "prodigy-by-label", "label-studio", "doccano"])
def test_verdicts_on_single_spans_come_back(format, judged, tmp_path):
    done = export(judged, tmp_path / "out", format)
    if format == "label-studio":  # which numbers people, and keeps a task's data
        tasks = json.loads((tmp_path / "out" / "tasks.json").read_text())
        tasks = [{**task, "annotations": [{**task["annotations"][0], "completed_by": 1}]} for task in tasks]
        (tmp_path / "out" / "tasks.json").write_text(json.dumps(tasks))
    if format != "prodigy-by-label":
        files = [file.name for file in (tmp_path / "out").iterdir() if file.name != "export.json"]
        entries = [
            {"name": name, "path": name, "labels": list(LABELS)}
            for name in files
            if name.endswith((".jsonl", "tasks.json"))
        ]
        (tmp_path / "out" / "datasets.yml").write_text(yaml.safe_dump(entries))
    merge_data([tmp_path / "out" / "datasets.yml"], tmp_path / "back", Settings())
    before = texts_of(judged)
    assert texts_of(tmp_path / "back") == before
    assert sum(len(rejected) for *_, rejected in before.values()) == 3
    assert not done.warnings or "Vessel & lid" in str(done.warnings)


def test_answers_to_predicted_spans_come_back_one_by_one(merging, tmp_path):
    """Prodigy isn't run: `mark` adds what it would to a row. Only new versions have `_is_binary`."""
    raw = tmp_path / "raw.jsonl"
    ann, bob, done = "Ann saw Rome.", "Bob saw it in Oslo.", "Eve saw Bonn."
    found = {
        ann: [(0, 3, "PER", 0.5), (8, 12, "PLACE", 0.55)],
        bob: [(0, 3, "PER", 0.4), (8, 10, "PLACE", 0.2), (14, 18, "PLACE", 0.9)],
        done: [(0, 3, "PER", 0.6)],
    }
    first, second, last = read_jsonl(write_predicted(raw, found, ["PER", "PLACE"]))
    first |= {"gold": [[0, 3, "PER"]], "uncovered": {"PER": "partial", "PLACE": "none"}}
    write_jsonl(raw, [second, first, {**second, "doc": "again"}, {**last, "uncovered": {}}])
    printed = call(export_cli, raw, tmp_path / "out", "--format", "prodigy-binary")
    assert "4 rows with 4 spans" in printed
    shown = [row for label in ("PER", "PLACE") for row in read_jsonl(tmp_path / "out" / f"{label}.jsonl")]
    assert [(row["text"], row["spans"][0]["start"], row["meta"]["score"], len(row["spans"])) for row in shown] == [
        (bob, 0, 0.4, 1),
        (ann, 8, 0.55, 1),
        (bob, 8, 0.2, 1),
        (bob, 14, 0.9, 1),
    ]
    assert len({row["_task_hash"] for row in shown}) == 4, "Prodigy asks once for equal hashes"
    saved = {"_timestamp": 1_790_000_000, "_annotator_id": "x-ann", "_session_id": "x-ann"}
    rows = [
        {**row, "answer": answer, **saved}
        for row, answer in zip(shown, ("accept", "accept", "reject", "ignore"), strict=True)
    ]
    del rows[0]["_is_binary"]
    merging.add("answers", ["PER", "PLACE"], [*rows, shown[-1]])
    assert merging.run().rows == {"merged": 3, "ignored": 1, "prediction": 1}
    assert texts_of(merging.root / "corpus") == {
        ann: (f"d/{ann}.txt", [(8, 12, "PLACE")], {"PER": "none", "PLACE": "partial"}, []),
        bob: (f"d/{bob}.txt", [(0, 3, "PER")], {"PER": "partial", "PLACE": "partial"}, [(8, 10, "PLACE")]),
    }
    write_jsonl(raw, [{**second, "found": []}])
    assert "no predicted span has a probability" in call(
        export_cli, raw, tmp_path / "out", "--format", "prodigy-binary", status=1
    )


def test_an_export_says_how_many_rows_it_wrote_and_which_label_has_none(judged, tmp_path):
    printed = call(export_cli, judged, tmp_path / "out", "--format", "prodigy-by-label")
    assert "2 rows with 1 span, and 6 verdicts on single spans, 3 of them rejected" in printed
    assert "No row for Time span, Vessel & lid" in printed
    declared = yaml.safe_load((tmp_path / "out" / "datasets.yml").read_text())
    assert {entry["name"]: len(read_jsonl(tmp_path / "out" / entry["path"])) for entry in declared} == {
        **dict(zip(LABELS, (2, 0, 0), strict=True)),
        "verdicts": 6,
    }
    assert all(
        "token_end" in span
        for entry in declared
        for row in read_jsonl(tmp_path / "out" / entry["path"])
        for span in row["spans"]
    )


def test_an_export_to_brat_says_what_it_cannot_keep_and_the_renaming_that_keeps_labels(judged, tmp_path):
    printed = call(export_cli, judged, tmp_path / "out", "--format", "brat")
    assert "3 rejected spans" in printed
    (line,) = (line.strip() for line in printed.splitlines() if "rename:" in line)
    assert yaml.safe_load(line) == {"rename": {"Time_span": "Time span", "Vessel_&_lid": "Vessel & lid"}}
    (tmp_path / "project.yml").write_text(f"brat:\n  {line}\n", encoding="utf8")
    section = read_section(tmp_path / "project.yml", "brat", BratOptions)
    convert_brat(tmp_path / "out", tmp_path / "converted", section)
    merge_data([tmp_path / "converted" / "datasets.yml"], tmp_path / "back", Settings())
    assert {text: spans for text, (_, spans, *_) in texts_of(tmp_path / "back").items()} == {
        text: spans for text, (_, spans, *_) in texts_of(judged).items()
    }
    raw = write_predicted(tmp_path / "raw.jsonl", {"ab": [(0, 1, "BODY PART"), (1, 2, "BODY_PART")]})
    assert "'BODY_PART' and 'BODY PART' are the same in brat" in call(export_cli, raw, tmp_path / "two", status=1)

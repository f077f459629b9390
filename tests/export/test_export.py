"""Spans that go back to brat and Prodigy are those that came from there."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from labelwise.corpus.tasks import input_hash
from labelwise.demo.write import make_demo
from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.brat import document_path, standoff
from labelwise.export.docs import ExportDoc
from labelwise.export.run import export
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.brat import Reading, find_documents, read_document
from labelwise.sources.convert_brat import convert_brat
from labelwise.sources.prodigy import parse_task
from labelwise.text import text_key
from scripts.export import export_cli
from tests.conftest import Merging


def spans_of(folder: Path) -> dict[str, tuple[str, list]]:
    """The text and the spans of each document of a brat folder, as the converter reads them."""
    documents = (read_document(stem, folder, Reading(discontinuous="cover")) for stem in find_documents(folder))
    return {one.path: (one.text, [mention[:3] for mention in one.mentions]) for one in documents}


def merge_brat(root: Path, brat: Path) -> Path:
    """Convert and merge a folder."""
    convert_brat(brat, root / "tasks", Reading(discontinuous="cover"))
    merge_data([root / "tasks" / "datasets.yml"], root / "corpus", Settings(docs_per_partition=10))
    return root / "corpus"


def test_brat_to_a_corpus_and_back_gives_the_same_spans(tmp_path):
    make_demo(tmp_path / "demo", docs=40)
    corpus = merge_brat(tmp_path, tmp_path / "demo")
    done = export(corpus, tmp_path / "out", "brat")
    before, after = spans_of(tmp_path / "demo"), spans_of(tmp_path / "out")
    assert after == before
    assert (done.texts, done.spans) == (40, sum(len(spans) for _, spans in before.values()))


def test_hostile_texts_come_back_as_they_were(tmp_path):
    """Line ends of all kinds, spans across them, nested ones, astral characters, and a text without spans."""
    folder = tmp_path / "brat" / "a" / "b"
    folder.mkdir(parents=True)
    text = "One\r\ntwo 😀 three\n\n  four\u2028five\nsix "
    found = [(0, 8, "A"), (5, 8, "B"), (9, 10, "A"), (11, 24, "B"), (20, 24, "A"), (25, 33, "A")]
    lines = [standoff(text, (start, end, label), n) for n, (start, end, label) in enumerate(found, 1)]
    (folder / "x.txt").write_bytes(text.encode())
    (folder / "x.ann").write_bytes("".join(lines).encode())
    (folder / "empty.txt").write_text("Nothing here")
    (folder / "empty.ann").write_text("")
    corpus = merge_brat(tmp_path, tmp_path / "brat")
    export(corpus, tmp_path / "out", "brat")
    assert spans_of(tmp_path / "out") == spans_of(tmp_path / "brat")
    assert spans_of(tmp_path / "out")["a/b/x.txt"] == (text, sorted(found))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b.txt", "a/b.txt"),
        ("b", "b.txt"),
        ("", "00ff.txt"),
        ("../../etc/passwd", "etc/passwd.txt"),
        ("/etc/x.txt", "etc/x.txt"),
        ("a:b?\n.txt", "a_b__.txt"),
        ("..", "00ff.txt"),
    ],
)
def test_a_document_never_leaves_its_folder(name, path):
    assert document_path(ExportDoc("x", name, "00ff", [], {}, {})).as_posix() == path


@pytest.mark.parametrize("name", ["漢" * 200, "a" * 300 + ".txt", "/".join(["x" * 250] * 3)])
def test_long_names_are_cut_to_what_file_systems_allow(name, tmp_path):
    path = write(tmp_path, PredictedDoc("0a" * 12, "text", [(0, 4, "A")], [], [], doc=name))
    assert export(path, tmp_path / "out", "brat").texts == 1
    assert len(list((tmp_path / "out").rglob("*.ann"))) == 1


def test_a_document_that_is_named_as_anothers_folder_has_another_name(tmp_path):
    docs = [PredictedDoc(f"{n}" * 24, f"text {n}", [], [], [], doc=name) for n, name in enumerate(["x.txt", "x.txt/y"])]
    export(write(tmp_path, *docs), tmp_path / "out", "brat")
    texts = {file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.txt")}
    assert texts == {"x.txt", f"{'1' * 24}.txt"}


def test_labels_of_brat_have_no_white_space(tmp_path):
    path = write(tmp_path, PredictedDoc("0a", "text", [(0, 4, "Job Title")], [], [], doc="d"))
    export(path, tmp_path / "out", "brat")
    (document,) = (read_document(stem, tmp_path / "out") for stem in find_documents(tmp_path / "out"))
    assert [mention[:3] for mention in document.mentions] == [(0, 4, "Job_Title")]
    both = PredictedDoc("0b", "text", [(0, 4, "Job Title"), (0, 4, "Job_Title")], [], [])
    with pytest.raises(InputError, match="are the same in brat"):
        export(write(tmp_path, both), tmp_path / "out", "brat")


def test_what_nobody_looked_for_is_no_negative_when_it_comes_back(merging, tmp_path):
    merging.add("a", ["A"], [{"text": "big cat"}])
    merging.add("b", ["B"], [{"text": "big cat", "spans": [{"start": 4, "end": 7, "label": "B"}]}, {"text": "owl"}])
    merging.run()
    export(merging.root / "corpus", tmp_path / "all", "prodigy")
    again = Merging(tmp_path / "again")
    again.add("all", ["A", "B"], read_tasks(tmp_path / "all" / "all.jsonl"))
    labels = again.run().labels
    assert {label: (counts["complete"], counts["none"]) for label, counts in labels.items()} == {
        "A": (1, 1),
        "B": (2, 0),
    }


def write(folder: Path, *docs: PredictedDoc) -> Path:
    path = folder / "written.jsonl"
    with path.open("wb") as file:
        write_predictions(docs, file)
    return path


@pytest.mark.parametrize("format", ["prodigy", "prodigy-by-label"])
def test_a_prediction_is_no_gold_before_somebody_has_saved_it(merging, tmp_path, format):
    spans = [(0, 4, "A")]
    docs = [PredictedDoc(n * 24, f"text {n}", spans, [], [], doc="d", uncovered={"A": "none"}) for n in "12"]
    export(write(tmp_path, *docs), tmp_path / "out", format)
    (file,) = (tmp_path / "out").glob("*.jsonl")
    exported = read_tasks(file)
    meta = {"doc": "d", "predicted": "yes"} | ({"labels": "A"} if format == "prodigy-by-label" else {})
    assert [("answer" in task, task["meta"]) for task in exported] == [(False, meta)] * 2
    saved = {**exported[1], "answer": "accept", "_timestamp": 1_790_000_000}
    merging.add("a", ["A"], [exported[0], saved])
    ledger = merging.run()
    assert ledger.rows == {"prediction": 1, "merged": 1}
    assert (ledger.spans["in prediction task"], ledger.spans["entity"]) == (1, 1)
    with pytest.raises(InputError, match="1 prediction that nobody has saved; annotate or remove"):
        merging.run(strict=True)


def test_predictions_of_raw_texts_are_in_no_order(tmp_path):
    docs = [PredictedDoc(key * 24, f"text {key}", [], [], [], doc=key) for key in "cab"]
    assert export(write(tmp_path, *docs), tmp_path / "out", "brat").texts == 3


def test_texts_of_one_name_are_two_files(tmp_path):
    docs = [PredictedDoc(f"{n}" * 24, f"text {n}", [(0, 4, "A")], [], [], doc="same") for n in (1, 2)]
    path = tmp_path / "predictions.jsonl"
    with path.open("wb") as file:
        write_predictions(docs, file)
    export(path, tmp_path / "out", "brat")
    texts = {file.name: file.read_text() for file in (tmp_path / "out").glob("*.txt")}
    assert texts == {"same.txt": "text 1", f"same-{'2' * 12}.txt": "text 2"}


def test_prodigy_tasks_are_those_of_a_corpus(merging, tmp_path):
    """By label: only texts that are complete for it."""
    a = [{"text": "big cat", "spans": [{"start": 0, "end": 3, "label": "A"}], "meta": {"doc": "d1"}}, {"text": "owl"}]
    merging.add("a", ["A"], a)
    merging.add("b", ["B"], [{"text": "big cat", "spans": [{"start": 4, "end": 7, "label": "B"}]}])
    merging.run()
    export(merging.root / "corpus", tmp_path / "all", "prodigy")
    tasks = {task["text"]: task for task in read_tasks(tmp_path / "all" / "all.jsonl")}
    assert [(span["start"], span["label"]) for span in tasks["big cat"]["spans"]] == [(0, "A"), (4, "B")]
    assert tasks["big cat"]["meta"] == {"doc": "d1"}
    assert tasks["owl"]["_input_hash"] == input_hash("owl")
    done = export(merging.root / "corpus", tmp_path / "labels", "prodigy-by-label")
    assert done.spans == 2
    texts = {file.stem: [task["text"] for task in read_tasks(file)] for file in (tmp_path / "labels").glob("*.jsonl")}
    assert {label: sorted(found) for label, found in texts.items()} == {"A": ["big cat", "owl"], "B": ["big cat"]}


def test_texts_for_a_new_label_have_no_spans(demo_corpus, tmp_path):
    done = export(demo_corpus, tmp_path / "out", "texts")
    tasks = read_tasks(tmp_path / "out" / "texts.jsonl")
    assert (done.texts, done.spans) == (30, 0)
    assert len({task["text"] for task in tasks}) == 30
    assert {key for task in tasks for key in task} == {"text", "meta"}


def read_tasks(file: Path) -> list[dict]:
    lines = file.read_bytes().splitlines()
    assert all(parse_task(line)[1] == "" for line in lines)
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("certain", [True, False])
def test_what_was_predicted_is_to_be_annotated_the_least_certain_first(certain, tmp_path):
    """Texts that are complete for the label are left out; without probabilities, the most spans come first."""
    rows = {"sure": [0.99], "unsure": [0.97, 0.55], "none": [], "known": [0.5], "low": [0.1]}
    docs = []
    for number, (text, scores) in enumerate(rows.items()):
        spans = [(n, n + 1, "A") for n in range(len(scores))]
        found = [(*span, score) for span, score in zip(spans, scores, strict=True)] if certain else []
        unknown = {"B": "none"} if text == "known" else {"A": "none", "B": "none"}
        docs.append(PredictedDoc(f"{number:02d}", text, spans, [], [], uncovered=unknown, found=found))
    path = tmp_path / "predictions.jsonl"
    with path.open("wb") as file:
        write_predictions(docs, file)
    done = export(path, tmp_path / "out", "prodigy-by-label")
    tasks = read_tasks(tmp_path / "out" / "A.jsonl")
    order = ["unsure", "low", "sure", "none"] if certain else ["unsure", "sure", "low", "none"]
    assert [task["text"] for task in tasks] == order
    assert done.ordered_by == ("the least certain span first" if certain else "the most spans first")
    assert len(read_tasks(tmp_path / "out" / "B.jsonl")) == 5
    if certain:
        assert tasks[0]["spans"][1] == {"start": 1, "end": 2, "label": "A", "score": 0.55}


def test_what_is_annotated_by_now_is_left_out(merging, tmp_path):
    """Of predictions for raw texts, which know nothing of a corpus: one is complete for A, one for both labels."""
    merging.add("a", ["A"], [{"text": "one cat"}, {"text": "two dogs"}])
    merging.add("b", ["B"], [{"text": "two dogs"}])
    merging.run()
    unknown = {"A": "none", "B": "none", "NEW": "none"}
    texts = ("one cat", "two dogs", "three birds")
    docs = [PredictedDoc(text_key(text.encode()).hex(), text, [], [], [], uncovered=unknown) for text in texts]
    with (tmp_path / "found.jsonl").open("wb") as file:
        write_predictions(docs, file)
    corpus = merging.root / "corpus"
    export(tmp_path / "found.jsonl", tmp_path / "out", "prodigy-by-label", annotated=corpus)
    found = {
        path.stem: [json.loads(line)["text"] for line in path.read_text().splitlines()]
        for path in (tmp_path / "out").glob("*.jsonl")
    }
    assert found == {"A": ["three birds"], "B": ["one cat", "three birds"], "NEW": list(texts)}
    for source, format in ((tmp_path / "found.jsonl", "prodigy"), (corpus, "prodigy-by-label")):
        with pytest.raises(InputError, match="--annotated is for predictions"):
            export(source, tmp_path / "out", format, annotated=corpus)


def test_an_export_that_is_none_is_not_replaced(tmp_path, demo_corpus):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="export"):
        export(demo_corpus, tmp_path, "brat")
    with pytest.raises(InputError, match="neither a merged corpus nor a file of predictions"):
        export(tmp_path / "nowhere", tmp_path / "out", "brat")
    with pytest.raises(InputError, match="there is no split 'tests'"):
        export(demo_corpus, tmp_path / "out", "brat", ["tests"])


@pytest.mark.parametrize("what", ["corrected", "put there"])
def test_what_a_person_corrected_or_put_into_an_export_stays(tmp_path, demo_corpus, what):
    out = tmp_path / "out"
    export(demo_corpus, out, "brat")
    file = next(out.rglob("*.ann")) if what == "corrected" else out / "notes.txt"
    file.write_text("mine")
    with pytest.raises(
        InputError, match=rf"{file.name}: this (was changed since|isn't part of) the export, and would be"
    ):
        export(demo_corpus, out, "prodigy")
    assert file.read_text() == "mine"


def test_the_command_exports_a_split(tmp_path, demo_corpus):
    app = typer.Typer()
    app.command()(export_cli)
    result = CliRunner().invoke(app, [str(demo_corpus), str(tmp_path / "out"), "--splits", "test"])
    assert result.exit_code == 0, result.output
    manifest = json.loads((demo_corpus / "manifest.json").read_text())
    assert len(list((tmp_path / "out").rglob("*.txt"))) == manifest["splits"]["test"]["texts"]
    assert export(demo_corpus, tmp_path / "out", "brat").texts == 30  # replaced

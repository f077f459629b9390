import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from labelwise.annotations import Task
from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.tasks import input_hash, task_hash
from labelwise.corpus.tokenizer import TokenizerRules
from labelwise.datasets.convert_brat import convert_brat
from labelwise.demo.write import make_demo
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.export_corpus import export
from labelwise.export.originals import Originals
from labelwise.export.source import read_corpus
from labelwise.export.standoff import standoff
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings, read_settings
from labelwise.sources.brat import BratOptions, find_documents, read_document
from labelwise.sources.formats import read_items
from scripts.export import export_cli
from tests.conftest import ROOT, Merging, call, read_jsonl, task

ORDERED = {"sure": [(0, 4, "A", 0.99)], "unsure": [(0, 2, "A", 0.97), (2, 6, "B & <C>", 0.55)], "none": []}


def write_predicted(
    path: Path, docs: Mapping[str, Sequence[tuple]], unknown: Sequence[str] = (), name: str = "d/{}.txt"
) -> Path:
    """Write a file of predictions.

    docs (Mapping): spans by text, with probabilities or without.
    unknown (Sequence[str]): labels that the texts aren't complete for.
    name (str): pattern of the documents' names.
    """
    predictions = []
    for text, spans in docs.items():
        scored = [span for span in spans if len(span) == 4]
        doc = PredictedDoc(text_key(text).hex(), text, [span[:3] for span in spans], [], found=scored)
        doc.doc, doc.uncovered = name.format(text), dict.fromkeys(unknown, "none")
        predictions.append(doc)
    write_predictions(predictions, path)
    return path


def read_tasks(file: Path) -> list[dict]:
    assert all(isinstance(item, Task) for item in read_items(file))
    return read_jsonl(file)


def spans_of(folder: Path) -> dict[str, tuple[str, list]]:
    documents = (read_document(stem, folder, BratOptions(discontinuous="cover")) for stem in find_documents(folder))
    return {
        document.path: (document.task.text, [(span.start, span.end, span.label) for span in document.task.spans])
        for document in documents
    }


def test_brat_to_a_corpus_and_back_gives_the_same_spans(tmp_path):
    """All line ends, spans across them, nested spans, astral characters, and a text without spans."""
    brat = tmp_path / "brat"
    make_demo(brat, docs=20)
    (brat / "a" / "b").mkdir(parents=True)
    text = "One\r\ntwo 😀 three\n\n  four\u2028five\nsix "
    hostile = [(0, 8, "A"), (5, 8, "B"), (9, 10, "A"), (11, 24, "B"), (20, 24, "A"), (25, 33, "A")]
    lines = [standoff(text, span, number) for number, span in enumerate(hostile, 1)]
    (brat / "a" / "b" / "x.txt").write_bytes(text.encode())
    (brat / "a" / "b" / "x.ann").write_bytes("".join(lines).encode())
    (brat / "empty.txt").write_text("Nothing here")
    (brat / "empty.ann").write_text("")
    convert_brat(brat, tmp_path / "tasks", BratOptions(discontinuous="cover"))
    merge_data([tmp_path / "tasks" / "datasets.yml"], tmp_path / "corpus", Settings(docs_per_partition=10))
    originals = Originals(brat, BratOptions(discontinuous="cover"))
    done = export(tmp_path / "corpus", tmp_path / "out", "brat", originals=originals)
    before, after = spans_of(brat), spans_of(tmp_path / "out")
    assert after == before
    assert after["a/b/x.txt"] == (text, sorted(hostile))
    assert (done.rows, done.spans) == (22, sum(len(spans) for _, spans in before.values()))


@pytest.mark.parametrize(
    "how",
    [
        BratOptions(split="auto"),
        BratOptions(missing_ann="empty", discontinuous="cover"),
        BratOptions(labels=["PLACE", "PERSON"]),
    ],
)
def test_merging_a_data_set_for_each_label_gives_the_same_docs(tmp_path, how):
    """Some texts in folders of splits, one without annotations, one unread."""
    brat = tmp_path / "brat"
    make_demo(brat, docs=20, labels=4, words=60)
    for domain, folder in (("news", "train"), ("court", "dev"), ("kitchen", "test")):
        if (brat / domain).is_dir():
            (brat / domain).rename(brat / folder)
    (brat / "unread.txt").write_text("nobody has seen Ann")
    (brat / "empty.txt").write_text("nothing here")
    (brat / "empty.ann").write_text("")
    converted = convert_brat(brat, tmp_path / "tasks", how)
    done = export(tmp_path / "tasks", tmp_path / "prodigy", "prodigy-by-label")
    for name in ("tasks", "prodigy"):
        merge_data([tmp_path / name / "datasets.yml"], tmp_path / f"{name}-corpus", Settings())
    # Only the names of the datasets differ.
    assert list(read_corpus(tmp_path / "tasks-corpus")) == list(read_corpus(tmp_path / "prodigy-corpus"))
    labels = yaml.safe_load((tmp_path / "tasks/datasets.yml").read_text())[0]["labels"]
    spans = sum(converted.labels[label] for label in labels)
    assert (done.rows, done.spans) == (converted.files.total() * len(labels), spans)


def test_each_task_has_prodigys_hashes_and_the_tokens_of_the_projects_tokenizer(tmp_path):
    """Prodigy's own tokenizer would split this span and refuse the row."""
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "d.txt").write_text("a cat, 60degC")
    (tmp_path / "brat" / "d.ann").write_text("T1\tn 9 13\tdegC\nT2\tN 2 5\tcat\n")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", BratOptions(split="test"))
    settings = Settings(tokenizer=TokenizerRules(infixes=(r"(?<=[0-9])(?=[a-z])",)))
    export(tmp_path / "tasks", tmp_path / "out", "prodigy-by-label", settings=settings)
    declared = yaml.safe_load((tmp_path / "out" / "datasets.yml").read_text())
    assert [(entry["name"], entry["labels"], entry["split"]) for entry in declared] == [
        ("test-N", ["N"], "test"),
        ("test-n", ["n"], "test"),
    ]
    [task] = read_tasks(tmp_path / "out" / declared[1]["path"])
    *tokens, last = task.pop("tokens")
    assert [token["text"] for token in tokens] == ["a", "cat", ",", "60"]
    assert last == {"text": "degC", "start": 9, "end": 13, "id": 4, "ws": False}
    marked = task["spans"][0]
    assert (marked.pop("token_start"), marked.pop("token_end")) == (4, 4)
    assert task == {
        "text": "a cat, 60degC",
        "_input_hash": input_hash("a cat, 60degC"),
        "_task_hash": task_hash(input_hash("a cat, 60degC"), [{"start": 9, "end": 13, "label": "n"}]),
        "_is_binary": False,
        "_view_id": "ner_manual",
        "spans": [{"start": 9, "end": 13, "label": "n"}],
        "answer": "accept",
        "meta": {"doc": "d.txt"},
    }


def write_infixes(root: Path, infix: str) -> None:
    (root / "project.yml").touch()
    (root / "configs").mkdir()
    (root / "configs/tokenizer.yml").write_text(f"tokenizer:\n  infixes: ['{infix}']\n")


def test_tokens_are_those_of_the_corpus_or_of_the_project_and_are_cut_at_spans(tmp_path, monkeypatch):
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "d.txt").write_text("60degC 5x")
    (tmp_path / "brat" / "d.ann").write_text("T1\tN 2 5\tdeg\n")
    write_infixes(tmp_path, "(?<=[0-9])(?=[a-z])")
    convert_brat(tmp_path / "brat", tmp_path / "tasks", BratOptions(split="test"))
    merge_data([tmp_path / "tasks" / "datasets.yml"], tmp_path / "corpus", read_settings(tmp_path / "project.yml"))
    write_predicted(tmp_path / "raw.jsonl", {"60degC 5x": [(2, 5, "N")]})

    def tokens_of(name: str, *options: object) -> list[str]:
        call(export_cli, tmp_path / name, tmp_path / "out", "--format", "prodigy", *options)
        (task,) = read_tasks(tmp_path / "out" / "all.jsonl")
        tokens = [token["text"] for token in task["tokens"]]
        assert [token["id"] for token in task["tokens"]] == [*range(len(tokens))]
        assert ["".join(tokens[span["token_start"] : span["token_end"] + 1]) for span in task["spans"]] == ["deg"]
        return tokens

    monkeypatch.chdir(tmp_path)
    for name in ("corpus", "tasks", "raw.jsonl"):
        assert tokens_of(name) == ["60", "deg", "C", "5", "x"], name
    other = tmp_path / "brat" / "project.yml"
    write_infixes(other.parent, "(?=e)")
    monkeypatch.chdir(other.parent)
    assert tokens_of("corpus") == ["60", "deg", "C", "5", "x"]
    assert tokens_of("corpus", "--project", other) == tokens_of("tasks") == ["60", "d", "eg", "C", "5x"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b.txt", "a/b.txt"),
        ("b", "b.txt"),
        ("../../etc/passwd", "etc/passwd.txt"),
        ("/etc/x.txt", "etc/x.txt"),
        ("a:b?\n.txt", "a_b__.txt"),
        ("漢" * 200, "漢" * 66 + ".txt"),
    ],
)
def test_a_document_never_leaves_its_folder(name, path, tmp_path):
    export(write_predicted(tmp_path / "raw.jsonl", {"x": []}, name=name), tmp_path / "out", "brat")
    assert (tmp_path / "out" / path).read_text() == "x"


def test_names_that_differ_in_case_or_composition_alone_are_two_files_on_every_machine(tmp_path):
    texts = ["PER", "per", "caf\u00e9", "cafe\u0301", "STRASSE", "straße"]
    raw = write_predicted(tmp_path / "raw.jsonl", {text: [(0, 3, "A")] for text in texts})
    export(raw, tmp_path / "out", "brat")
    written = [file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.*")]
    assert len({unicodedata.normalize("NFC", name.casefold()) for name in written}) == len(written)
    documents = [read_document(stem, tmp_path / "out") for stem in find_documents(tmp_path / "out")]
    assert sorted(document.task.text for document in documents) == sorted(texts)


def test_of_a_corpus_each_format_says_what_it_is_complete_for(merging, tmp_path):
    merging.add("a", ["A"], [{"text": "big cat", "meta": {"doc": "d1"}}])
    merging.add("b", ["B"], [task("big cat", (4, 7, "B")), task("owl")])
    merging.run()
    corpus = merging.root / "corpus"
    export(corpus, tmp_path / "all", "prodigy")
    tasks = {task["text"]: task for task in read_tasks(tmp_path / "all" / "all.jsonl")}
    marked = {"start": 4, "end": 7, "label": "B", "token_start": 1, "token_end": 1}
    assert tasks["big cat"]["spans"] == [marked]
    assert tasks["big cat"]["meta"] == {"doc": "d1"}
    assert tasks["owl"]["_input_hash"] == input_hash("owl")
    assert export(corpus, tmp_path / "labels", "prodigy-by-label").spans == 1
    texts = {file.stem: {task["text"] for task in read_tasks(file)} for file in (tmp_path / "labels").glob("*.jsonl")}
    assert texts == {"A": {"big cat"}, "B": {"big cat", "owl"}}
    export(corpus, tmp_path / "doccano", "doccano")
    export(corpus, tmp_path / "label-studio", "label-studio")
    rows = json.loads((tmp_path / "label-studio" / "tasks.json").read_text())
    assert [row["data"]["text"] for row in rows] == list(tasks), "a corpus stays in its order"
    assert [row["text"] for row in read_jsonl(tmp_path / "doccano" / "all.jsonl")] == list(tasks)
    # Label Studio takes imported annotations for ground truth unless they say otherwise.
    assert not any(row["annotations"][0]["ground_truth"] for row in rows)
    again = Merging(tmp_path / "again")
    again.add("all", ["A", "B"], [*tasks.values()])
    labels = again.run().labels
    assert {label: (counts["complete"], counts["none"]) for label, counts in labels.items()} == {
        "A": (1, 1),
        "B": (2, 0),
    }


@pytest.mark.parametrize("certain", [True, False])
def test_predictions_are_exported_least_certain_first(certain, tmp_path):
    rows = {"sure": [0.99], "unsure": [0.97, 0.55], "none": [], "low": [0.1]}
    docs = {
        text: [(n, n + 1, "A", score)[: 4 if certain else 3] for n, score in enumerate(scores)]
        for text, scores in rows.items()
    }
    raw = write_predicted(tmp_path / "raw.jsonl", docs, ["A", "B"])
    for format, file in (("prodigy-by-label", "A.jsonl"), ("prodigy", "all.jsonl")):
        done = export(raw, tmp_path / "out", format)
        tasks = read_tasks(tmp_path / "out" / file)
        order = ["low", "unsure", "sure", "none"] if certain else ["unsure", "sure", "low", "none"]
        assert [task["text"] for task in tasks] == order
        assert not any("answer" in task for task in tasks), "nobody has seen them"
        assert done.ordered_by == (
            "the most expected mistakes per word first" if certain else "the most spans per word first"
        )
        where = {"start": 1, "end": 2, "label": "A", "token_start": 1, "token_end": 1}
        assert tasks[order.index("unsure")]["spans"][1] == where | ({"score": 0.55} if certain else {})


def test_overlapping_spans_are_for_spans_manual(tmp_path):
    raw = write_predicted(tmp_path / "raw.jsonl", {"big cat": [(0, 7, "A"), (0, 3, "B"), (4, 7, "B")]}, ["A", "B"])
    assert not export(raw, tmp_path / "out", "prodigy-by-label").warnings
    export(raw, tmp_path / "all", "prodigy")
    assert read_tasks(tmp_path / "all/all.jsonl")[0]["_view_id"] == "spans_manual"
    write_predicted(raw, {"big cat": [(0, 7, "A"), (0, 3, "B"), (4, 7, "A")]}, ["A", "B"])
    printed = call(export_cli, raw, tmp_path / "out", "--format", "prodigy-by-label")
    assert "Spans overlap in A.jsonl" in printed
    assert "spans.manual" in printed


@pytest.mark.parametrize("certain", [True, False])
def test_a_long_text_does_not_come_first_for_its_length(certain, tmp_path):
    """It has the least certain span, but fewer expected errors per word."""
    long, short = "a" + " b" * 99, "a b c d"
    docs = {long: [(0, 1, "A", 0.5), (2, 3, "A", 0.5)], short: [(0, 1, "A", 0.6)]}
    docs = {text: [span[: 4 if certain else 3] for span in spans] for text, spans in docs.items()}
    export(write_predicted(tmp_path / "raw.jsonl", docs, ["A"]), tmp_path / "out", "prodigy-by-label")
    assert [task["text"] for task in read_tasks(tmp_path / "out/A.jsonl")] == [short, long]


def test_each_tool_has_predictions_in_its_form_and_in_the_same_order(tmp_path):
    raw = write_predicted(tmp_path / "raw.jsonl", ORDERED, ["D"])
    for format in ("label-studio", "doccano", "brat"):
        export(raw, tmp_path / format, format)
    tasks = json.loads((tmp_path / "label-studio" / "tasks.json").read_text(encoding="utf8"))
    assert [task["data"] for task in tasks] == [
        {"text": name, "doc": f"d/{name}.txt"} for name in ("unsure", "sure", "none")
    ]
    assert not any("annotations" in task for task in tasks)
    predictions = [task["predictions"][0] for task in tasks]
    assert [round(prediction["score"], 2) for prediction in predictions] == [0.52, 0.99, 1.0]
    assert [[result["score"] for result in prediction["result"]] for prediction in predictions] == [
        [0.97, 0.55],
        [0.99],
        [],
    ]
    assert predictions[0]["result"][1]["value"] == {"start": 2, "end": 6, "text": "sure", "labels": ["B & <C>"]}
    (version,) = {prediction["model_version"] for prediction in predictions}
    assert version.startswith("raw.jsonl ")
    view = ElementTree.parse(tmp_path / "label-studio" / "config.xml").getroot()
    assert [label.get("value") for label in view.iter("Label")] == ["A", "B & <C>", "D"]
    assert len({label.get("background") for label in view.iter("Label")}) == 3
    (labels,), (text,) = view.iter("Labels"), view.iter("Text")
    assert (labels.get("toName"), text.get("name"), text.get("value")) == ("text", "text", "$text")
    rows = read_jsonl(tmp_path / "doccano" / "all.jsonl")
    assert [row["text"] for row in rows] == ["unsure", "sure", "none"]
    assert rows[1]["predicted"] == rows[1]["label"] == [[0, 4, "A"]]
    assert len({tuple(row) for row in rows}) == 1, "pandas, by which doccano reads them, fills up what a row hasn't"
    assert (tmp_path / "brat" / "documents.tsv").read_text(encoding="utf8").splitlines() == [
        "document\tmistakes_per_word",
        "d/unsure.ann\t0.480",
        "d/sure.ann\t0.010",
        "d/none.ann\t0.000",
    ]
    sections = (tmp_path / "brat" / "annotation.conf").read_text(encoding="utf8").split("\n\n")
    assert sections[0] == "[entities]\nA\nB_&_<C>\nD"
    assert [section.split()[0] for section in sections] == ["[entities]", "[relations]", "[events]", "[attributes]"]


def test_the_command_exports_a_split_and_replaces_an_export_and_nothing_else(tmp_path, demo_corpus):
    (tmp_path / "out").mkdir()  # an empty folder is replaced, too
    assert export(demo_corpus, tmp_path / "out", "texts").rows == 30
    assert {key for task in read_tasks(tmp_path / "out" / "texts.jsonl") for key in task} == {"text", "meta"}
    call(export_cli, demo_corpus, tmp_path / "out", "--splits", "test", "--originals", demo_corpus.parent / "brat")
    manifest = json.loads((demo_corpus / "manifest.json").read_text())
    assert len(list((tmp_path / "out").rglob("*.txt"))) == manifest["splits"]["test"]["texts"]
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="export"):
        export(demo_corpus, tmp_path, "brat")
    for folder in (tmp_path / "nowhere", ROOT / "assets" / "prodigy"):
        with pytest.raises(InputError, match="neither a merged corpus nor predictions"):
            export(folder, tmp_path / "out", "brat")
    with pytest.raises(InputError, match="there is no split 'tests'"):
        export(demo_corpus, tmp_path / "out", "brat", ["tests"])


def test_the_texts_of_a_corpus_are_in_random_order_whatever_their_splits(demo_corpus, tmp_path):
    export(demo_corpus, tmp_path / "out", "texts")
    texts = [row["text"] for row in read_jsonl(tmp_path / "out/texts.jsonl")]
    splits = {doc.text: split for split in SPLITS for doc in read_corpus(demo_corpus, [split])}
    assert {splits[text] for text in texts[: len(texts) // 2]} == {*SPLITS}
    assert sorted(texts) == sorted(splits)
    assert texts == sorted(texts, key=text_key), "keys are digests"

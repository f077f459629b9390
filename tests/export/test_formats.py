"""What the tools are given beside texts and spans: an order, and configurations."""

import json
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest

from labelwise.errors import InputError
from labelwise.evaluate.predictions import PredictedDoc, write_predictions
from labelwise.export.run import FORMATS, ExportFormat, export
from tests.conftest import write_jsonl


@pytest.fixture
def predictions(tmp_path) -> Path:
    """Three texts: the pipeline is sure of one, unsure of another, and finds nothing in the third."""
    found = {"sure": [(0, 4, "A", 0.99)], "unsure": [(0, 2, "A", 0.97), (2, 6, "B & <C>", 0.55)], "none": []}
    docs = [
        PredictedDoc(f"{number:02d}", text, [], [], [], uncovered={"D": "none"}, doc=f"d/{text}.txt", found=spans)
        for number, (text, spans) in enumerate(found.items())
    ]
    with (tmp_path / "raw.jsonl").open("wb") as file:
        write_predictions(docs, file)
    return tmp_path / "raw.jsonl"


def written(source: Path, out: Path, format: ExportFormat) -> list[dict]:
    export(source, out, format)
    if format == "label-studio":
        return json.loads((out / "tasks.json").read_text(encoding="utf8"))
    return [json.loads(line) for line in (out / "all.jsonl").read_text(encoding="ascii").splitlines()]


def test_every_format_is_in_the_table():
    assert get_args(ExportFormat) == tuple(FORMATS)


def test_label_studio_has_predictions_with_their_certainty_the_least_certain_first(predictions, tmp_path):
    tasks = written(predictions, tmp_path / "out", "label-studio")
    assert [task["data"] for task in tasks] == [
        {"text": name, "doc": f"d/{name}.txt"} for name in ("unsure", "sure", "none")
    ]
    assert not any("annotations" in task for task in tasks)
    made = [task["predictions"][0] for task in tasks]
    assert [round(one["score"], 2) for one in made] == [0.1, 0.98, 1.0]
    assert [[result["score"] for result in one["result"]] for one in made] == [[0.97, 0.55], [0.99], []]
    assert made[0]["result"][1]["value"] == {"start": 2, "end": 6, "text": "sure", "labels": ["B & <C>"]}
    (version,) = {one["model_version"] for one in made}
    assert version.startswith("raw.jsonl ")
    with predictions.open("a") as file:
        file.write("\n".join(predictions.read_text().splitlines()[:1]) + "\n")
    other = written(predictions, tmp_path / "out", "label-studio")[0]["predictions"][0]["model_version"]
    assert other != version


def test_label_studio_has_a_configuration_with_all_labels(predictions, tmp_path):
    export(predictions, tmp_path / "out", "label-studio")
    view = ElementTree.parse(tmp_path / "out" / "config.xml").getroot()
    assert [label.get("value") for label in view.iter("Label")] == ["A", "B & <C>", "D"]
    assert len({label.get("background") for label in view.iter("Label")}) == 3
    (labels,), (text,) = view.iter("Labels"), view.iter("Text")
    assert (labels.get("toName"), text.get("name"), text.get("value")) == ("text", "text", "$text")


def test_doccano_has_the_least_certain_first_and_what_was_predicted(predictions, tmp_path):
    rows = written(predictions, tmp_path / "out", "doccano")
    assert [row["text"] for row in rows] == ["unsure", "sure", "none"]
    assert rows[1]["predicted"] == rows[1]["label"] == [[0, 4, "A"]]
    assert len({tuple(row) for row in rows}) == 1, "pandas, by which doccano reads them, fills up what a row hasn't"


def test_brat_has_its_labels_and_a_list_of_documents(predictions, tmp_path):
    done = export(predictions, tmp_path / "out", "brat")
    assert done.ordered_by == "the least certain span first"
    lines = (tmp_path / "out" / "documents.tsv").read_text(encoding="utf8").splitlines()
    assert lines == [
        "document\tuncertainty",
        "d/unsure.ann\t0.900",
        "d/sure.ann\t0.020",
        "d/none.ann\t0.000",
    ]
    sections = (tmp_path / "out" / "annotation.conf").read_text(encoding="utf8").split("\n\n")
    assert sections[0] == "[entities]\nA\nB_&_<C>\nD"
    assert [section.split()[0] for section in sections] == ["[entities]", "[relations]", "[events]", "[attributes]"]


@pytest.mark.parametrize("format", ["label-studio", "doccano"])
def test_a_corpus_stays_in_its_order(format, merging, tmp_path):
    merging.add(
        "a", ["A"], [{"text": f"text {n}", "spans": [{"start": 0, "end": n, "label": "A"}]} for n in range(1, 5)]
    )
    merging.run()
    export(merging.root / "corpus", tmp_path / "all", "prodigy")
    texts = [json.loads(line)["text"] for line in (tmp_path / "all" / "all.jsonl").read_text().splitlines()]
    found = written(merging.root / "corpus", tmp_path / "out", format)
    assert [row.get("text") or row["data"]["text"] for row in found] == texts
    # Label Studio takes imported annotations for ground truth unless they say otherwise.
    assert not any(row["annotations"][0]["ground_truth"] for row in found if "data" in row)


def test_what_is_to_be_annotated_for_a_label_goes_to_another_tool(predictions, tmp_path):
    """The tasks of a label, for Prodigy, are predictions in Label Studio, and their label is offered, found or not."""
    export(predictions, tmp_path / "labels", "prodigy-by-label")
    (task, *_) = written(tmp_path / "labels" / "D.jsonl", tmp_path / "out", "label-studio")
    assert task["predictions"][0]["result"] == []
    view = ElementTree.parse(tmp_path / "out" / "config.xml").getroot()
    assert [label.get("value") for label in view.iter("Label")] == ["D"]


@pytest.mark.parametrize("row", [{"answer": "reject"}, {"spans": [{"start": 0}]}, {"text": 3}])
def test_other_tasks_are_refused(row, tmp_path):
    write_jsonl(tmp_path / "tasks.jsonl", [{"text": "one", "spans": []}, {"text": "two", "spans": []} | row])
    with pytest.raises(InputError, match=r"tasks\.jsonl:2: not a task of convert-brat or an export .*; merge"):
        export(tmp_path / "tasks.jsonl", tmp_path / "out", "doccano")

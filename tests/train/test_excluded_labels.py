import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import spacy
from spacy.util import load_config

from labelwise.corpus.import_checks import ImportCheck
from labelwise.evaluate.scores import Metrics
from labelwise.report.score_warnings import warnings as report_warnings
from scripts.evaluate import evaluate_cli
from scripts.package import package_cli
from scripts.report import report_cli
from scripts.train import train_cli
from tests.conftest import ROOT, Merging, call, task, words_of
from tests.train.training import CPU, STEPS

STEPS_40 = {**STEPS, "training.max_steps": 40, "training.eval_frequency": 40, "training.optimizer.learn_rate": 0.005}
SAID = "Label LOC excluded from the pipeline and from F1: no training text is fully annotated for it."
REMEDY = "(ner.manual, ner.correct)"


def text(number: int) -> str:
    return f"Ann saw Rome {number} times."


def taught_by_questions(numbers: range) -> list[dict[str, Any]]:
    answers = (((8, 12), "accept"), ((4, 7), "reject"))
    return [
        task(text(n), span, label="LOC", answer=answer, _view_id="ner") for n in numbers for span, answer in answers
    ]


class Project(NamedTuple):
    root: Path
    trained: str
    evaluated: str
    reported: str


def run_all(root: Path, corpus: Path) -> Project:
    for folder in ("corpus", "metrics"):
        shutil.copytree(corpus.parent / folder, root / folder)
    shutil.copy(ROOT / "project.yml", root)
    (root / "configs").mkdir()
    load_config(CPU, STEPS_40, interpolate=False).to_disk(root / "configs/cpu.cfg")
    printed = [call(command, "cpu") for command in (train_cli, evaluate_cli, report_cli)]
    call(package_cli, "cpu")
    return Project(root, *(" ".join(output.split()) for output in printed))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """In train and dev, people are complete on some texts, places answered on others; in test, both are complete."""
    merging = Merging(tmp_path_factory.mktemp("merged"))
    merging.add("people", ["PER"], [task(text(n), (0, 3), label="PER") for n in range(60)])
    merging.add("places", ["LOC"], taught_by_questions(range(100, 140)))
    both = [task(text(n), (0, 3, "PER"), (8, 12, "LOC")) for n in range(200, 220)]
    merging.add("both", ["PER", "LOC"], both, split="test")
    ledger = merging.run(dev_ratio=0.2, test_ratio=0.0)
    (merging.root / "metrics").mkdir()
    (merging.root / "metrics/merge.json").write_bytes(msgspec.json.encode(ledger.metrics()))
    return merging.root / "corpus"


def found_by(model: Path) -> set[str]:
    docs = list(spacy.load(model).pipe(text(n) for n in range(300, 310)))
    return {span.label_ for doc in docs for span in (*doc.ents, *doc.spans["labels"])}


def test_a_label_without_a_complete_text_is_left_out_and_every_output_says_why(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_all(tmp_path, corpus)
    assert found_by(done.root / "training/cpu/model-best") == {"PER"}
    metrics = json.loads((done.root / "metrics/cpu.json").read_text())
    assert (metrics["excluded_labels"], [*metrics["all_gold"]["labels"]], [*metrics["mistakes"]]) == (
        ["LOC"],
        ["PER"],
        ["PER"],
    )
    assert metrics["all_gold"]["support"] == 20  # places aren't counted as missed
    header, *_, row = (line.split("\t") for line in (done.root / "plots/cpu.tsv").read_text().splitlines())
    assert float(row[header.index("ents_f")]) == 1.0  # nor on dev
    for printed in (done.trained, done.evaluated, done.reported):
        assert SAID in printed
        assert REMEDY in printed
    assert not re.search(r"LOC [\d.]", done.evaluated)
    page = (done.root / "report/cpu.html").read_text(encoding="utf8")
    assert SAID in page
    check = ImportCheck(kind="not fully annotated", n=1, values={"labels": ["LOC"]})
    said = report_warnings(msgspec.convert(metrics, Metrics), [check])
    once = [one.what for one in said if "fully annotated" in one.what]
    assert once == [SAID]
    assert re.findall(r'href="#label=(\w+)"', page) == ["PER"]
    card = (done.root / "dist/cpu/README.md").read_text()
    assert "finds named entities: `PER`.\n" in card
    assert "It leaves out `LOC`, because no text that it was trained on was annotated for all spans of it." in card
    assert "| `LOC` |" not in card
    (wheel,) = (done.root / "dist/cpu").glob("en_ner*.whl")
    folder = wheel.name.partition("-py3")[0]
    with zipfile.ZipFile(wheel) as archive:
        strings, meta = (
            json.loads(archive.read(f"en_ner/{folder}/{name}")) for name in ("vocab/strings.json", "meta.json")
        )
    assert "LOC" not in strings
    assert meta["labels"]["ner"] == ["PER"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cpu", ("no text in train is complete for a label", REMEDY)),
        ("ner", ("spaCy's ner can't learn from texts that aren't complete", "such as configs/cpu.cfg")),
    ],
)
def test_answers_of_ner_teach_alone_are_refused_before_training(merging, name, message, monkeypatch):
    for split in ("train", "dev"):
        merging.add(split, ["LOC"], taught_by_questions(range(20) if split == "train" else range(20, 30)), split=split)
    advice = words_of(merging.run().checks)
    assert any("By default, training excludes this label." in advice_line for advice_line in advice)
    monkeypatch.chdir(merging.root)
    shutil.copytree(ROOT / "configs", "configs")
    printed = " ".join(call(train_cli, name, "--max-steps", 1, status=1).split())
    for one in message:
        assert one in printed
    assert not Path("training", name, "model-best").exists()

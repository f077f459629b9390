"""The advice on the demo corpus, whole, against the wrong annotations that were planted in it."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from labelwise.demo.corpus import add_noise, make_doc
from labelwise.evaluate.predictions import read_predictions
from labelwise.evaluate.results import load_results
from labelwise.report.advice import summarize
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.long]

PROJECT = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
SHARE = float(re.search(r"make_demo assets/demo --noise ([\d.]+)", str(PROJECT["commands"])).group(1))
COMMANDS = """
make_demo {0}/brat --noise {1}
convert_brat {0}/brat {0}/corpus/tasks
merge {0}/corpus/tasks/datasets.yml {0}/corpus --metrics {0}/metrics/merge.json --project project.yml
train configs/cpu.cfg {0}/corpus {0}/training/cpu/model-best --curve {0}/plots/cpu.tsv --max-steps {2} --workers 2
evaluate {0}/training/cpu/model-best {0}/corpus/test {0}/metrics/cpu.json --details {0}/training/cpu/details.json \
--predictions {0}/training/cpu/predictions.jsonl
check_labels {0}/corpus --out {0}/training/check --config configs/cpu.cfg --project project.yml \
--model {0}/training/cpu/model-best --workers 2
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """What `weasel run all` and `weasel run fix` make of the demo corpus."""
    root = tmp_path_factory.mktemp("demo")
    for command in COMMANDS.format(root, SHARE, PROJECT["vars"]["cpu_steps"]).strip().split("\n"):
        subprocess.run([sys.executable, *f"-m scripts.{command}".split()], cwd=ROOT, check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def planted() -> dict[str, set[tuple]]:
    """By document, the spans that are wrong: there and shouldn't be, or should be there."""
    docs = [make_doc(number) for number in range(400)]
    wrong = {doc.path: set(doc.spans) ^ set(add_noise(doc, SHARE).spans) for doc in docs}
    assert 0.02 < sum(map(len, wrong.values())) / 2 / sum(len(doc.spans) for doc in docs) < 0.04
    return wrong


def rows_of(file: Path) -> list[tuple[str, set[tuple]]]:
    """The document of each finding, with the span that is there, and the one that is proposed."""
    with file.open(encoding="utf8") as opened:
        return [
            (
                row["doc"],
                {
                    (int(row[f"{side}start"]), int(row[f"{side}end"]), row[name])
                    for side, name in (("", "label"), ("proposed_", "proposed"))
                    if row[f"{side}start"]
                },
            )
            for row in csv.DictReader(opened, delimiter="\t")
        ]


def test_the_first_findings_are_planted(demo, planted):
    found = [not spans.isdisjoint(planted[doc]) for doc, spans in rows_of(demo / "training/check/findings.tsv")]
    assert sum(found[:50]) >= 45
    assert sum(found[:200]) >= 170


def test_each_inconsistency_is_planted(demo, planted):
    rows = rows_of(demo / "training/check/inconsistencies.tsv")
    assert all(not spans.isdisjoint(planted[doc]) for doc, spans in rows)


def test_each_task_leads_to_planted_errors_or_is_about_words_that_are_annotated_rightly(demo, planted):
    """A list of fifty leads to a dozen planted errors at least; none says that the demo is undertrained."""
    tasks = summarize(load_results(demo, "cpu")).tasks
    assert len(tasks) == 3
    assert not [task for task in tasks if "train longer" in task.do]
    for task in tasks:
        if task.file.startswith("training/check/"):
            look = [
                json.loads(line)["meta"] for line in (demo / task.file).read_text(encoding="utf8").splitlines()[:50]
            ]
            starts = [{int(start) for start in re.findall(r"(?:^|; )(\d+): ", one["look"])} for one in look]
            hit = [any(span[0] in here for span in planted[one["doc"]]) for one, here in zip(look, starts, strict=True)]
            assert sum(hit) >= 12, task
        else:
            assert task.do == "annotate 50 more texts"
            docs = read_predictions(demo / "training/cpu/predictions.jsonl")
            missed = [(doc, span) for doc in docs for span in set(doc.gold) - set(doc.predicted)]
            wrong = [span in planted[doc.doc] for doc, span in missed if span[2] == task.label]
            assert sum(wrong) < len(wrong) / 2, task


def test_test_has_planted_errors_like_train_and_dev(demo, planted):
    docs = list(read_predictions(demo / "training/cpu/predictions.jsonl"))
    wrong = sum(len(set(doc.gold) & planted[doc.doc]) for doc in docs)
    assert 0.01 < wrong / sum(len(doc.gold) for doc in docs) < 0.05

"""The advice on the demo corpus, whole, against the wrong annotations that were planted in it."""

import re
from pathlib import Path

import pytest
import yaml

from labelwise.demo.corpus import add_noise, make_doc
from labelwise.evaluate.results import load_results
from labelwise.report.advice import CASES, advise
from labelwise.report.deck import read_deck
from tests.conftest import ROOT, read_jsonl, run_python

pytestmark = pytest.mark.long

PROJECT = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
SHARE = float(re.search(r"make_demo assets/demo --format both --noise ([\d.]+)", str(PROJECT["commands"])).group(1))
COMMANDS = """
make_demo {0}/demo --format both --noise {1}
convert_brat {0}/demo/brat {0}/corpus/tasks
merge {0}/corpus/tasks/datasets.yml {0}/demo/prodigy {0}/corpus --metrics {0}/metrics/merge.json --project project.yml
train configs/cpu.cfg {0}/corpus {0}/training/cpu/model-best --curve {0}/plots/cpu.tsv --max-steps {2} --workers 2
evaluate {0}/training/cpu/model-best {0}/corpus/test {0}/metrics/cpu.json --tables {0}/training/cpu
check_labels {0}/corpus --out {0}/training/check
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """What `weasel run all` makes of the demo corpus."""
    root = tmp_path_factory.mktemp("demo")
    for command in COMMANDS.format(root, SHARE, PROJECT["vars"]["cpu_steps"]).strip().split("\n"):
        run_python(*f"-m scripts.{command}".split())
    return root


@pytest.fixture(scope="module")
def planted() -> dict[str, set[tuple]]:
    """By document, the spans that are wrong: there and shouldn't be, or should be there."""
    docs = [make_doc(number) for number in range(400)]
    wrong = {doc.path: set(doc.spans) ^ set(add_noise(doc, SHARE).spans) for doc in docs}
    assert 0.02 < sum(map(len, wrong.values())) / 2 / sum(len(doc.spans) for doc in docs) < 0.04
    return wrong


def hits(file: Path, planted: dict[str, set[tuple]]) -> list[bool]:
    """Whether each finding is about a planted error: the span that is there, or the one that is proposed."""
    _, *rows = read_jsonl(file)
    spans = [(row["doc"], {tuple(span) for span in (row["current"], row["proposed"]) if span}) for row in rows]
    return [not found.isdisjoint(planted[doc]) for doc, found in spans]


def test_the_first_step_on_the_demo_is_to_decide_cases_and_most_are_planted(demo, planted):
    results = load_results(demo, "cpu")
    said = advise(results.metrics, results.curve, "cpu", 0.8, read_deck(demo).counts)
    assert (said.verdict, said.do[:10]) == ("Ship some", "decide the")
    for page in ("README.md", "docs/output.md", "docs/first_steps.md"):
        assert f"First: {said.do}\n" in (ROOT / page).read_text(encoding="utf8")
    assert sum(hits(demo / "training/check/findings.jsonl", planted)[:CASES]) >= 0.7 * CASES

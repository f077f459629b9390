import re
import shutil

import pytest
import yaml

from labelwise.demo.corpus import add_noise, make_doc
from labelwise.evaluate.results import load_results
from labelwise.report.advice import CASES, advise
from labelwise.report.review_queue import read_review_queue
from tests.conftest import ROOT, read_jsonl, run_python

pytestmark = pytest.mark.long

PROJECT = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
SHARE = float(re.search(r"make_demo assets/demo --format both --noise ([\d.]+)", str(PROJECT["commands"])).group(1))
COMMANDS = """
make_demo assets/demo --format both --noise {0}
convert_brat assets/demo/brat corpus/tasks --project project.yml
merge corpus/tasks/datasets.yml assets/demo/prodigy corpus --metrics metrics/merge.json --project project.yml
train cpu --max-steps {1} --workers 2
evaluate cpu
check_labels corpus --out training/check
"""


def test_demo_has_the_next_task_of_the_pages_and_most_certain_cases_are_planted(tmp_path):
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    for command in COMMANDS.format(SHARE, PROJECT["vars"]["steps"]).strip().split("\n"):
        run_python(*f"-m scripts.{command}".split(), cwd=tmp_path)
    results = load_results(tmp_path, "cpu")
    said = advise(
        results.metrics, results.curve, "cpu", 0.8, read_review_queue(tmp_path).counts, results.merge, sample=30
    )
    assert re.match(r"[5-9] of 20 labels are ready; ", said.verdict)
    assert len(said.tasks[0].labels) == 2
    assert "PERSON" in said.tasks[0].labels  # with COMPANY 7 times, with DOCTOR 6 times: other processors may differ
    line = r"Next: agree on a rule for PERSON and [A-Z]+ \(\d+ of \d+ errors\)\n"
    for page in ("README.md", "docs/tutorial.md"):
        assert re.search(line, (ROOT / page).read_text(encoding="utf8"))
    docs = {doc.path: doc for doc in map(make_doc, range(400))}
    _, *rows = read_jsonl(tmp_path / "training/check/findings.jsonl")
    right = 0
    for row in rows[:CASES]:
        doc = docs[row["doc"]]
        planted = set(doc.spans) ^ set(add_noise(doc, SHARE).spans)
        right += any(tuple(span) in planted for span in (row["current"], row["proposed"]) if span)
    assert right >= 0.7 * CASES

import json
import re
import subprocess
import sys
from functools import partial

import pytest

from scripts.merge import merge_cli
from tests.conftest import ROOT, call, task

spans = partial(task, "big cat at 60degC")


@pytest.fixture(autouse=True)
def folder(merging, monkeypatch):
    monkeypatch.chdir(merging.root)


def run(*options: str, status: int = 0) -> str:
    return " ".join(call(merge_cli, "tasks/datasets.yml", "corpus", "--workers", 1, *options, status=status).split())


def test_the_books_are_written_with_what_became_of_each_label(merging):
    merging.add(
        "a",
        ["A"],
        [spans((0, 7, "A"), (11, 13, "A"), (0, 3, "Z")), {"text": "other", "spans": []}, "{oops"],
        split="train",
    )
    merging.add("b", ["B"], [spans((4, 7, "B"), (4, 7, "B"), (99, 100, "B"))], split="train")
    printed = run("--metrics", "merge.json")
    ledger = json.loads((merging.root / "merge.json").read_text())
    assert ledger["rows"] == {"bad JSON": 1, "merged": 3}
    assert "digest" not in ledger, "DVC would print 64 characters as a metric"
    assert re.fullmatch(r"[0-9a-f]{64}\n", (merging.root / "merge.sha256").read_text())
    assert ledger["labels"] == {
        "A": {"complete": 2, "entity": 1, "gold": 2, "misaligned": 1},
        "B": {"complete": 1, "gold": 1, "nested": 1, "overlapping": 1, "none": 1},
    }
    assert sorted(merging.problems()) == [
        ("a", "a.jsonl", 1, "undeclared label: Z"),
        ("a", "a.jsonl", 3, "bad JSON: object keys must be strings (byte 1): 'oops'"),
        ("b", "b.jsonl", 1, "invalid: B 99 100: the text has 17 characters"),
    ]
    for warning in (
        "Spans of undeclared labels aren't used: a: Z (1).",
        "3 rows or spans can't be used. dataset 'a', a.jsonl, line 3: bad JSON",
        "3 accepted spans: 1 entity, 1 overlapping another label (only per-label pipelines learn these), 1 dropped.",
    ):
        assert warning in printed


def test_a_merge_that_stops_says_so_last_and_how_to_ask_about_a_line(merging):
    merging.add("a", ["A"], [task(f"the cat is {number}", (4, 6), label="A") for number in range(30)])  # "ca"
    printed = run(status=1)
    assert "Merge stopped: see the problems above Add the suggested lines and run it again. " in printed
    assert printed.endswith("`python -m scripts.why corpus FILE:LINE` explains a line")


def test_a_text_that_two_people_annotated_counts_once_whatever_its_labels(merging):
    for who, marked in (("ann", [(0, 3, "A")]), ("leo", [(0, 3, "A"), (4, 7, "B")])):
        merging.add(who, ["A", "B"], [spans(*marked, _annotator_id=who)])
    assert "ann, leo 1 3 0.667" in run()


def test_strictly_a_bad_row_is_an_error_that_names_it(merging):
    merging.add("a", ["A"], [spans()])
    merging.add("c", ["A"], [{"text": "two", "meta": {"predicted": "yes"}}])
    left = "1 unsaved prediction; save or remove them in the tool"
    assert left in run("--strict", status=1)
    merging.declared.pop()
    merging.add("b", ["A"], ["", "{oops"])
    first = "1 row or span can't be used, the first in dataset 'b', b.jsonl, line 2: bad JSON"
    assert first in run("--strict", status=1)


def test_a_wrong_section_is_an_error(merging):
    merging.add("a", ["A"], [spans()])
    assert "--workers -1: give a number" in run("--workers", "-1", status=1)
    for section, message in (
        ("{near_similarity: 0.3}", "mine.yml: merge: near_similarity: 0.3: Expected `float` >= 0.5"),
        ("{dev_ratio: 0.5, test_ratio: 0.5}", "leave some for train"),
        ("{near_duplicates: group, split_by: doc}", "both decide which texts stay in one split; use one"),
        ("{salt: x}", "mine.yml: merge: salt: 'x': the section has no such key; its keys are duplicates, annotators, "),
        ("{tokenizer: {}}", "mine.yml: merge: tokenizer: {}: the section has no such key"),  # read from another file
    ):
        (merging.root / "mine.yml").write_text(f"merge: {section}")
        assert message in run("--project", "mine.yml", status=1)


def test_pyarrow_is_not_there_when_workers_are_forked():
    """It takes 40 MB, partly in each worker; only the provenance tables need it."""
    code = "import sys, scripts.merge; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)

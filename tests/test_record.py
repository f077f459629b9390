import json
import shutil
from contextlib import chdir
from copy import copy

import pytest

from labelwise.corpus.record import RECORD
from labelwise.export.source import read_corpus
from scripts.record import record_cli
from scripts.train import train_cli
from tests.clone import Clone, run_by_weasel
from tests.conftest import call


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Clone:
    return run_by_weasel(tmp_path_factory)[0]


def test_what_belongs_together_is_recorded_and_not_run_again(run):
    printed = " ".join(run.run("python", "-m", "scripts.record", "cpu").split())
    assert "DVC has recorded evaluate@cpu and the stages before it" in printed
    printed = run.run("dvc", "repro", "evaluate@cpu")
    assert "Running stage" not in printed
    assert "up to date" in printed


def merge_anew(clone: Clone) -> None:
    clone.set("dev_ratio", "0.4")
    clone.call("merge")


def correct_a_test_text(clone: Clone) -> None:
    text = next(doc for doc in read_corpus(clone.root / "corpus", ["test"]) if doc.spans)
    file = (clone.root / "assets/demo/brat" / text.name).with_suffix(".ann")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    clone.call("convert-brat", "merge")


def train_again(clone: Clone) -> None:
    with chdir(clone.root):
        call(train_cli, "cpu", "--seed", "3", "--max-steps", "10")


def forget_the_corpus(clone: Clone) -> None:
    file = clone.root / "training/cpu/model-best" / RECORD
    file.write_text(json.dumps({key: one for key, one in json.loads(file.read_text()).items() if key != "corpus"}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (merge_anew, "training/cpu/model-best: trained on another corpus than corpus; train and evaluate again"),
        (correct_a_test_text, "corpus: test has changed since cpu was evaluated; evaluate cpu again"),
        (train_again, "metrics: its scores are of another pipeline; evaluate cpu again"),
        (forget_the_corpus, f"{RECORD}: it doesn't name the corpus (KeyError('corpus')); train again"),
    ],
)
def test_what_does_not_belong_together_is_refused(change, message, run, tmp_path):
    clone = copy(run)
    clone.root = shutil.copytree(run.root, tmp_path / "clone", ignore=shutil.ignore_patterns(".git", "benchmarks"))
    change(clone)
    with chdir(clone.root):
        printed = " ".join(call(record_cli, "cpu", status=1).split())
    assert "Nothing was recorded" in printed
    assert message in printed
    locks = [[file.read_bytes() for file in one.root.glob("dvc.lock")] for one in (run, clone)]
    assert locks[0] == locks[1]

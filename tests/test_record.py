"""What `weasel run` has made is recorded in DVC, unless the corpus was merged anew since."""

import json
import shutil

import pytest

from labelwise.corpus.record import RECORD
from labelwise.export.source import read_corpus
from tests.clone import run_by_weasel


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_by_weasel(tmp_path_factory)[0]


def correct_a_test_text(clone):
    """Delete a span of a text that is in the test split."""
    text = next(doc for doc in read_corpus(clone.root / "corpus", ["test"]) if doc.spans)
    file = (clone.root / "assets/demo/brat" / text.name).with_suffix(".ann")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))


def record(clone, status=0):
    return " ".join(clone.run("python", "-m", "scripts.record", "cpu", status=status).split())


def test_what_belongs_together_is_recorded_and_not_run_again(run):
    assert "DVC has recorded evaluate@cpu and the stages before it" in record(run)
    printed = run.run("dvc", "repro", "evaluate@cpu")
    assert "Running stage" not in printed
    assert "up to date" in printed


@pytest.mark.parametrize("what", ["merged", "corrected test", "evaluated", "of an earlier version"])
def test_what_does_not_belong_together_is_refused(what, run, tmp_path):
    run.commit("before")
    lock = (run.root / "dvc.lock").read_bytes()
    model, changed = run.root / "training/cpu/model-best", ("training", "assets/demo")
    for name in changed:
        shutil.copytree(run.root / name, tmp_path / name)
    try:
        if what == "merged":
            run.set("dev_ratio", "0.4")
            run.run("weasel", "run", "merge")
            said = f"{model.relative_to(run.root)}: trained on another corpus than corpus; train and evaluate again"
        elif what == "corrected test":
            correct_a_test_text(run)
            run.run("weasel", "run", "convert-brat")
            run.run("weasel", "run", "merge")
            said = "corpus: test has changed since cpu was evaluated; evaluate cpu again"
        elif what == "evaluated":
            run.run("python", "-m", "scripts.train", "cpu", "--seed", "3", "--max-steps", "10")
            said = "metrics: its scores are of another pipeline; evaluate cpu again"
        else:
            content = json.loads((model / RECORD).read_text())
            del content["corpus"]
            (model / RECORD).write_text(json.dumps(content))
            said = f"{RECORD}: it doesn't name the corpus (KeyError('corpus')); train again"
        printed = record(run, status=1)
        assert "Nothing was recorded" in printed
        assert said in printed
        assert (run.root / "dvc.lock").read_bytes() == lock
    finally:
        run.run("git", "checkout", "-q", ".")
        for name in changed:
            shutil.rmtree(run.root / name)
            shutil.copytree(tmp_path / name, run.root / name)
        for command in ("convert-brat", "merge"):
            run.run("weasel", "run", command)

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from spacy.util import load_config

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import digest_merge, find_partitions, read_manifest, write_manifest
from labelwise.corpus.record import check_corpus
from labelwise.corpus.seen_texts import SEEN_TEXTS, has_seen
from labelwise.demo.write import make_demo
from scripts.evaluate import evaluate_cli
from scripts.label_raw import label_raw_cli
from scripts.seeds import seeds_cli
from scripts.train import train_cli
from scripts.train_curve import train_curve_cli
from tests.conftest import ROOT, TINY, call

MODEL, OWN = "training/student/model-best", "training/student/corpus"


@pytest.fixture(scope="module")
def trained(demo_corpus, ruler, tmp_path_factory):
    root = tmp_path_factory.mktemp("student")
    make_demo(root / "assets/raw", docs=12, labels=4, words=60, seed=7)
    shutil.copytree(demo_corpus, root / "corpus")
    shutil.copytree(ruler, root / "training/small/model-best")
    (root / "configs").mkdir()
    overrides = {**TINY, "training.max_steps": 4, "training.eval_frequency": 1}
    config = load_config(ROOT / "configs/student.cfg", overrides=overrides, interpolate=False)
    config.to_disk(root / "configs/student.cfg")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        call(label_raw_cli, "student")
        call(train_cli, "student")
    return root


@pytest.fixture
def project(trained, monkeypatch):
    monkeypatch.chdir(trained)
    return trained


def test_it_learns_from_gold_and_raw_texts_and_its_record_has_them(project):
    record = json.loads((project / MODEL / "trained.json").read_bytes())
    manifest = read_manifest(project / OWN)
    assert record["raw"] == manifest.settings["raw"]
    assert record["raw"]["texts"] == 12
    seen = np.load(project / MODEL / SEEN_TEXTS)
    train = [doc for file in find_partitions(project / OWN / "train") for doc in read_stored_docs(file)]
    assert len(train) == 12 + read_manifest(project / "corpus").splits["train"].texts
    assert all(has_seen(seen, doc.key) for doc in train)
    assert digest_merge(manifest) == digest_merge(read_manifest(project / "corpus"))


def test_it_belongs_to_the_corpus_that_its_own_is_made_from(project, tmp_path):
    for corpus in ("corpus", OWN):
        check_corpus(project / MODEL, project / corpus)
        other = Path(shutil.copytree(project / corpus, tmp_path / corpus))
        manifest = read_manifest(other)
        manifest.partitions["train/part-00000.spacy"] = "0" * 64
        write_manifest(other, manifest)
        with pytest.raises(InputError, match="trained on another corpus than"):
            check_corpus(project / MODEL, other)


def test_a_student_is_evaluated_on_the_merges_test_and_has_seen_none_of_it(project):
    printed = call(evaluate_cli, "student")
    scores = json.loads((project / "metrics/student.json").read_bytes())
    assert scores["texts"] == read_manifest(project / "corpus").splits["test"].texts
    assert scores["seen"]["texts"] == 0
    assert "metrics/student.json" in printed


def test_another_seed_learns_from_the_same_raw_texts(project):
    assert "has F1 of 2 trainings" in call(seeds_cli, "student", "--seeds", 2)


def test_a_students_learning_curve_is_refused(project):
    output = " ".join(call(train_curve_cli, "student", status=1).split())
    assert f"{OWN}: a student's corpus: its teacher learned from all of train; measure the teacher's curve" in output


def test_without_its_corpus_the_line_that_makes_it_is_named(project, tmp_path, monkeypatch):
    shutil.copytree(project / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    assert "or label_raw for a student" in " ".join(call(train_cli, "student", status=1).split())


def test_a_students_config_differs_from_cpus_in_its_corpus_and_the_rule_for_few_texts():
    own, cpus = (load_config(ROOT / f"configs/{name}.cfg") for name in ("student", "cpu"))
    assert own["paths"]["corpus"] == OWN
    own["paths"], own["labelwise"] = cpus["paths"], cpus["labelwise"]
    assert own == cpus

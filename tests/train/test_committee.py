"""A committee is one pipeline, whose probabilities are the mean of its members'."""

import json
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.util import load_config

from labelwise.commands.train import train_cli
from labelwise.common.errors import InputError
from labelwise.corpus.seen_texts import read_seen
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.committee import join, train_committee
from labelwise.train.pipeline import load_source
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.bare import bare_environment
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"
TEXT = "Dr. Zoë Barton of Mercury Labs came to Springfield on 3 May 1999."
STEPS = {"training.max_steps": 12, "training.eval_frequency": 12}


@pytest.fixture(scope="module")
def committee(demo_corpus, tmp_path_factory) -> Path:
    """A folder with a committee of two, `model`, and what those were trained alone, `0` and `1`."""
    folder = tmp_path_factory.mktemp("committee")
    recipe = Recipe(CPU, Path(demo_corpus.name), seed=3, overrides=STEPS)
    curve, resources = folder / "curve.tsv", folder / "resources.tsv"
    with chdir(demo_corpus.parent):
        train_committee(recipe, folder / "model", curve, members=2, resources=resources)
    for number in range(2):
        alone = Recipe(CPU, demo_corpus, seed=6 + number, overrides=STEPS)
        train_pipeline(alone, folder / f"{number}", folder / f"{number}.tsv")
    return folder


def logits(model: Path, texts: list[str]) -> np.ndarray:
    """What the heads of a pipeline give, of the shape (tokens, labels, 5)."""
    nlp = spacy.load(model)
    with nlp.select_pipes(disable="ner"):
        docs = list(nlp.pipe(texts))
    found = np.concatenate(nlp.get_pipe("ner").model.predict(docs)).astype("float64")
    return found.reshape(len(found), -1, 5)


def softmax(found: np.ndarray) -> np.ndarray:
    return np.exp(found) / np.exp(found).sum(axis=2, keepdims=True)


def test_probabilities_are_the_mean_of_the_members(committee):
    texts = [TEXT, "", "Barton."]
    members = [softmax(logits(committee / name, texts)) for name in ("0", "1")]
    assert abs(members[0] - members[1]).max() > 0.01
    assert softmax(logits(committee / "model", texts)) == pytest.approx(sum(members) / 2, abs=1e-6)


def test_a_committee_of_one_pipeline_thrice_is_that_pipeline(committee, demo_corpus, tmp_path):
    nlp = join([committee / "0"] * 3)
    assert nlp.pipe_names == ["ner"]
    nlp.get_pipe("ner").cfg = json.loads((committee / "0" / "ner" / "cfg").read_text())
    nlp.to_disk(tmp_path / "thrice")
    found = [evaluate_pipeline(model, demo_corpus / "test").metrics for model in (committee / "0", tmp_path / "thrice")]
    assert found[0].all_gold == found[1].all_gold
    assert found[0].calibration_error == pytest.approx(found[1].calibration_error, abs=1e-3)
    assert logits(tmp_path / "thrice", [TEXT]).shape == logits(committee / "0", [TEXT]).shape


def test_it_is_calibrated_as_one_and_has_no_scores_of_a_member(committee):
    settings, *alone = (json.loads((committee / name / "ner" / "cfg").read_text()) for name in ("model", "0", "1"))
    assert settings["slopes"]
    assert all(settings["slopes"] != one["slopes"] for one in alone)
    assert settings["labels"] == alone[0]["labels"]
    assert json.loads((committee / "model" / "meta.json").read_text())["performance"] == {}
    assert load_config(committee / "model" / "config.cfg")["paths"]["corpus"] == "corpus", "the same in any folder"


def test_beside_it_is_what_a_training_has(committee):
    names = {path.name for path in committee.iterdir()}
    assert names == {"model", "curve.tsv", "resources.tsv", "0", "0.tsv", "1", "1.tsv"}
    assert (committee / "curve.tsv").read_text() == (committee / "0.tsv").read_text()
    assert (committee / "resources.tsv").read_text().startswith("seconds\t")
    assert len(read_seen(committee / "model").digests) == len(read_seen(committee / "0").digests)
    words = [set(json.loads((committee / name / "vocab" / "strings.json").read_text())) for name in ("model", "0")]
    assert words[0] == words[1]


def test_it_loads_with_spacy_alone(committee, tmp_path):
    shutil.copy(ROOT / "labelwise" / "recognizer" / "per_label.py", tmp_path)
    python = bare_environment(tmp_path / "bare", "spacy")
    code = (
        "import json, sys, spacy, per_label\n"
        "doc = spacy.load(sys.argv[1])(sys.argv[2])\n"
        "print(json.dumps([[span.text, span.label_] for span in doc.spans['labels']]))\n"
    )
    command = [python, "-c", code, committee / "model", TEXT]
    done = subprocess.run(command, cwd=tmp_path, env={"LANG": "C.UTF-8"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = spacy.load(committee / "model")(TEXT)
    assert json.loads(done.stdout) == [[span.text, span.label_] for span in here.spans["labels"]]


def test_it_does_not_learn(committee):
    nlp = spacy.load(committee / "model")
    eg = spacy.training.Example(nlp.make_doc(TEXT), nlp.make_doc(TEXT))
    with pytest.raises(ValueError, match="a committee doesn't learn"):
        nlp.get_pipe("ner").update([eg])
    with pytest.raises(InputError, match="model': a committee doesn't learn; name one trained with committee: 1"):
        load_source(str(committee / "model"))


@pytest.mark.parametrize(
    ("members", "recognizer", "told"),
    [(0, "per-label", "--committee 0: give at least 2"), (3, "ner", "committee 3: only what has a head for each")],
)
def test_what_cannot_be_averaged_is_refused(members, recognizer, told, demo_corpus, tmp_path):
    recipe = Recipe(CPU, demo_corpus, recognizer=recognizer)
    with pytest.raises(InputError, match=told):
        train_committee(recipe, tmp_path / "model", tmp_path / "curve.tsv", members=members)
    assert list(tmp_path.iterdir()) == []


def test_the_command_trains_one(demo_corpus, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("labelwise.commands.train.train_committee", lambda *given, **more: told.append((given, more)))
    train_cli(CPU, demo_corpus, tmp_path / "model", tmp_path / "curve.tsv", committee=3, workers=2)
    [((recipe, *_), more)] = told
    assert recipe.workers == 2
    assert more["members"] == 3

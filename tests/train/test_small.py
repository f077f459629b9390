import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.util import load_config

from labelwise.base.errors import InputError
from labelwise.corpus.manifest import read_manifest
from labelwise.train.config import fit_config
from labelwise.train.parameters import find_parameters
from labelwise.train.registry import make_warmup_linear
from labelwise.train.training_config import TrainingConfig
from tests.bare import bare_environment, in_bare
from tests.conftest import ROOT
from tests.train.training import GPU, SMALL, files, losses, train_in

TEXT = "Heat 5 mL to 60degC, said Zoë Barton of Mercury Labs on 3 May 1999."


@pytest.fixture(scope="module")
def recipe(tiny_bert) -> dict[str, Any]:
    # It is randomly initialized, and so has all to learn.
    overrides = {"training.eval_frequency": 20, "components.ner.model.tok2vec.rate": 1.0, "training.dropout": 0.0}
    overrides["components.ner.model.tok2vec.name"] = str(tiny_bert)
    return {"config": SMALL, "max_steps": 40, "overrides": overrides}


@pytest.fixture(scope="module")
def trained(recipe, english_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    train_in(folder, english_corpus, **recipe)
    return folder


def test_a_pipeline_predicts_where_torch_labelwise_and_its_transformer_are_not(trained, tmp_path):
    python = bare_environment(tmp_path / "bare", "spacy", "tokenizers")
    (tmp_path / "spacy_per_label").symlink_to(ROOT / "spacy_per_label")
    code = (
        "import json, sys, spacy, spacy_per_label; from importlib.util import find_spec\n"
        "print(json.dumps([[name for name in ('torch', 'transformers', 'labelwise') if find_spec(name)],\n"
        "                  [[ent.text, ent.label_] for ent in spacy.load(sys.argv[1])(sys.argv[2]).ents]]))"
    )
    nlp = spacy.load(trained / "model")
    nlp.get_pipe("ner").cfg["outside"] = -6.0  # it has learned little; a pipeline of labelwise 0.3.0 has such a shift
    nlp.to_disk(tmp_path / "model")
    there = json.loads(in_bare(python, "-c", code, tmp_path / "model", TEXT, cwd=tmp_path))
    here = nlp(TEXT).ents
    assert here
    assert there == [[], [[ent.text, ent.label_] for ent in here]]


def test_it_learns_and_again_to_the_same_bytes_and_in_two_processes_alike(trained, recipe, english_corpus, tmp_path):
    first, last = losses(trained)
    assert last < first / 3
    train_in(tmp_path / "again", english_corpus, **recipe)
    assert files(tmp_path / "again" / "model") == files(trained / "model")
    train_in(tmp_path / "two", english_corpus, **recipe, workers=2)
    assert losses(tmp_path / "two") == pytest.approx([first, last], rel=0.02)


@pytest.mark.parametrize("config", [SMALL, GPU])
def test_half_weights_take_half_the_space(config, demo_corpus, tiny_bert, tmp_path):
    overrides = {"components.ner.model.tok2vec.name": str(tiny_bert), "training.eval_frequency": 1}
    for folder, half in (("whole", False), ("half", True)):
        changed = overrides | {"labelwise.half_weights": half}
        train_in(tmp_path / folder, demo_corpus, changed, config, max_steps=1)
    pipelines = [spacy.load(tmp_path / folder / "model") for folder in ("whole", "half")]
    layers = [nlp.get_pipe("ner").model.get_ref("tok2vec") for nlp in pipelines]  # type: ignore[attr-defined]
    owners = (layers[0], *layers[0].shims)
    numbers = sum(parameter.array.size for parameter in find_parameters(pipelines[0]) if parameter.owner in owners)
    whole, half = ((tmp_path / folder / "model/ner/model").stat().st_size for folder in ("whole", "half"))
    assert whole - half == pytest.approx(2 * numbers, rel=0.05)
    vectors = [layer.predict([nlp.make_doc(TEXT)])[0] for layer, nlp in zip(layers, pipelines, strict=True)]
    np.testing.assert_allclose(*vectors, atol=0.02)
    assert not np.array_equal(*vectors)


@pytest.mark.parametrize("config", [SMALL, GPU])
def test_steps_follow_the_words_of_train_within_limits(config, demo_corpus):
    train = read_manifest(demo_corpus).splits["train"]
    for overrides, limit, expected in (
        ({"labelwise.epochs": 50, "training.batcher.size": 100}, 0, train.words // 2),
        ({"labelwise.epochs": 50, "training.batcher.size": 100}, train.texts // 2, train.words // 4),
        ({"labelwise.epochs": 100}, 0, train.words * 100 / 512),
        ({"labelwise.epochs": 1, "labelwise.least_steps": 77}, 0, 77),
        ({"labelwise.epochs": 10_000}, 0, load_config(config)["training"]["max_steps"]),
        ({"training.max_steps": 5}, 0, 5),
    ):
        wanted = TrainingConfig(config, demo_corpus, limit=limit, overrides=overrides)
        training = fit_config(wanted).settings["training"]
        assert training["max_steps"] == pytest.approx(expected, rel=0.06)
        assert training["optimizer"]["learn_rate"]["total_steps"] == training["max_steps"]


@pytest.mark.parametrize("config", [SMALL, GPU])
def test_a_rate_falls_until_the_last_step_of_a_config_that_was_edited(config, demo_corpus, tmp_path):
    text = re.sub(r"(max|total)_steps = \d+", r"\1_steps = 900", config.read_text(encoding="utf8"))
    (tmp_path / "own.cfg").write_text(text.replace("epochs = 10", "epochs = 0"), encoding="utf8")
    for asked, steps in ((0, 900), (40, 40)):
        training = fit_config(TrainingConfig(tmp_path / "own.cfg", demo_corpus, max_steps=asked)).settings["training"]
        assert (training["max_steps"], training["optimizer"]["learn_rate"]["total_steps"]) == (steps, steps)
    own = {"training.optimizer.learn_rate.total_steps": 7}
    training = fit_config(TrainingConfig(config, demo_corpus, max_steps=10, overrides=own)).settings["training"]
    assert training["optimizer"]["learn_rate"]["total_steps"] == 7


def test_a_rate_rises_for_a_share_of_the_steps_and_falls_to_zero():
    rates = list(islice(make_warmup_linear(1.0, 0.1, 20), 21))
    assert rates[:3] == [0, 0.5, 1.0]
    assert rates[11] == pytest.approx(0.5)
    assert rates[20] == 0
    assert next(make_warmup_linear(1.0, 0.1, 0)) == 0  # as spaCy resolves a config


def test_a_warm_up_that_does_not_end_is_refused(demo_corpus):
    block = {"@schedules": "warmup_linear.v1", "warmup_steps": 250, "total_steps": 4000, "initial_rate": 0.01}
    config = TrainingConfig(SMALL, demo_corpus, max_steps=250, overrides={"training.optimizer.learn_rate": block})
    with pytest.raises(InputError, match="rises for 250 steps, and training ends after 250"):
        fit_config(config)


def test_a_transformer_that_nobody_has_is_an_error_of_the_config(recipe, demo_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    overrides = recipe["overrides"] | {"components.ner.model.tok2vec.name": "nobody/has"}
    with pytest.raises(InputError, match=r"small\.cfg: name = nobody/has: neither a package"):
        train_in(tmp_path, demo_corpus, **recipe | {"overrides": overrides})
    assert not (tmp_path / "model").exists()

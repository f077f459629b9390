"""A config is what is trained: which keys training changes, and what it refuses, with the line to write."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from spacy.util import load_config
from thinc.api import Config

from labelwise.base.errors import InputError
from labelwise.base.removed import CONFIG, PROJECT
from labelwise.base.sections import VarsSection
from labelwise.base.settings import read_section
from labelwise.check.folds import Folds, fold_recipes
from labelwise.corpus.record import RECORD
from labelwise.train.config import FITTED, changed_keys, flatten, read_settings, share_of
from labelwise.train.training_config import TrainingConfig
from tests.conftest import ROOT
from tests.train.test_trf import TRF
from tests.train.training import CPU, GPU, NER, SMALL, train_in

RATE = "training.optimizer.learn_rate.total_steps"
OF_0_3_0 = """
[system]
seed = 0
epochs = 20
least_steps = 300
most_steps = 1500
small_batch = 700
portable = false
keep_untaught = false
[components]
[components.ner]
factory = "ner"
[components.per_label]
factory = "per_label"
[corpora]
[corpora.train]
coverage = "by-label"
"""


def own(folder: Path, source: Path = CPU, **changed: Any) -> Path:
    """Write a config with other values, of dotted names whose dots are two underscores."""
    settings = Config().from_disk(source, interpolate=False)
    for name, value in changed.items():
        *path, last = name.split("__")
        block = settings
        for part in path:
            block = block[part]
        block[last] = value
    settings.to_disk(folder / "own.cfg")
    return folder / "own.cfg"


def corpus_of(folder: Path, demo_corpus: Path, **train: int) -> Path:
    """A corpus whose manifest says that train is of another size."""
    shutil.copytree(demo_corpus, folder / "corpus")
    manifest = folder / "corpus/manifest.json"
    content = json.loads(manifest.read_text())
    content["splits"]["train"] |= train
    manifest.write_text(json.dumps(content))
    return folder / "corpus"


def batcher(name: str, size: Any = 100) -> dict[str, Any]:
    return {"@batchers": f"spacy.{name}.v1", "size": size}


SCHEDULE = {"@schedules": "compounding.v1", "start": 100, "stop": 1000, "compound": 1.001}


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"system__seed": 7}, {}, r"own\.cfg: \[system\] seed = 7: .* or --seed 7; write seed = 0"),
        ({}, {"max_steps": 1501}, r"1,501 steps .* \[training\] has max_steps = 1500; write max_steps = 1501$"),
        (
            {"labelwise__epochs": 0, "training__max_steps": 300},
            {},
            r"eval_frequency = 100 evaluates .* in max_steps = 300; write eval_frequency = 75, or less",
        ),
        (
            {"training__batcher": batcher("batch_by_words", SCHEDULE)},
            {},
            r"needs batches of a fixed size.*batch_by_words.*write epochs = 0, and training takes max_steps = 1500",
        ),
        ({"training__batcher": {"@batchers": "my.own.v1", "size": 9}}, {}, r"my\.own\.v1 of size 9; write epochs = 0"),
        ({"labelwise__epoch": 3}, {}, r"\[labelwise\] .*unknown field `epoch`; its keys are epochs, least_steps, sm"),
    ],
    ids=["seed", "too many steps", "rarely evaluated", "a schedule", "own batcher", "unknown key"],
)
def test_what_would_not_be_trained_as_it_stands_is_refused(changed, options, message, demo_corpus, tmp_path):
    changed = {"labelwise__small_batch": 0, **changed}
    with pytest.raises(InputError, match=message):
        read_settings(TrainingConfig(own(tmp_path, **changed), demo_corpus, **options))


def test_more_steps_than_a_rate_that_falls_has_name_both_keys(demo_corpus):
    with pytest.raises(InputError, match="write max_steps = 5001 there, and total_steps likewise"):
        read_settings(TrainingConfig(SMALL, demo_corpus, max_steps=5001))


@pytest.mark.parametrize(
    ("given", "epochs", "steps"),
    [
        (batcher("batch_by_words"), 2, 2 * 50_000 / 100),
        (batcher("batch_by_padded") | {"buffer": 9, "discard_oversize": False}, 2, 2 * 50_000 / 100),
        (batcher("batch_by_sequence"), 20, 20 * 2_500 / 100),
        (batcher("batch_by_words", SCHEDULE), 0, 1500),
    ],
    ids=["words", "padded", "texts", "a schedule"],
)
def test_an_epoch_has_as_many_batches_as_its_batcher_makes(given, epochs, steps, demo_corpus, tmp_path):
    """Of words, with their padding or without, or of texts; without epochs, nothing needs to be counted."""
    corpus = corpus_of(tmp_path, demo_corpus, texts=2_500, words=50_000)
    config = own(tmp_path, training__batcher=given, labelwise__epochs=epochs, labelwise__least_steps=0)
    assert read_settings(TrainingConfig(config, corpus))["training"]["max_steps"] == steps
    if epochs:
        half = read_settings(TrainingConfig(config, corpus, limit=1_250))
        assert half["training"]["max_steps"] == steps / 2


@pytest.mark.parametrize(
    ("options", "steps", "often"),
    [
        ({}, 300, 75),
        ({"max_steps": 40}, 40, 10),
        ({"max_steps": 1500}, 1500, 100),
        ({"overrides": {"training.max_steps": 40}}, 40, 10),
        ({"overrides": {"training.max_steps": 9000, "training.eval_frequency": 9000}}, 9000, 9000),
    ],
)
def test_dev_is_evaluated_four_times_where_the_steps_are_not_the_configs_own(options, steps, often, demo_corpus):
    training = read_settings(TrainingConfig(CPU, demo_corpus, **options))["training"]
    assert (training["max_steps"], training["eval_frequency"]) == (steps, often)


def test_keys_of_an_older_config_are_named_in_one_message(demo_corpus, tmp_path):
    (tmp_path / "own.cfg").write_text(OF_0_3_0)
    with pytest.raises(InputError, match=r"own\.cfg: labelwise no longer reads these keys:\n") as error:
        read_settings(TrainingConfig(tmp_path / "own.cfg", demo_corpus))
    told = [line.partition(":")[0].strip() for line in str(error.value).splitlines()[1:]]
    assert sorted(told) == sorted(
        [f"system.{name}" for name in ("epochs", "least_steps", "most_steps", "small_batch", "portable")]
        + ["system.keep_untaught", "components.per_label", "corpora.train.coverage"]
    )
    assert all(CONFIG.values())


def test_keys_of_an_older_project_are_named_in_one_message(tmp_path):
    old = "vars:\n  brat_dir: assets/brat\n  cpu_steps: 100\n  transformer_name: roberta-base\n  recognizer: ner\n"
    (tmp_path / "project.yml").write_text(old + "dvc:\n  stages: [cpu]\ntokenizer:\n  units: true\n")
    with pytest.raises(InputError, match="no longer reads these keys") as error:
        read_section(tmp_path / "project.yml", "vars", VarsSection, others=True)
    names = ("vars.brat_dir", "vars.cpu_steps", "vars.transformer_name", "vars.recognizer", "dvc.stages", "tokenizer")
    for name in names:
        assert f"{name}: {PROJECT[name]}" in str(error.value)


@pytest.mark.parametrize("config", [CPU, SMALL, GPU, NER, TRF], ids=lambda config: config.stem)
@pytest.mark.parametrize("kind", ["whole", "steps", "fold", "share", "gpu"])
def test_training_changes_the_keys_of_the_list_alone(config, kind, demo_corpus):
    pytest.importorskip("spacy_transformers")
    wanted = TrainingConfig(config, demo_corpus, seed=3, max_steps=40 if kind == "steps" else 0)
    if kind == "fold":
        wanted = fold_recipes(Folds(wanted, 3))[1]
    if kind == "share":
        wanted = share_of(wanted, 5)
    if kind == "gpu":
        wanted = TrainingConfig(config, demo_corpus, gpu_id=0)
    settings = read_settings(wanted)
    changed, written = changed_keys(wanted, settings), load_config(config)
    assert {*changed} <= {*FITTED}
    assert flatten(written).keys() == flatten(settings).keys()
    for key, (before, after) in changed.items():
        block: Any = written
        for part in key.split("."):
            block = block[part]
        assert block == before != after
    in_it = {
        "whole": {"system.seed": 3, "training.max_steps": 300},
        "steps": {"training.max_steps": 40, "training.eval_frequency": 10},
        "fold": {"corpora.train.folds": 3, "corpora.train.leave_out": 1},
        "share": {"corpora.train.limit": 5},
        "gpu": {"training.max_steps": 300},
    }[kind]
    assert {key: changed[key][1] for key in in_it} == in_it
    assert (RATE in changed) == (config in (SMALL, GPU, TRF))
    assert any(key.endswith("mixed_precision") for key in changed) == (config in (GPU, TRF) and kind != "gpu")


def test_what_training_changes_is_told_and_in_the_record(demo_corpus, tmp_path):
    told: list[str] = []
    train_in(tmp_path, demo_corpus, {}, own(tmp_path, training__max_steps=8), seed=5, max_steps=4, log=told.append)
    [said] = [one for one in told if "changed for this training" in one]
    changed = json.loads((tmp_path / "model" / RECORD).read_text())["changed"]
    assert changed["system.seed"] == [0, 5]
    assert changed["training.max_steps"] == [8, 4]
    assert changed["training.eval_frequency"] == [100, 1]
    assert changed["training.batcher.size"] == [2000, 700]
    for key, (old, new) in changed.items():
        assert f"{key} {old} -> {new}" in said
    assert {*changed} <= FITTED


def test_a_pipeline_of_the_config_as_it_stands_has_no_changes_of_it(demo_corpus):
    """Which is the only one that a user may take for what he wrote."""
    wanted = TrainingConfig(CPU, demo_corpus)
    assert {*changed_keys(wanted, read_settings(wanted))} == {
        "training.max_steps",
        "training.eval_frequency",
        "training.batcher.size",
    }
    assert ROOT in CPU.parents

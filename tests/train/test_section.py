"""The section [labelwise] of a config."""

import pytest
from spacy.util import load_config

from labelwise.common.errors import InputError
from labelwise.train.checkpoints import facts_of
from labelwise.train.pipeline import load_settings, read_settings
from labelwise.train.recipe import Recipe
from labelwise.train.section import VALUES, check_section
from tests.conftest import ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
PLAIN = {"on_oom": "stop", "portable": False, "gpus": 1}


@pytest.mark.parametrize("config", [CPU, GPU], ids=["cpu", "gpu"])
def test_the_configs_have_what_is_meant_where_nothing_is_said(config):
    """What the other device has no use for isn't in a config."""
    section = load_config(config)["labelwise"]
    assert PLAIN.keys() - section.keys() == ({"gpus"} if config == CPU else {"portable"})
    assert load_settings(config, {})["labelwise"] == check_section({}, config) == PLAIN


@pytest.mark.parametrize("key", VALUES)
def test_each_value_is_taken(key):
    for value in VALUES[key]:
        assert check_section({key: value}, CPU) == {**PLAIN, key: value}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("freeze = true", "has no 'freeze'; give on_oom, portable, gpus"),
        ("portable = yes", 'portable = "yes": give false or true'),
        ("portable = 1", "portable = 1: give false or true"),
        ('on_oom = "half"', 'on_oom = "half": give "stop" or "halve"'),
        ("gpus = 0", "gpus = 0: give 1 or 2 or "),
        ("gpus = true", "gpus = true: give 1 or 2 or "),
    ],
)
def test_another_key_or_value_is_an_error_that_says_which_there_are(line, message, tmp_path):
    config = tmp_path / "own.cfg"
    config.write_text(f"[labelwise]\n{line}\n")
    with pytest.raises(InputError) as error:
        load_settings(config, {})
    assert f"own.cfg: [labelwise] {message}" in str(error.value)


def test_a_config_without_the_section_takes_other_values_for_it_all_the_same(tmp_path):
    (tmp_path / "own.cfg").write_text('[nlp]\nlang = "en"\n')
    settings = load_settings(tmp_path / "own.cfg", {"labelwise.portable": True, "nlp.lang": "de"})
    assert settings == {"nlp": {"lang": "de"}, "labelwise": {**PLAIN, "portable": True}}


def test_a_training_resumes_with_another_section(demo_corpus):
    """With more GPUs, or what lets it continue after memory ran out."""
    recipes = [
        Recipe(CPU, demo_corpus, overrides={"labelwise.on_oom": on_oom, "labelwise.gpus": gpus})
        for on_oom, gpus in (("stop", 1), ("halve", 2))
    ]
    one, other = (facts_of(read_settings(recipe), demo_corpus, -1) for recipe in recipes)
    assert one == other

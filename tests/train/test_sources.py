"""The pipelines that a training begins with: where they are, and that a training isn't resumed with others."""

import shutil
import sys

import spacy

from labelwise.train.checkpoints import facts_of
from labelwise.train.pipeline import load_settings
from labelwise.train.sources import source_folders
from tests.train.test_resume import CPU


def test_a_training_is_not_resumed_with_another_pipeline_of_the_same_name(demo_corpus, tmp_path):
    first = tmp_path / "first"
    spacy.blank("en").to_disk(first)
    settings = load_settings(CPU, {})
    settings["components"]["tok2vec"] = {"source": str(first)}
    before = facts_of(settings, demo_corpus, -1)
    assert facts_of(settings, demo_corpus, -1) == before
    spacy.blank("de").to_disk(first)
    after = facts_of(settings, demo_corpus, -1)
    assert [name for name in before if before[name] != after[name]] == [f"the pipeline {first}"]


def test_an_installed_pipeline_is_found_as_spacy_finds_it(tmp_path, monkeypatch):
    package = tmp_path / "en_installed"
    package.mkdir()
    spacy.blank("en", meta={"name": "installed", "version": "1.2"}).to_disk(package / "en_installed-1.2")
    shutil.copy(package / "en_installed-1.2" / "meta.json", package)
    init = "from spacy.util import load_model_from_init_py\nload = lambda **given: load_model_from_init_py(__file__)\n"
    (package / "__init__.py").write_text(init)
    (tmp_path / "en_installed-1.2.dist-info").mkdir()
    (tmp_path / "en_installed-1.2.dist-info" / "METADATA").write_text("Name: en_installed\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"components": {"ner": {"source": "en_installed"}, "tok2vec": {"factory": "tok2vec"}}}
    assert source_folders(settings) == {"en_installed": spacy.load("en_installed").path}
    monkeypatch.delitem(sys.modules, "en_installed")

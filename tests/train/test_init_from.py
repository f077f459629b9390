"""Training that begins with components of another pipeline."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import spacy

from labelwise.corpus.manifest import MANIFEST
from labelwise.errors import InputError
from labelwise.train.config import make_pipeline, read_settings, source_folders
from labelwise.train.parameters import find_slots
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

CPU, GPU = ROOT / "configs" / "cpu.cfg", ROOT / "configs" / "gpu.cfg"
SMALL = {"training.max_steps": 1, "training.eval_frequency": 1}


def overrides_for(kind: str, bert: Path) -> dict:
    if kind == "cpu":
        return {**SMALL, "training.batcher.size": 200, "components.tok2vec.model.encode.width": 16}
    return {**SMALL, "training.batcher.size": 600, "components.per_label.model.tok2vec.name": str(bert)}


@pytest.fixture(scope="module")
def sources(demo_corpus, tiny_bert, tmp_path_factory) -> dict[str, Path]:
    """A pipeline that is trained for two steps by each config: "cpu" and "gpu"."""
    root = tmp_path_factory.mktemp("sources")
    for kind, config in (("cpu", CPU), ("gpu", GPU)):
        train_pipeline(
            Recipe(config, demo_corpus, overrides=overrides_for(kind, tiny_bert)), root / kind, root / "c.tsv"
        )
    return {kind: root / kind for kind in ("cpu", "gpu")}


def begin(config: Path, corpus: Path, source: Path, overrides: dict):
    """Make the pipeline as training begins with it."""
    recipe = Recipe(config, corpus, init_from=str(source), overrides=overrides)
    return make_pipeline(recipe, read_settings(recipe))


def parameters(nlp, pipe: str) -> list[np.ndarray]:
    """Of one component."""
    return [slot.get() for slot in find_slots(SimpleNamespace(pipeline=[(pipe, nlp.get_pipe(pipe))]))]


def relabelled(corpus: Path, folder: Path, labels: list[str]) -> Path:
    """Copy a corpus, and give it other labels."""
    shutil.copytree(corpus, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    ner = spacy.blank("en").add_pipe("ner")
    actions = ner.moves.get_actions(entity_types=labels)
    by_action = {str(action): dict.fromkeys(named, 1) for action, named in actions.items()}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "labels": labels}))
    (folder / "labels" / "ner.json").write_text(json.dumps(by_action))
    (folder / "labels" / "per_label.json").write_text(json.dumps(sorted(labels)))
    return folder


def corpus_labels(corpus: Path) -> list[str]:
    return sorted(json.loads((corpus / MANIFEST).read_text())["labels"])


@pytest.mark.parametrize(("kind", "config", "pipe"), [("cpu", CPU, "tok2vec"), ("gpu", GPU, "ner")])
def test_the_parameters_are_the_sources(kind, config, pipe, sources, demo_corpus, tiny_bert):
    """The config's own width and seed would give others."""
    overrides = {**overrides_for(kind, tiny_bert), "system.seed": 5}
    overrides.pop("components.tok2vec.model.encode.width", None)
    nlp = begin(config, demo_corpus, sources[kind], overrides)
    source = spacy.load(sources[kind])
    for name in {pipe, "ner"}:
        pairs = list(zip(parameters(nlp, name), parameters(source, name), strict=True))
        assert len(pairs) > 3
        assert all(np.array_equal(one, two) for one, two in pairs)
    text = "Heat 5 mL, said Zoë Barton of Mercury Labs."
    # What was fitted to the source on dev isn't taken, which decides between spans that overlap.
    docs = nlp(text), source(text)
    one, two = ([(span.text, span.label_) for span in doc.spans["labels"]] for doc in docs)
    assert one == two != []


@pytest.mark.parametrize(("kind", "config"), [("cpu", CPU), ("gpu", GPU)])
def test_heads_of_labels_that_the_corpus_lacks_are_left_out(kind, config, sources, demo_corpus, tmp_path, tiny_bert):
    """The others are the source's."""
    every = corpus_labels(demo_corpus)
    corpus = relabelled(demo_corpus, tmp_path / "fewer", [*every[:1], *every[2:]])
    nlp, source = begin(config, corpus, sources[kind], overrides_for(kind, tiny_bert)), spacy.load(sources[kind])
    assert list(nlp.get_pipe("ner").labels) == [*every[:1], *every[2:]]
    own, theirs = (one.get_pipe("ner").model.get_ref("output") for one in (nlp, source))
    for name in ("W", "b"):
        heads = theirs.get_param(name).reshape((len(every), 5, -1))
        assert np.array_equal(own.get_param(name).reshape((-1, *heads.shape[1:])), np.delete(heads, 1, axis=0))
    nlp("Heat 5 mL.")


def test_spacys_ner_is_not_taken_if_it_has_labels_that_the_corpus_lacks(demo_corpus, tmp_path):
    """Its tok2vec is, of another width than the config's."""
    recipe = Recipe(CPU, demo_corpus, overrides=overrides_for("cpu", tmp_path), recognizer="ner")
    train_pipeline(recipe, tmp_path / "source", tmp_path / "c.tsv")
    corpus = relabelled(demo_corpus, tmp_path / "fewer", corpus_labels(demo_corpus)[:-1])
    recipe = Recipe(CPU, corpus, init_from=str(tmp_path / "source"), recognizer="ner")
    settings = read_settings(recipe)
    assert settings["components"]["tok2vec"] == {"source": str(tmp_path / "source")}
    nlp = make_pipeline(recipe, settings)
    assert sorted(nlp.get_pipe("ner").labels) == corpus_labels(demo_corpus)[:-1]
    assert nlp.get_pipe("tok2vec").model.get_dim("nO") == 16


def found(nlp, text: str) -> list[tuple[str, str]]:
    doc = nlp(text)
    return [(span.text, span.label_) for span in doc.spans["labels"]]


def test_labels_that_the_sourced_ner_lacks_are_added_and_learned_with_the_others(merging):
    """Training begins with what the pipeline finds, and nothing of the new label."""
    texts = [f"{name} saw {place} {n} times." for n in range(60) for name, place in (("Ann", "Rome"), ("Bob", "Oslo"))]
    for label, word in (("PER", 0), ("LOC", 2), ("TIMES", 3)):
        rows = []
        for text in texts:
            start = len(" ".join([*text.split()[:word], ""]))
            rows.append({"text": text, "spans": [{"start": start, "end": text.index(" ", start), "label": label}]})
        merging.add(label.lower(), [label], rows)
        if label != "PER":
            merging.run(label)
    overrides = {"training.max_steps": 40, "training.eval_frequency": 20}
    root, text = merging.root, "Ann saw Oslo 7 times."
    train_pipeline(Recipe(CPU, root / "LOC", overrides=overrides), root / "two", root / "c.tsv")
    assert found(spacy.load(root / "two"), text) == [("Oslo", "LOC"), ("Ann", "PER")]
    nlp = begin(CPU, root / "TIMES", root / "two", {})
    assert nlp.get_pipe("ner").labels == ("LOC", "PER", "TIMES")
    assert found(nlp, text) == [("Oslo", "LOC"), ("Ann", "PER")]
    recipe = Recipe(CPU, root / "TIMES", overrides=overrides, init_from=str(root / "two"))
    train_pipeline(recipe, root / "three", root / "c.tsv")
    assert found(spacy.load(root / "three"), text) == [("Oslo", "LOC"), ("Ann", "PER"), ("7", "TIMES")]


def test_labels_that_spacys_ner_lacks_are_added(demo_corpus, tmp_path):
    overrides = overrides_for("cpu", tmp_path)
    recipe = Recipe(CPU, demo_corpus, overrides=overrides, recognizer="ner")
    train_pipeline(recipe, tmp_path / "source", tmp_path / "c.tsv")
    labels = [*corpus_labels(demo_corpus), "ZEBRA", "AARDVARK"]
    corpus = relabelled(demo_corpus, tmp_path / "more", labels)
    again = Recipe(CPU, corpus, init_from=str(tmp_path / "source"), overrides=overrides, recognizer="ner")
    train_pipeline(again, tmp_path / "model", tmp_path / "c.tsv")
    assert set(spacy.load(tmp_path / "model").get_pipe("ner").labels) == set(labels)


def test_a_pipeline_that_is_not_there_is_an_error(demo_corpus, tmp_path):
    with pytest.raises(InputError, match=r"init_from '.*nowhere': "):
        read_settings(Recipe(CPU, demo_corpus, init_from=str(tmp_path / "nowhere")))


def test_a_transformer_where_there_is_no_package_for_it_is_an_error_with_a_remedy(demo_corpus, tmp_path):
    """The environment of the CPU can't even load such a pipeline."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", name="transformer")
    nlp.to_disk(tmp_path / "source")
    for file in ("meta.json", "config.cfg"):
        text = (tmp_path / "source" / file).read_text()
        (tmp_path / "source" / file).write_text(text.replace('"sentencizer"', '"nowhere.transformer"'))
    with pytest.raises(InputError, match=r"(?s)Can't find factory for .*Remedy: for configs/cpu\.cfg, name a pipeline"):
        read_settings(Recipe(CPU, demo_corpus, init_from=str(tmp_path / "source")))


def test_a_pipeline_that_has_nothing_to_take_is_an_error(demo_corpus, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "source")
    with pytest.raises(InputError, match=r"it has \['sentencizer'\], of which none can be taken"):
        read_settings(Recipe(CPU, demo_corpus, init_from=str(tmp_path / "source")))


@pytest.mark.parametrize(("config", "kind"), [(CPU, "gpu"), (GPU, "cpu")])
def test_ner_is_not_taken_without_what_it_listens_to(config, kind, sources, demo_corpus):
    message = (
        r"none can be taken .* Remedy: for configs/cpu\.cfg, name a pipeline with tok2vec; for configs/gpu\.cfg, one"
    )
    with pytest.raises(InputError, match=message):
        read_settings(Recipe(config, demo_corpus, init_from=str(sources[kind])))


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

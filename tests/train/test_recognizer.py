"""Training a head for each label: the whole way, partial coverage, resuming, and a transformer."""

import json

import pytest
import spacy
from spacy.language import Language

from labelwise.errors import InputError
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.merge.rules.policies import Policies
from labelwise.train.config import load_settings, read_settings
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from spacy_per_label import PerLabelRecognizer
from tests.train.test_resume import CPU, GPU, files, train_in

SMALL = {
    "training.max_steps": 6,
    "training.eval_frequency": 2,
    "training.batcher.size": 300,
    "components.tok2vec.model.encode.width": 16,
}


@pytest.mark.long
def test_the_whole_way(demo_corpus, tmp_path):
    overrides = {"training.max_steps": 60, "training.eval_frequency": 20}
    train_pipeline(Recipe(CPU, demo_corpus, overrides=overrides), tmp_path / "model", tmp_path / "c.tsv")
    pipe = spacy.load(tmp_path / "model").get_pipe("ner")
    assert isinstance(pipe, PerLabelRecognizer)
    assert list(pipe.labels) == sorted(json.loads((demo_corpus / "manifest.json").read_text())["labels"])
    scores, *_ = evaluate_pipeline(tmp_path / "model", demo_corpus / "test")
    assert scores.all_gold.f > 0.2


def test_a_killed_training_resumes_to_the_bit(demo_corpus, tmp_path, monkeypatch):
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, SMALL)
    update, made = Language.update, []

    def stop(*given, **options):
        made.append(1)
        if len(made) == 5:
            raise KeyboardInterrupt
        return update(*given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Language, "update", stop)
        with pytest.raises(KeyboardInterrupt):
            train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, SMALL)
    trained = train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, SMALL, resume=True)
    assert trained.resumed == 2
    assert files(tmp_path / "one") == files(tmp_path / "other")


def test_a_transformer_embeds_for_it(demo_corpus, tiny_bert, tmp_path):
    """On the CPU in full precision, whatever the config has, which is for a GPU; spaCy's ner can have it, too."""
    for recognizer, block in (("per-label", "per_label"), ("ner", "ner")):
        overrides = {"training.max_steps": 2, "training.eval_frequency": 1, "training.batcher.size": 900}
        overrides[f"components.{block}.model.tok2vec.name"] = str(tiny_bert)
        recipe = Recipe(GPU, demo_corpus, precision="bf16", overrides=overrides, recognizer=recognizer)
        train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")
        nlp = spacy.load(tmp_path / "model")
        assert nlp.config["components"]["ner"]["model"]["tok2vec"]["mixed_precision"] is False
        assert len((tmp_path / "c.tsv").read_text().splitlines()) == 3
        assert evaluate_pipeline(tmp_path / "model", demo_corpus / "test").metrics.all_gold.support > 0


@pytest.mark.parametrize(
    ("precision", "mixed", "scaled"),
    [("fp16", True, True), ("bf16", True, False), ("fp32", False, False), ("", True, True)],
)
def test_a_precision_is_spacy_transformers_own(precision, mixed, scaled, demo_corpus):
    recipe = Recipe(GPU, demo_corpus, precision=precision, transformer_name="some/bert", gpu_id=0)
    model = read_settings(recipe)["components"]["ner"]["model"]["tok2vec"]
    assert (model["name"], model["mixed_precision"]) == ("some/bert", mixed)
    assert model["grad_scaler_config"]["enabled"] == scaled


def test_labels_that_are_never_annotated_on_the_same_text_are_learned_both(merging):
    """Half of the texts are annotated for people, the other half for places; all of them have both."""
    for name, label, word, numbers in (("people", "PER", "Ann", range(60)), ("places", "LOC", "Rome", range(60, 120))):
        rows = []
        for number in numbers:
            text = f"Ann saw Rome {number} times."
            start = text.index(word)
            rows.append({"text": text, "spans": [{"start": start, "end": start + len(word), "label": label}]})
        merging.add(name, [label], rows)
    gold = [{"start": 0, "end": 3, "label": "PER"}, {"start": 8, "end": 12, "label": "LOC"}]
    rows = [{"text": f"Ann saw Rome {n} times.", "spans": gold} for n in range(200, 220)]
    merging.add("both", ["PER", "LOC"], rows, split="test")
    merging.run(dev_ratio=0.2, test_ratio=0.0)
    found = {}
    for recognizer, coverage in (("per-label", "by-label"), ("ner", "outside")):
        out = merging.root / recognizer
        overrides = {**SMALL, "training.max_steps": 40, "training.eval_frequency": 40}
        overrides["corpora.train.coverage"] = coverage
        recipe = Recipe(CPU, merging.root / "corpus", overrides=overrides, recognizer=recognizer)
        train_pipeline(recipe, out, merging.root / "c.tsv")
        found[recognizer] = evaluate_pipeline(out, merging.root / "corpus" / "test").metrics.all_gold.f
    assert found["per-label"] == 1.0 > found["ner"]


@pytest.mark.parametrize("coverage", ["by-label", "outside"])
def test_where_unmarked_means_no_entity_the_recognizer_is_told_so(merging, coverage):
    merging.add("a", ["A"], [{"text": "big cat"}])
    merging.add("b", ["B"], [{"text": "big dog"}])
    merging.run(policies=Policies(coverage=coverage))
    settings = read_settings(Recipe(CPU, merging.root / "corpus"))
    assert settings["corpora"]["train"]["coverage"] == coverage


def test_a_config_without_the_block_is_refused(demo_corpus, tmp_path):
    config = tmp_path / "own.cfg"
    text = CPU.read_text()
    start, end = text.index("[components.per_label]"), text.index("[corpora]")
    config.write_text(text[:start] + text[end:])
    read_settings(Recipe(config, demo_corpus, recognizer="ner"))
    with pytest.raises(InputError, match=r"recognizer per-label: the config has no \[components\.per_label\]"):
        read_settings(Recipe(config, demo_corpus))


def test_another_kind_of_recognizer_is_not_taken_from_a_pipeline(demo_corpus, tmp_path):
    """Of a pipeline with spaCy's ner, tok2vec alone, or the recognizer wouldn't be what was asked for."""
    recipe = Recipe(CPU, demo_corpus, overrides={**SMALL, "training.max_steps": 1}, recognizer="ner")
    train_pipeline(recipe, tmp_path / "model", tmp_path / "c.tsv")
    for recognizer, taken in (("per-label", {"tok2vec"}), ("ner", {"tok2vec", "ner"})):
        recipe = Recipe(CPU, demo_corpus, recognizer=recognizer, init_from=str(tmp_path / "model"), overrides=SMALL)
        settings = read_settings(recipe)
        assert {name for name, block in settings["components"].items() if "source" in block} == taken


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("freeze = true", "has no 'freeze'; give portable, sub_batch"),
        ("portable = yes", 'portable = "yes": give false or true'),
        ("portable = 1", "portable = 1: give false or true"),
        ("sub_batch = -1", "sub_batch = -1: give a number of words, or 0"),
        ("sub_batch = true", "sub_batch = true: give a number of words, or 0"),
    ],
)
def test_another_key_or_value_of_the_section_is_an_error_that_says_which_there_are(line, message, tmp_path):
    config = tmp_path / "own.cfg"
    config.write_text(f"[labelwise]\n{line}\n")
    with pytest.raises(InputError) as error:
        load_settings(config, {})
    assert f"own.cfg: [labelwise] {message}" in str(error.value)

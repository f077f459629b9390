"""Training a head for each label: the whole way, partial coverage, resuming, and a transformer."""

import json

import pytest
import spacy
import torch

from labelwise.common.errors import InputError
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.merge.rules.policies import Policies
from labelwise.recognizer.per_label import PerLabelRecognizer
from labelwise.train.out_of_memory import Updates
from labelwise.train.pipeline import read_settings
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import NO_DROPOUT, ROOT
from tests.train.test_resume import CPU, GPU, files, train_in

SMALL = {
    "training.max_steps": 6,
    "training.eval_frequency": 2,
    "training.batcher.size": 300,
    "components.tok2vec.model.encode.width": 16,
}


@pytest.mark.slow
@pytest.mark.long
def test_the_whole_way(demo_corpus, tmp_path):
    overrides = {"training.max_steps": 60, "training.eval_frequency": 20}
    train_pipeline(
        Recipe(CPU, demo_corpus, overrides=overrides, recognizer="per-label"), tmp_path / "model", tmp_path / "c.tsv"
    )
    nlp = spacy.load(tmp_path / "model")
    pipe = nlp.get_pipe("ner")
    assert isinstance(pipe, PerLabelRecognizer)
    assert list(pipe.labels) == sorted(json.loads((demo_corpus / "manifest.json").read_text())["labels"])
    scores, *_ = evaluate_pipeline(tmp_path / "model", demo_corpus / "test")
    assert scores.all_gold.f > 0.2
    last = (tmp_path / "c.tsv").read_text().splitlines()[-1].split("\t")
    assert last[0] == "60"
    assert float(last[-1]) > 0


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_bit(demo_corpus, tmp_path, monkeypatch):
    train_in(tmp_path / "one", monkeypatch, CPU, demo_corpus, SMALL, recognizer="per-label")
    update, made = Updates.update, []

    def stop(*given, **options):
        made.append(1)
        if len(made) == 5:
            raise KeyboardInterrupt
        update(*given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Updates, "update", stop)
        with pytest.raises(KeyboardInterrupt):
            train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, SMALL, recognizer="per-label")
    trained = train_in(tmp_path / "other", monkeypatch, CPU, demo_corpus, SMALL, recognizer="per-label", resume=True)
    assert trained.resumed == 2
    assert files(tmp_path / "one") == files(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.long
def test_a_transformer_embeds_for_it(demo_corpus, tiny_bert, tmp_path, precision):
    overrides = {
        "training.max_steps": 2,
        "training.eval_frequency": 1,
        "training.batcher.size": 1500,
        "components.transformer.model.name": str(tiny_bert),
        "components.transformer.model.precision": precision,
    }
    train_pipeline(
        Recipe(GPU, demo_corpus, overrides=overrides, recognizer="per-label"), tmp_path / "model", tmp_path / "c.tsv"
    )
    nlp = spacy.load(tmp_path / "model")
    assert nlp("Heat 5 mL.").spans["labels"].attrs["scores"] is not None


@pytest.mark.slow
@pytest.mark.long
def test_in_fp16_an_overflow_skips_the_transformers_step_and_then_it_learns(
    demo_corpus, tiny_bert, tmp_path, monkeypatch
):
    """Gradients, which are a sum over all labels and tokens, fit when the scale has been halved a few times."""
    from labelwise.recognizer.precision import PrecisionShim

    own, steps = PrecisionShim.finish_update, []

    def watched(shim, optimizer):
        parameters = [parameter.detach().clone() for parameter in shim._model.parameters()]
        skipped = shim._grad_scaler.skipped
        own(shim, optimizer)
        changed = not all(map(torch.equal, parameters, shim._model.parameters()))
        steps.append("learned" if changed else "skipped" if shim._grad_scaler.skipped > skipped else "nothing")

    monkeypatch.setattr(PrecisionShim, "finish_update", watched)
    model = "components.transformer.model"
    overrides = {
        "training.dropout": 0.0,
        "training.batcher.size": 2500,
        "training.max_steps": 24,
        "training.eval_frequency": 6,
        "training.optimizer.learn_rate.initial_rate": 0.002,
        "training.optimizer.learn_rate.warmup_steps": 1,
        "training.optimizer.learn_rate.total_steps": 100,
        f"{model}.name": str(tiny_bert),
        f"{model}.precision": "fp16",
        f"{model}.grad_scaler_config.init_scale": 2.0**16,
        f"{model}.transformer_config": NO_DROPOUT,
        "corpora.dev.limit": 2,
    }
    curve = tmp_path / "c.tsv"
    train_pipeline(Recipe(GPU, demo_corpus, overrides=overrides, recognizer="per-label"), tmp_path / "model", curve)
    many = steps.count("skipped")
    assert 3 <= many <= 12
    assert steps == ["skipped"] * many + ["learned"] * (25 - many)
    header, *lines = [line.split("\t") for line in curve.read_text().splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert [row["step"] for row in rows] == ["6", "12", "18", "24"]
    assert (float(rows[-1]["grad_scale"]), rows[-1]["skipped_steps"]) == (2.0 ** (16 - many), str(many))
    # The first is the sum of seven steps, the others of six.
    losses = [float(row["loss_ner"]) for row in rows]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.slow
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
    merging.add(
        "both",
        ["PER", "LOC"],
        [{"text": f"Ann saw Rome {n} times.", "spans": gold} for n in range(200, 220)],
        split="test",
    )
    merging.run(dev_ratio=0.2, test_ratio=0.0)
    found = {}
    for recognizer, coverage in (("per-label", "by-label"), ("ner", "outside")):
        out = merging.root / recognizer
        overrides = {**SMALL, "training.max_steps": 40, "training.eval_frequency": 40}
        overrides["corpora.train.coverage"] = coverage
        train_pipeline(
            Recipe(CPU, merging.root / "corpus", overrides=overrides, recognizer=recognizer),
            out,
            merging.root / "c.tsv",
        )
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
    text = (ROOT / "configs" / "cpu.cfg").read_text()
    start, end = text.index("[components.per_label]"), text.index("[corpora]")
    config.write_text(text[:start] + text[end:])
    read_settings(Recipe(config, demo_corpus, recognizer="ner"))
    with pytest.raises(InputError, match=r"recognizer per-label: the config has no \[components\.per_label\]"):
        read_settings(Recipe(config, demo_corpus))


@pytest.mark.slow
def test_another_kind_of_recognizer_is_not_taken_from_a_pipeline(demo_corpus, tmp_path):
    """Of a pipeline with spaCy's ner, tok2vec alone, or the recognizer wouldn't be what was asked for."""
    one_step = {**SMALL, "training.max_steps": 1}
    train_pipeline(
        Recipe(CPU, demo_corpus, overrides=one_step, recognizer="ner"), tmp_path / "model", tmp_path / "c.tsv"
    )
    for recognizer, taken in (("per-label", {"tok2vec"}), ("ner", {"tok2vec", "ner"})):
        recipe = Recipe(CPU, demo_corpus, recognizer=recognizer, init_from=str(tmp_path / "model"), overrides=SMALL)
        settings = read_settings(recipe)
        assert {name for name, block in settings["components"].items() if "source" in block} == taken

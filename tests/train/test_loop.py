import zlib
from collections.abc import Callable
from io import StringIO
from itertools import islice, pairwise

import numpy as np
import pytest
import spacy
import spacy.training.loop as spacy_loop
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.training.batchers import configure_minibatch_by_words
from thinc.api import fix_random_seed

from labelwise.train.config import fit_config, make_pipeline
from labelwise.train.loop import train_while_improving
from labelwise.train.parameters import find_parameters
from labelwise.train.reader import PartitionedCorpus, read_batches, sub_batches
from labelwise.train.training import Training
from labelwise.train.training_config import TrainingConfig
from tests.train.training import CPU, NER, STEPS, curve, files, train_in

JUMPING = {"training.optimizer.learn_rate": 0.03, "training.optimizer.use_averages": False}
UNSCORED = {"training.score_weights.ents_f": 0.0, "training.score_weights.ents_macro_f": 0.0}
LENGTHS = st.lists(st.integers(1, 30), max_size=12)


def make_texts(lengths: list[int]) -> list[str]:
    return [chr(ord("a") + number) * length for number, length in enumerate(lengths)]


@settings(max_examples=150, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.integers(0, 60))
def test_parts_have_every_text_once_and_no_more_words_than_they_may(lengths, parts, most):
    texts = make_texts(lengths)
    batches = sub_batches(texts, parts, most)
    assert [text for part in batches for text in part] == texts
    limit = min(most or 10**9, -(-sum(lengths) // parts))
    assert all(sum(map(len, part)) <= limit for part in batches if len(part) > 1)
    assert all(sum(map(len, [*one, other[0]])) > limit for one, other in pairwise(batches)), "no cut without need"


def test_batches_are_those_of_each_epoch_from_any_place_on(demo_corpus):
    batcher = configure_minibatch_by_words(size=300, tolerance=0.2, discard_oversize=False)

    def read(*args: int) -> list[tuple[int, int, list[str]]]:
        batches = read_batches(PartitionedCorpus(demo_corpus / "train", shuffle=True), batcher, *args)
        return [(epoch, number, [doc.text for doc in texts]) for epoch, number, _, texts in islice(batches, 30)]

    whole = read(3)
    batches = len(whole) // 3
    assert batches > 2
    assert [place[:2] for place in whole] == [(epoch, number) for epoch in range(3) for number in range(1, batches + 1)]
    epochs = [sorted(text for at, _, texts in whole if at == epoch for text in texts) for epoch in range(3)]
    assert epochs[0] == epochs[1] == epochs[2]
    for skip in range(len(whole)):
        assert read(3, *divmod(skip, batches)) == whole[skip:]
    assert len(read(-1)) == 30


def capture(nlp: spacy.Language, scores: list) -> None:
    """Keep a config's logged scores, and have spaCy's loop use our seeds."""

    def logger(nlp, stdout, stderr):
        def log(info):
            if info and info["score"] is not None and info["step"]:
                scores_of_step = {
                    name: info["other_scores"][name] for name in ("ents_f", "ents_p", "ents_r", "ents_per_type")
                }
                scores.append((info["step"], info["score"], scores_of_step))

        return log, lambda: None

    def before_update(nlp, at):
        fix_random_seed(zlib.crc32(f"0/{at['step']}/0".encode()))

    registered: dict[str, Callable] = {"loggers": lambda: logger, "callbacks": lambda: before_update}
    for name, function in registered.items():
        getattr(spacy.registry, name).register("tests.given", func=function)
    nlp.config["training"] |= {"logger": {"@loggers": "tests.given"}, "before_update": {"@callbacks": "tests.given"}}


@pytest.mark.parametrize(
    ("config", "overrides"),
    [
        (CPU, {}),
        (NER, {}),
        (CPU, {"training.patience": 8, "training.eval_frequency": 2, "training.score_weights.ents_f": 0.0}),
        (CPU, {"training.optimizer.use_averages": False}),
    ],
    ids=["per-label", "ner", "patience", "without averages"],
)
def test_the_steps_are_those_of_spacys_loop_to_the_bit(config, overrides, demo_corpus, tmp_path):
    """spaCy doesn't compute `ents_macro_f`, so it is left out of the weights; ours doesn't evaluate step 0."""
    steps = {"training.max_steps": 10, "training.eval_frequency": 5, "training.score_weights.ents_macro_f": None}
    parameters, scores = [], []
    for name in ("spacys", "ours"):
        recipe = TrainingConfig(config, demo_corpus, overrides=STEPS | steps | overrides)
        out = tmp_path / name
        nlp = make_pipeline(fit_config(recipe))
        capture(nlp, found := [])
        if name == "spacys":
            out.mkdir()
            spacy_loop.train(nlp, out, stdout=StringIO(), stderr=StringIO())
        else:
            log, _ = spacy.registry.resolve(nlp.config["training"])["logger"](nlp, None, None)
            for info in train_while_improving(Training(recipe, nlp)):
                log(info)
        parameters.append([slot.get() for slot in find_parameters(nlp)])
        scores.append(found)
    assert scores[0] == scores[1]
    assert len(scores[0]) > 1
    assert all(np.array_equal(*pair) for pair in zip(*parameters, strict=True))
    if config == NER:  # whose loss and scores are spaCy's own, too
        train_in(tmp_path, demo_corpus, recipe.overrides, config)
        best = [find_parameters(spacy.load(tmp_path / folder)) for folder in ("spacys/model-best", "model")]
        assert all(np.array_equal(one.get(), other.get()) for one, other in zip(*best, strict=True))


@pytest.mark.parametrize(
    ("ending", "evaluated"),
    [
        ({"training.max_steps": 1}, [1]),
        ({"training.max_steps": 5}, [2, 4, 5]),
        ({"training.max_steps": 0, "training.max_epochs": 1, "training.batcher.size": 10_000_000}, [0]),
        ({"training.max_steps": 0, "training.patience": 3, **UNSCORED}, [2, 4]),
    ],
    ids=["before the first evaluation", "between two", "a single step", "patience"],
)
def test_the_last_step_is_always_evaluated(demo_corpus, tmp_path, ending, evaluated):
    """A score of 0 is never better than at step 0: patience of 3 is used up at the second evaluation."""
    trained = train_in(tmp_path, demo_corpus, {**STEPS, **ending})
    assert [int(step) for (step,) in curve(tmp_path, "step")] == evaluated
    assert trained.texts["texts"] > 0


@pytest.mark.parametrize(("own", "steps"), [(JUMPING, 33), (UNSCORED, 6)], ids=["scores jump", "all are 0"])
def test_the_best_pipeline_is_kept_and_of_equals_the_last(own, steps, demo_corpus, tmp_path):
    overrides = {**STEPS, "training.eval_frequency": 3, "training.max_steps": steps, **own}
    scores = train_in(tmp_path / "whole", demo_corpus, overrides).state.scores
    best = max(range(len(scores)), key=lambda number: (scores[number], number))
    end = {"training.max_steps": 3 * (best + 1), "training.eval_frequency": 3 * (best + 1)}
    train_in(tmp_path / "short", demo_corpus, {**overrides, **end})
    one, other = (files(tmp_path / name)["model/tok2vec/model"] for name in ("whole", "short"))
    assert one == other


def test_memory_zones_change_nothing(demo_corpus, tmp_path, monkeypatch):
    for strings in (0, 10**9):
        monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", strings)
        train_in(tmp_path / str(strings), demo_corpus, workers=2)
    assert files(tmp_path / "0") == files(tmp_path / str(10**9))

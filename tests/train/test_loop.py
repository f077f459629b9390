"""The loop: its steps are spaCy's, to the bit; when it evaluates, what it keeps, and that it streams."""

import zlib
from collections.abc import Callable
from io import StringIO
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import spacy
import spacy.training.loop as spacy_loop
from spacy.scorer import PRFScore
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import fix_random_seed

from labelwise.train.checkpoint import State
from labelwise.train.config import read_settings
from labelwise.train.dev_scores import EntityCounts
from labelwise.train.loop import Loop
from labelwise.train.parameters import find_slots
from labelwise.train.ranks import Alone
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT

CPU = ROOT / "configs" / "cpu.cfg"
SMALL = {
    "training.max_steps": 12,
    "training.eval_frequency": 4,
    "training.batcher.size": 150,
    "components.tok2vec.model.encode.width": 16,
}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.long
def test_memory_zones_change_nothing(demo_corpus, tmp_path, monkeypatch, resume):
    """All words forgotten after each update and each batch of evaluation, or none."""
    results = []
    for strings in (0, 10**9):
        monkeypatch.setattr("labelwise.corpus.pipeline.MAX_STRINGS", strings)
        out = tmp_path / str(strings)
        if resume:
            with monkeypatch.context() as patched:
                patched.setattr("labelwise.train.run.tidy_pipeline", lambda *given: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    train_pipeline(Recipe(CPU, demo_corpus, overrides=SMALL), out / "m", out / "c.tsv")
        train_pipeline(Recipe(CPU, demo_corpus, overrides=SMALL, resume=resume), out / "m", out / "c.tsv")
        results.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    one, other = results
    config = next(path for path in one if path.name == "config.cfg")
    assert one.pop(config) != other.pop(config)  # names the curve
    assert one == other


def test_epochs_are_counted_and_streamed(demo_corpus, tmp_path):
    overrides = {**SMALL, "training.max_epochs": 2, "training.max_steps": 0}
    trained = train_pipeline(Recipe(CPU, demo_corpus, overrides=overrides), tmp_path / "m", tmp_path / "c.tsv")
    last = (tmp_path / "c.tsv").read_text().splitlines()[-1].split("\t")
    assert last[1] == "1"
    assert trained.texts["texts"] == trained.texts["pieces"] > 0


class Reference(NamedTuple):
    """What a training did: its parameters in the end, and each evaluation's step and scores."""

    parameters: list[np.ndarray]
    scores: list[tuple[int, float, dict]]


def logged(scores: list) -> Callable:
    """A logger that keeps the scores."""

    def setup(nlp, stdout, stderr):
        def log(info):
            if info and info["other_scores"]:
                names = ("ents_f", "ents_p", "ents_r", "ents_per_type")
                scores.append((info["step"], info["score"], {name: info["other_scores"][name] for name in names}))

        return log, lambda: None

    return setup


def exchange(nlp, scores: list) -> None:
    """Give a config the same Examples, in the same batches, which are sorted by length, and the seeds of our loop."""
    examples = sorted(registry.resolve(nlp.config.interpolate()["corpora"])["train"](nlp), key=len)
    batches = [examples[start : start + 4] for start in range(0, len(examples), 4)]
    made: dict[str, Callable] = {
        "readers": lambda nlp: examples,
        "batchers": lambda items: iter(batches),
        "loggers": logged(scores),
        "callbacks": lambda nlp, at: fix_random_seed(zlib.crc32(f"0/{at['step']}/0".encode())),
    }

    def giving(function: Callable) -> Callable:
        def give() -> Any:
            return function

        return give

    for name, function in made.items():
        getattr(registry, name).register("tests.given", func=giving(function))
    nlp.config["corpora"]["train"] = {"@readers": "tests.given"}
    for block, name in (("batcher", "batchers"), ("logger", "loggers"), ("before_update", "callbacks")):
        nlp.config["training"][block] = {f"@{name}": "tests.given"}


def freeze_tok2vec(config: dict) -> None:
    """As spaCy has it: what is frozen is still run, so that the listeners have something."""
    config["training"] |= {"frozen_components": ["tok2vec"], "annotating_components": ["tok2vec"]}


def make_loop(nlp, output, **options) -> Loop:
    return Loop(nlp, -1, output, ranks=Alone(), state=State(), **options)


@pytest.mark.parametrize(
    ("recognizer", "overrides", "prepare"),
    [
        ("per-label", {}, lambda config: None),
        ("ner", {}, lambda config: None),
        pytest.param("per-label", {}, freeze_tok2vec, marks=pytest.mark.long),
        ("per-label", {"training.patience": 8, "training.eval_frequency": 2}, lambda config: None),
        (  # whose last step, 14, spaCy's loop evaluates, too
            "per-label",
            {"training.max_epochs": 3, "training.max_steps": 0, "training.eval_frequency": 7},
            lambda config: None,
        ),
    ],
    ids=["per-label", "ner", "frozen", "patience", "epochs"],
)
def test_the_steps_are_those_of_spacys_loop_to_the_bit(
    recognizer, overrides, prepare, demo_corpus, tmp_path, monkeypatch
):
    """`ents_macro_f`, which spaCy doesn't compute, is left out of its weights."""
    steps = {"training.max_epochs": -1, "training.max_steps": 60, "training.eval_frequency": 10}
    given = {**SMALL, **steps, "training.score_weights.ents_macro_f": None, **overrides}
    made, best = {}, {}
    for name in ("spacys", "ours"):
        settings = read_settings(Recipe(CPU, demo_corpus, recognizer=recognizer, overrides=given))
        nlp, scores, out = init_nlp(settings), [], tmp_path / name
        prepare(nlp.config)
        out.mkdir()
        exchange(nlp, scores)
        if name == "spacys":
            spacy_loop.train(nlp, out, stdout=StringIO(), stderr=StringIO())
        else:
            make_loop(nlp, out).run(StringIO(), StringIO())
        made[name] = Reference([slot.get().copy() for slot in find_slots(nlp)], scores)
        best[name] = [slot.get().copy() for slot in find_slots(spacy.load(out / "model-best"))]
    assert made["ours"].scores == made["spacys"].scores
    assert len(made["ours"].scores) > 1
    for ours, spacys in ((made["ours"].parameters, made["spacys"].parameters), (best["ours"], best["spacys"])):
        assert all(np.array_equal(one, other) for one, other in zip(ours, spacys, strict=True))


@pytest.mark.parametrize(
    ("ending", "evaluated"),
    [
        ({"training.max_steps": 3}, [3]),
        ({"training.max_steps": 6}, [4, 6]),
        ({"training.max_steps": 0, "training.max_epochs": 1, "training.batcher.size": 10_000_000}, [0]),
        ({"training.max_steps": 0, "training.patience": 5, "training.optimizer.learn_rate": 0.0}, [4, 8, 12]),
    ],
    ids=["before the first evaluation", "between two", "a single step", "patience"],
)
def test_the_last_step_is_always_evaluated(demo_corpus, tmp_path, ending, evaluated):
    """What learns nothing is best where it is evaluated first, at step 4: patience of 5 is used up at step 9."""
    train_pipeline(Recipe(CPU, demo_corpus, overrides={**SMALL, **ending}), tmp_path / "m", tmp_path / "c.tsv")
    rows = (tmp_path / "c.tsv").read_text().splitlines()[1:]
    assert [int(row.split("\t")[0]) for row in rows] == evaluated


def test_the_last_updates_are_kept(demo_corpus, tmp_path, monkeypatch):
    """Where each evaluation finds a better pipeline: those of steps 5 and 6 were thrown away."""
    better = count()
    monkeypatch.setattr("labelwise.train.loop.weighted_score", lambda *given: next(better))
    for steps in (4, 6):
        recipe = Recipe(CPU, demo_corpus, overrides={**SMALL, "training.max_steps": steps})
        train_pipeline(recipe, tmp_path / f"{steps}", tmp_path / "c.tsv")
    assert (tmp_path / "4/ner/model").read_bytes() != (tmp_path / "6/ner/model").read_bytes()


@pytest.mark.parametrize(
    ("dev", "saved"),
    [
        ([(9, 0, 0), (5, 0, 5), (6, 0, 4), (4, 0, 6)], [True, True, True, False]),
        ([(0, 0, 0), (0, 0, 0), (0, 3, 0), (0, 1, 0)], [True, True, True, True]),  # no entity in dev: the last
    ],
)
def test_the_best_pipeline_is_kept_and_never_the_first(dev, saved, demo_corpus, tmp_path, monkeypatch):
    """After the first step, nothing is evaluated, and what is saved is replaced by the next."""
    loop = make_loop(init_nlp(read_settings(Recipe(CPU, demo_corpus, overrides=SMALL))), tmp_path, skip_first=True)
    made = []
    for right, wrong, missed in dev:
        counts = EntityCounts()
        counts.by_label["A"] = PRFScore(tp=right, fp=wrong, fn=missed)
        monkeypatch.setattr(loop, "evaluate", lambda counts=counts: counts)
        assert bool(loop.score()) == bool(made)
        loop.save_best()
        made.append(not (tmp_path / "model-best" / "old").exists())
        (tmp_path / "model-best" / "old").touch()
    assert made == saved


@pytest.mark.parametrize(("weights", "best"), [({"ents_f": 1.0}, 0), ({"ents_f": 0.0, "ents_macro_f": 1.0}, 1)])
def test_micro_or_macro_f_decides(weights, best):
    """Many spans of A are found, and none of B, or most of both."""
    from labelwise.train.dev_scores import weighted_score

    scores = []
    for a, b in ((PRFScore(tp=90, fn=10), PRFScore(fn=4)), (PRFScore(tp=80, fn=20), PRFScore(tp=3, fn=1))):
        counts = EntityCounts()
        counts.by_label.update(A=a, B=b)
        scores.append(weighted_score(counts.scores(), weights))
    assert scores.index(max(scores)) == best


def test_a_scaler_that_has_overflowed_in_a_part_skips_the_step_of_all_parts(demo_corpus, tmp_path):
    """thinc unscales all gradients after each part: those of others are put aside meanwhile."""
    nlp = init_nlp(read_settings(Recipe(CPU, demo_corpus, overrides=SMALL)))
    loop = make_loop(nlp, None)
    added = []

    class Tensor:
        def __init__(self) -> None:
            self.grad = None

    tensor, scaler = Tensor(), SimpleNamespace(found_inf=False)
    loop.scalers, loop.state.sub_batch = [scaler], 1
    slot = SimpleNamespace(key=(0, "w"), tensor=tensor, set_gradient=added.append)
    loop.slots = [slot]

    def update(examples, **options):
        assert tensor.grad is None
        tensor.grad = len(examples[0])

    nlp.update = update
    texts = list(loop.corpus.texts(nlp))[:3]
    assert loop.update(texts, 0.0, {}) is None
    assert added == [sum(map(len, texts))]

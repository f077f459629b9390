"""A label is added, and nothing that was there changes."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import spacy
from spacy.scorer import PRFScore

from labelwise.common.errors import InputError
from labelwise.evaluate.displaced import find_displaced
from labelwise.evaluate.run import evaluate_pipeline
from labelwise.train.dev_scores import EntityCounts
from labelwise.train.extend import extend
from labelwise.train.loop import Run
from labelwise.train.monitor import Monitor
from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.train.test_resume import CPU

STEPS = {"training.max_steps": 40, "training.eval_frequency": 20}
FREEZE = {**STEPS, "labelwise.freeze": True}
TEXTS = [f"{name} saw {place} {n} times." for n in range(60) for name, place in (("Ann", "Rome"), ("Bob", "Oslo"))]


def spans(text: str, *labels: str) -> list[dict[str, object]]:
    name, _, place, number, _ = text.split()
    at = {"PER": (0, len(name)), "LOC": (text.index(place), text.index(place) + len(place))}
    at["TIMES"] = (text.index(number), text.index(number) + len(number))
    return [{"start": at[label][0], "end": at[label][1], "label": label} for label in labels]


@pytest.fixture
def growing(merging):
    """A corpus with two labels, a pipeline that was trained on it, and the corpus with a third label."""
    for label in ("PER", "LOC"):
        merging.add(label.lower(), [label], [{"text": text, "spans": spans(text, label)} for text in TEXTS])
    merging.run("two")
    out = merging.root / "old"
    train_pipeline(Recipe(CPU, merging.root / "two", overrides=STEPS), out, merging.root / "c.tsv")
    merging.add("times", ["TIMES"], [{"text": text, "spans": spans(text, "TIMES")} for text in TEXTS[::2]])
    merging.run("three")
    return merging.root


def found(nlp: spacy.Language, text: str, *labels: str) -> list[tuple[object, ...]]:
    doc = nlp(text)
    group = doc.spans["labels"]
    rows = zip(group, group.attrs["scores"], strict=True)
    return [(span.start, span.end, span.label_, float(p)) for span, p in rows if span.label_ in labels]


@pytest.mark.slow
def test_the_other_labels_predictions_stay_to_the_bit(growing):
    new = growing / "new"
    trained = train_pipeline(
        Recipe(CPU, growing / "three", overrides=FREEZE, init_from=str(growing / "old")),
        new,
        growing / "c.tsv",
    )
    assert trained.words
    one, other = spacy.load(growing / "old"), spacy.load(new)
    assert other.get_pipe("ner").labels == ("LOC", "PER", "TIMES")
    for text in [*TEXTS[:40], "Nobody knows Ann of Oslo, 7."]:
        assert found(one, text, "PER", "LOC") == found(other, text, "PER", "LOC")
    assert evaluate_pipeline(new, growing / "three" / "test").metrics.all_gold.labels["TIMES"].f > 0.9
    changed = {
        name for name in ("tok2vec/model",) if (growing / "old" / name).read_bytes() != (new / name).read_bytes()
    }
    assert not changed


@pytest.mark.slow
@pytest.mark.long
def test_without_freezing_all_labels_go_on_learning(growing):
    new = growing / "new"
    train_pipeline(
        Recipe(CPU, growing / "three", overrides=STEPS, init_from=str(growing / "old")), new, growing / "c.tsv"
    )
    scores = evaluate_pipeline(new, growing / "three" / "test").metrics.all_gold
    assert {label: row.f > 0.9 for label, row in scores.labels.items()} == {"LOC": True, "PER": True, "TIMES": True}
    assert (growing / "old/tok2vec/model").read_bytes() != (new / "tok2vec/model").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "recognizer", "corpus", "message"),
    [
        ("", "per-label", "three", "freeze: there is no recognizer to freeze"),
        ("old", "ner", "two", "freeze: there is no recognizer to freeze"),
        ("old", "per-label", "two", "freeze: nothing to train, as the pipeline has all 2 labels"),
    ],
)
@pytest.mark.long
def test_where_there_is_nothing_to_freeze_or_to_train_is_said(growing, start, recognizer, corpus, message):
    given = {"init_from": str(growing / start) if start else "", "recognizer": recognizer}
    with pytest.raises(InputError, match=message):
        train_pipeline(Recipe(CPU, growing / corpus, overrides=FREEZE, **given), growing / "new", growing / "c.tsv")
    assert not (growing / "new").exists()


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.long
def test_a_pipeline_is_extended_by_the_labels_that_it_lacks(growing):
    """Then there is nothing to add to what came out, also where that is put in its own place."""
    out, told = growing / "extended", []
    recipe = Recipe(CPU, growing / "three", overrides=STEPS, init_from=str(growing / "old"))
    extended = extend(recipe, out, told.append)
    assert (extended.added, extended.base, told) == (["TIMES"], growing / "base", [])
    assert files(growing / "base") == files(growing / "old")
    steps = [line.split("\t")[0] for line in (growing / "extended.tsv").read_text().splitlines()]
    assert steps == ["step", "20", "40"]
    scores = []
    for model in (growing / "old", out):
        found = evaluate_pipeline(model, growing / "three" / "test", predictions=growing / f"{model.name}.jsonl")
        scores.append(found.metrics.all_gold.labels)
    assert scores[1]["TIMES"].f > 0.9
    displaced = find_displaced(growing / "old.jsonl", growing / "extended.jsonl", ["TIMES"])
    assert (displaced.entities, displaced.spans) == ({}, 0)
    assert {**scores[0], "TIMES": None} == {**scores[1], "TIMES": None}
    before = files(out)
    again = extend(Recipe(CPU, growing / "three", init_from=str(out)), out)
    assert (again.added, again.trained) == ([], None)
    assert files(out) == files(growing / "base") == before


@pytest.mark.slow
@pytest.mark.long
def test_a_label_without_an_entity_in_dev_is_named(growing, merging):
    merging.add("more", ["MORE"], [{"text": text, "spans": []} for text in TEXTS])
    merging.run("four")
    told = []
    recipe = Recipe(CPU, growing / "four", overrides=STEPS, init_from=str(growing / "old"))
    extend(recipe, growing / "extended", told.append)
    assert told == [
        "dev has no entity of MORE: the other new labels decide which is best. Remedy: annotate some of its texts"
    ]


def test_a_pipeline_has_to_be_there(tmp_path):
    with pytest.raises(InputError, match="model-best: there is no pipeline to add a label to; weasel run all, or name"):
        extend(Recipe(CPU, tmp_path), tmp_path / "extended")


# Which pipeline is the best.


def counts(**by_label: tuple[int, int, int]) -> EntityCounts:
    """Right, wrong and missed entities of labels."""
    made = EntityCounts()
    made.by_label.update({label: PRFScore(tp=tp, fp=fp, fn=fn) for label, (tp, fp, fn) in by_label.items()})
    return made


OLD = [(8, 1, 1), (9, 0, 0), (1, 9, 9), (2, 8, 8)]


@pytest.mark.parametrize(
    ("new", "saved"),
    [
        ([(0, 0, 9), (5, 0, 5), (6, 0, 4), (4, 0, 6)], [True, True, True, False]),
        ([(0, 0, 9), (0, 0, 9), (1, 5, 8), (0, 0, 9)], [True, True, True, False]),
        ([(0, 0, 0), (0, 0, 0), (0, 3, 0), (0, 1, 0)], [True, True, True, True]),  # none in dev: the last
    ],
)
def test_the_best_pipeline_is_that_of_the_new_labels_and_never_the_first(new, saved, tmp_path, monkeypatch):
    """At the first of the steps, nothing is evaluated."""
    nlp = spacy.blank("en")
    run = Run(tmp_path, monitor=Monitor(), skip_first=True)
    frozen = SimpleNamespace(pipeline=[("ner", SimpleNamespace(frozen=("OLD",)))])
    made = []
    for old, added in zip(OLD, new, strict=True):
        monkeypatch.setattr(run, "evaluate", lambda *given, both=(old, added): counts(OLD=both[0], NEW=both[1]))
        scores = run.score(frozen, None, {"ents_f": 1.0})
        assert set(scores.get("ents_per_type") or {}) == ({"OLD", "NEW"} if made else set())
        run.save_best(nlp, SimpleNamespace(averages={}), None)
        made.append((tmp_path / "model-best").exists())
        (tmp_path / "model-best").rename(tmp_path / f"{len(made)}") if made[-1] else None
    assert made == saved

"""A label is added, and nothing that was there changes."""

import pytest
import spacy

from labelwise.common.errors import InputError
from labelwise.evaluate.run import evaluate
from labelwise.train.recipe import Recipe
from labelwise.train.run import train
from tests.train.test_resume import CPU

STEPS = {"training.max_steps": 120, "training.eval_frequency": 60}
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
    train(Recipe(CPU, merging.root / "two", overrides=STEPS), out, merging.root / "c.tsv")
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
    trained = train(
        Recipe(CPU, growing / "three", overrides=FREEZE, init_from=str(growing / "old")),
        new,
        growing / "c.tsv",
    )
    assert trained.words
    one, other = spacy.load(growing / "old"), spacy.load(new)
    assert other.get_pipe("ner").labels == ("LOC", "PER", "TIMES")
    for text in [*TEXTS[:40], "Nobody knows Ann of Oslo, 7."]:
        assert found(one, text, "PER", "LOC") == found(other, text, "PER", "LOC")
    assert evaluate(new, growing / "three" / "test").metrics.all_gold.labels["TIMES"].f > 0.9
    changed = {
        name for name in ("tok2vec/model",) if (growing / "old" / name).read_bytes() != (new / name).read_bytes()
    }
    assert not changed


@pytest.mark.slow
@pytest.mark.long
def test_without_freezing_all_labels_go_on_learning(growing):
    new = growing / "new"
    train(Recipe(CPU, growing / "three", overrides=STEPS, init_from=str(growing / "old")), new, growing / "c.tsv")
    scores = evaluate(new, growing / "three" / "test").metrics.all_gold
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
        train(Recipe(CPU, growing / corpus, overrides=FREEZE, **given), growing / "new", growing / "c.tsv")
    assert not (growing / "new").exists()

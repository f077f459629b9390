import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span, SpanGroup

from spacy_per_label import PerLabelRecognizer, set_known
from spacy_per_label.decode import FoundSpans, decode
from spacy_per_label.loss import log_softmax
from spacy_per_label.operating_point import MIN_SPANS, Goal, OperatingPoints, choose_level, lower_bound
from spacy_per_label.targets import TAGS
from tests.spacy_per_label.test_component import is_legal, spans_of, with_ner

NLP = spacy.blank("en")


@pytest.mark.parametrize("seed", range(10))
def test_for_recall_all_spans_that_are_so_probable_are_found(seed):
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(0, 5, 3).tolist(), 1]
    scores = log_softmax(2 * rng.normal(size=(sum(lengths), 2, TAGS)))
    base, least, longest = 0, 0.05, 3
    for length, spans, before in zip(
        lengths, decode(scores, lengths, {1: least}, {1: longest}), decode(scores, lengths), strict=True
    ):
        legal = list(filter(is_legal, itertools.product(range(TAGS), repeat=length)))
        weights = [math.exp(sum(scores[base + place, 1, tag] for place, tag in enumerate(tags))) for tags in legal]
        expected = []
        for start, end in itertools.combinations(range(length + 1), 2):
            p = sum(w for w, tags in zip(weights, legal, strict=True) if (start, end) in spans_of(tags)) / sum(weights)
            if p >= least and end - start <= longest:
                expected.append((start, end, 1, pytest.approx(p)))
        rows = [(*row, p) for row, p in zip(spans.rows(), spans.probabilities.tolist(), strict=True)]
        assert [row for row in rows if row[2] == 1] == expected
        assert [row[:3] for row in rows if row[2] == 0] == [row for row in before.rows() if row[2] == 0]
        base += length


@cache
def make_ner() -> PerLabelRecognizer:
    return with_ner("per_label").get_pipe("ner")


def configured(**cfg: Any) -> PerLabelRecognizer:
    ner = make_ner()
    ner.cfg = {**ner.cfg, "labels": ["A", "B"], "taught": ["A", "B"], "points": {}, **cfg}
    return ner


def annotated(points: dict, rows: list[tuple[str, int, int, float]]) -> Doc:
    ner = configured(points=points)
    doc, columns = NLP.make_doc("a b c d e"), list(zip(*rows, strict=True))
    numbers = np.array(["AB".index(label) for label in columns[0]])
    ner.set_annotations([doc], [FoundSpans(numbers, *map(np.array, columns[1:]))])
    return doc


def test_an_improbable_span_is_no_entity_and_frees_its_neighbour():
    rows = [("A", 0, 2, 0.7), ("B", 1, 3, 0.5), ("B", 4, 5, 0.2)]
    point = {"figure": "precision", "goal": 0.9, "bound": 0.9, "least": 0.8}
    assert [(ent.label_, ent.start) for ent in annotated({}, rows).ents] == [("A", 0), ("B", 4)]
    doc = annotated({"A": point}, rows)
    assert [(ent.label_, ent.start) for ent in doc.ents] == [("B", 1), ("B", 4)]
    assert len(doc.spans["labels"]) == 3, "all that was found stays"


def fit(texts: list[tuple[list, list]], goals: dict[str, Goal], units: list | None = None, **options) -> dict:
    """Fit points for texts, each with found (label, start, end, probability) and gold (label, start, end) spans."""
    fitting = OperatingPoints(configured(), goals, {"A": 3})
    for (spans, gold), unit in zip(texts, units or [None] * len(texts), strict=True):
        predicted, reference = NLP.make_doc("a b c d e"), NLP.make_doc("a b c d e")
        group = [Span(predicted, start, end, label=label) for label, start, end, _ in spans]
        predicted.spans["labels"] = SpanGroup(predicted, name="labels", spans=group)
        predicted.spans["labels"].attrs["scores"] = np.array([p for *_, p in spans], "float32")
        set_known(reference, gold=[Span(reference, start, end, label=label) for label, start, end in gold], **options)
        fitting.add(predicted, reference, unit)
    return fitting.fit()


def draw(rng: np.random.Generator, texts: int, label: str = "A") -> list[tuple[list, list]]:
    """Draw texts with four spans, each right with its probability, and one missed in half of the texts."""
    drawn = []
    for _ in range(texts):
        p = rng.uniform(0.3, 1, 4)
        right = rng.random(4) < p
        spans = [(label, place, place + 1, probability) for place, probability in enumerate(p.tolist())]
        drawn.append((spans, [(label, place, place + 1) for place in range(4) if right[place]]))
    return drawn


@cache
def draw_both(seed: int) -> list[list]:
    rng = np.random.default_rng(seed)
    return [draw(rng, texts) for texts in (60, 400)]


@pytest.mark.parametrize(
    ("figure", "goal"), [("precision", 0.75), ("precision", 0.8), ("recall", 0.9), ("recall", 0.97)]
)
def test_the_goal_is_reached_on_texts_that_were_not_fitted_on(figure, goal):
    """Spans of probability 0.6 or more have precision 0.8, and are 70 % of the right ones."""
    held, reached, others = [], [], []
    for seed in range(40):
        fitted_on, new = draw_both(seed)
        point = fit(fitted_on, {"A": Goal(figure, goal)})["A"]
        reached.append(point["bound"] >= goal)
        x = np.zeros(3)
        for spans, gold in new:
            entities = {row[:3] for row in spans if row[3] >= point["least"]}
            x += len(entities & {*gold}), len(entities), len(gold)
        p, r = x[0] / x[1], x[0] / x[2]
        held.append((p if figure == "precision" else r) >= goal)
        others.append(r if figure == "precision" else p)
    assert np.mean(reached) > 0.9
    assert np.mean(np.array(held)[reached]) >= 0.75
    assert np.median(others) > {0.75: 0.65, 0.8: 0.5, 0.9: 0.6, 0.97: 0.6}[goal]


def test_an_unreachable_goal_keeps_the_best_point_and_its_bound():
    rng = np.random.default_rng(0)
    texts = [(found, [*gold, ("A", 4, 5)]) for found, gold in draw(rng, 60)]  # nothing finds the last one
    point = fit(texts, {"A": Goal("recall", 0.95)})["A"]
    assert 0.6 < point["bound"] < 0.8
    assert (point["goal"], point["longest"]) == (0.95, 3)
    assert point["least"] < 0.35


def test_labels_with_few_spans_share_a_point():
    rng = np.random.default_rng(0)
    few, many = draw(rng, MIN_SPANS // 8, "B"), draw(rng, 40)
    both = {label: Goal("precision", 0.8) for label in "AB"}
    points = fit([*few, *many], both)
    assert points["A"] != points["B"]
    shared = fit([*few, *draw(rng, MIN_SPANS // 8)], both)
    assert shared["A"] == shared["B"]


def test_what_nobody_has_judged_does_not_count():
    rng = np.random.default_rng(0)
    known, unknown = draw(rng, 40), [([("A", 0, 1, 0.9)], [])]
    goals = {"A": Goal("precision", 0.8)}
    fitted = fit([*known, *unknown * 40], goals, coverage={"A": "none"})
    assert fitted["A"]["bound"] == 0


def test_a_lower_bound_is_by_units():
    apart = lower_bound(np.tile([4, 3, 4, 4, 3], 2), np.full(10, 4))
    together = lower_bound(np.array([4] * 9 + [0]), np.full(10, 4))
    assert together < apart < 0.9
    assert lower_bound(np.zeros(3), np.zeros(3)) == 0
    assert lower_bound(np.full(20, 5), np.full(20, 5)) == pytest.approx(20 / 21, abs=0.02), "all right, in 20 units"


def test_the_level_is_counted_where_it_was_not_chosen():
    """All levels have a precision of a half, though the best of a hundred looks better."""
    rng = np.random.default_rng(0)
    right = rng.binomial(1, 0.5, (100, 40)).astype(float)
    assert right.mean(1).max() > 0.65
    assert choose_level(right, np.ones((100, 40)), Goal("precision", 0.6))[1] < 0.6

"""Which label comes first, and whether its scores can be trusted."""

import numpy as np
import pytest

from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.scores import Metrics, Mistakes, score_table


def make_metrics(mistakes: dict[str, Mistakes], texts: int = 50, f_low: float = 0.5) -> Metrics:
    """Scores that follow from the mistakes."""
    counts = [(one.right, one.right + one.spurious + one.boundaries + one.taken, one.gold) for one in mistakes.values()]
    scores = score_table(np.array(counts), list(mistakes))
    for row in scores.labels.values():
        row.f_low, row.f_high = f_low, 1.0
    return Metrics(texts=texts, all_gold=scores, mistakes=mistakes)


def test_a_label_counts_its_mistakes_by_kind_and_those_of_two_labels_in_both():
    one, other, third = Mistakes(9, 4, 3, 2, label=5), Mistakes(40, taken=5, label=1), Mistakes(spurious=7, taken=1)
    ranked = {row.label: row for row in rank_labels(make_metrics({"A": one, "B": other, "C": third}))}
    assert {label: row.mistakes.kinds for label, row in ranked.items()} == {
        "A": {"missed": 4, "boundaries": 2, "label": 5, "spurious": 3, "goldless": 0},
        "B": {"missed": 0, "boundaries": 0, "label": 6, "spurious": 0, "goldless": 0},
        "C": {"missed": 0, "boundaries": 0, "label": 1, "spurious": 0, "goldless": 7},
    }
    assert {label: row.total for label, row in ranked.items()} == {"A": 14, "B": 6, "C": 8}


def test_the_label_with_the_most_mistakes_leads_but_never_one_with_few_spans():
    mistakes = {"SMALL": Mistakes(1, 18, 99), "FINE": Mistakes(500, 2, 2), "WRONG": Mistakes(500, 90, 9)}
    ranked = rank_labels(make_metrics(mistakes))
    assert [row.label for row in ranked] == ["WRONG", "FINE", "SMALL"]
    assert [row.few for row in ranked] == [False, False, True]


@pytest.mark.parametrize(
    ("mistakes", "f_low", "verdict"),
    [
        (Mistakes(19, 1), 0.8, "ship"),
        (Mistakes(19, 1), 0.79, "hold"),
        (Mistakes(18, 1), 0.8, "unknown"),
        (Mistakes(40, 0, 1, 2, unjudged=43), 0.9, "ship"),
        (Mistakes(40, 0, 1, 2, unjudged=44), 0.9, "unknown"),
        (Mistakes(40, 0, 1, 2, unjudged=44, taken=1), 0.9, "ship"),
    ],
)
def test_what_may_be_used(mistakes, f_low, verdict):
    (row,) = rank_labels(make_metrics({"A": mistakes}, f_low=f_low), 0.8)
    assert row.verdict == verdict

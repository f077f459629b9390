import numpy as np
import pytest

from labelwise.base.counts import score_table
from labelwise.evaluate.ranking import group_by_verdict, rank_labels
from labelwise.evaluate.scores import Aimed, Metrics, Mistakes


def make_metrics(mistakes: dict[str, Mistakes], texts: int = 50, f_low: float | None = 0.5) -> Metrics:
    """Make scores that follow from errors."""
    counts = [
        (mistake.right, mistake.right + mistake.spurious + mistake.boundaries + mistake.taken, mistake.gold)
        for mistake in mistakes.values()
    ]
    scores = score_table(np.array(counts), list(mistakes))
    for row in scores.labels.values():
        row.f_low, row.f_high = f_low, 1.0
    return Metrics(texts=texts, all_gold=scores, mistakes=mistakes)


def test_a_label_counts_its_mistakes_by_kind_and_those_of_two_labels_in_both():
    one, other, third = Mistakes(9, 4, 3, 2, label=5), Mistakes(40, taken=5, label=1), Mistakes(spurious=7, taken=1)
    ranked = {row.label: row for row in rank_labels(make_metrics({"A": one, "B": other, "C": third}))}
    assert {label: row.mistakes.kinds for label, row in ranked.items()} == {
        "A": {"missed": 4, "boundaries": 2, "label": 5, "spurious": 3, "no_test_gold": 0},
        "B": {"missed": 0, "boundaries": 0, "label": 6, "spurious": 0, "no_test_gold": 0},
        "C": {"missed": 0, "boundaries": 0, "label": 1, "spurious": 0, "no_test_gold": 7},
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
        (Mistakes(19, 1), 0.821, "ready"),
        (Mistakes(19, 1), 0.819, "borderline"),
        (Mistakes(19, 1), 0.781, "borderline"),
        (Mistakes(19, 1), 0.779, "not ready"),
        (Mistakes(18, 1), 0.9, "too few test spans"),
        (Mistakes(19, 1), None, "too few test spans"),
        (Mistakes(40, 0, 1, 2, unscored=43), 0.9, "ready"),
        (Mistakes(40, 0, 1, 2, unscored=44), 0.9, "not scored"),
        (Mistakes(40, 0, 1, 2, unscored=44, taken=1), 0.9, "ready"),
    ],
)
def test_a_label_is_ready_where_its_interval_is_above_the_goal_on_every_machine(mistakes, f_low, verdict):
    (row,) = rank_labels(make_metrics({"A": mistakes}, f_low=f_low), 0.8)
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("goal", "low", "verdict"),
    [
        (0.95, 0.956, "ready"),
        (0.95, 0.954, "borderline"),
        (0.98, 0.981, "borderline"),
        (0.98, 0.977, "not ready"),
        (0.98, None, "too few test spans"),
    ],
)
def test_a_label_with_a_goal_is_judged_by_its_figure(goal, low, verdict):
    """Its F1 would be ready. Another machine moves a figure by a tenth of the errors that the goal allows."""
    metrics = make_metrics({"A": Mistakes(40, 1)}, f_low=0.9)
    metrics.aimed = {"A": Aimed("recall", goal, goal, 0.99, low, 1.0)}
    assert [row.verdict for row in rank_labels(metrics, 0.8)] == [verdict]


def test_a_label_whose_gold_nests_is_judged_by_all_spans():
    """Entities are half of A's gold, and all of B's."""
    metrics = make_metrics({"A": Mistakes(20, 20), "B": Mistakes(40, 4)}, f_low=0.6)
    metrics.all_spans = make_metrics({"A": Mistakes(39, 1), "B": Mistakes(40, 4, 2)}, f_low=0.9).all_gold
    rows = {row.label: row for row in rank_labels(metrics, 0.8)}
    assert {label: row.verdict for label, row in rows.items()} == {"A": "ready", "B": "not ready"}
    assert rows["A"].scores == metrics.all_spans.labels["A"]
    assert rows["B"].scores == metrics.all_gold.labels["B"]


def test_labels_are_grouped_by_verdict_and_each_is_in_one_group():
    metrics = make_metrics({"A": Mistakes(19, 1), "B": Mistakes(18, 1), "C": Mistakes(19, 3)}, f_low=0.9)
    grouped = group_by_verdict(rank_labels(metrics))
    assert grouped == {
        "ready": ["C", "A"],
        "borderline": [],
        "not ready": [],
        "too few test spans": ["B"],
        "not scored": [],
    }

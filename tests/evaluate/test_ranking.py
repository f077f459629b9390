"""Which label comes first, and whether its scores can be trusted."""

import numpy as np
import pytest

from labelwise.evaluate.ranking import rank_labels
from labelwise.evaluate.scores import Errors, Metrics, score_table


def make_metrics(errors: dict[str, Errors], texts: int = 50, f_low: float = 0.5) -> Metrics:
    """Scores that follow from the errors."""
    counts = [
        (one.right, one.right + one.spurious + one.boundaries, one.right + one.missed + one.boundaries)
        for one in errors.values()
    ]
    scores = score_table(np.array(counts), list(errors))
    for row in scores.labels.values():
        row.f_low, row.f_high = f_low, 1.0
    return Metrics(texts=texts, all_gold=scores, errors=errors)


def perfected(errors: dict[str, Errors], label: str) -> float:
    """F over all labels, by hand, if a label were perfect."""
    perfect = {**errors, label: Errors(right=errors[label].right + errors[label].missed + errors[label].boundaries)}
    right = sum(one.right for one in perfect.values())
    wrong = sum(one.missed + one.spurious + 2 * one.boundaries for one in perfect.values())
    return 100 * 2 * right / (2 * right + wrong)


def test_points_are_what_f_gains_if_the_label_were_perfect():
    rng = np.random.default_rng(0)
    for _ in range(20):
        errors = {label: Errors(*rng.integers(0, 90, 4).tolist()) for label in "ABC"}
        for one in errors.values():
            one.causes = {
                "found": one.right,
                "new": one.missed // 2,
                "known": one.missed - one.missed // 2 + one.boundaries,
            }
        metrics = make_metrics(errors)
        for row in rank_labels(metrics):
            assert row.points == pytest.approx(perfected(errors, row.label) - 100 * metrics.all_gold.f)
            assert sum(row.costs.values()) == pytest.approx(row.points)
            one = errors[row.label]
            wrong = one.missed + one.spurious + 2 * one.boundaries
            assert row.costs["new"] == pytest.approx(row.points * one.causes["new"] / wrong)


def test_the_costliest_label_leads_but_never_one_with_few_spans():
    errors = {"SMALL": Errors(1, 18), "FINE": Errors(500, 2, 2), "COSTLY": Errors(500, 90, 9)}
    ranked = rank_labels(make_metrics(errors))
    assert [row.label for row in ranked] == ["COSTLY", "FINE", "SMALL"]
    assert [row.few for row in ranked] == [False, False, True]
    assert ranked[2].points > ranked[1].points


@pytest.mark.parametrize(
    ("errors", "f_low", "verdict"),
    [
        (Errors(19, 1), 0.8, "ship"),
        (Errors(19, 1), 0.79, "hold"),
        (Errors(18, 1), 0.8, "unknown"),
        (Errors(40, 0, 1, 2, unjudged=43), 0.9, "ship"),
        (Errors(40, 0, 1, 2, unjudged=44), 0.9, "unknown"),
    ],
)
def test_what_may_be_used(errors, f_low, verdict):
    (row,) = rank_labels(make_metrics({"A": errors}, f_low=f_low), 0.8)
    assert row.verdict == verdict

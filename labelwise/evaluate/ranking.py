"""Which label to see to first: the points of F1 that it costs, by cause, and whether it may be used."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from labelwise.base.sections import SHIP_AT
from labelwise.evaluate.scores import Errors, Metrics, Scores, prf
from labelwise.evaluate.tables import CAUSES

FEW = 20  # gold spans in test, below which a label's scores say little
SPURIOUS = "spurious"  # beside the causes of what isn't found
Verdict = Literal["ship", "hold", "unknown"]


class RankedLabel(NamedTuple):
    """A label, what it costs, and what is known of it.

    points (float): of F1 over all labels, 0 to 100, that there were more if the label were perfect.
    costs (Mapping): those points by cause; see `tables.CAUSES`.
    few (bool): test has too few gold spans of it for its scores to say much.
    verdict (str): "ship" if the lower end of its interval of F1 reaches the goal, or else "hold"; "unknown" if test has
        few of its spans, or more of its predictions can't be judged than can.
    """

    label: str
    scores: Scores
    errors: Errors
    points: float
    costs: Mapping[str, float]
    few: bool
    verdict: Verdict


def rank_labels(metrics: Metrics, ship_at: float = SHIP_AT) -> list[RankedLabel]:
    """Rank the labels by the points of F1 over all labels to gain; those with few spans in test come last."""
    errors = {label: metrics.errors.get(label, Errors()) for label in metrics.all_gold.labels}
    right = sum(one.right for one in errors.values())
    gold = right + sum(one.missed + one.boundaries for one in errors.values())
    predicted = right + sum(one.spurious + one.boundaries for one in errors.values())
    f = prf(right, predicted, gold).f or 0.0
    ranked = []
    for label, one in errors.items():
        missed, spurious = one.missed + one.boundaries, one.spurious + one.boundaries
        perfect = prf(right + missed, predicted + missed - spurious, gold).f or 0.0
        points = 100 * (perfect - f)
        counts = {cause: one.causes.get(cause, 0) for cause in CAUSES[1:]} | {SPURIOUS: spurious}
        costs = {cause: points * n / max(1, missed + spurious) for cause, n in counts.items()}
        scores = metrics.all_gold.labels[label].shown()
        few = (scores.support or 0) < FEW
        verdict: Verdict = "unknown"
        if not few and not one.unknown and scores.f_low is not None:
            verdict = "ship" if scores.f_low >= ship_at else "hold"
        ranked.append(RankedLabel(label, scores, one, points, costs, few, verdict))
    return sorted(ranked, key=lambda row: (row.few, -row.points, row.label))

"""Which label to see to first: the points of F that it costs, and whether its scores can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from labelwise.evaluate.scores import Errors, Metrics, Scores, prf

FEW = 20  # gold spans in test, below which a label's scores say little
SHIP_AT = 0.8  # what the lower end of the interval of F must reach
Verdict = Literal["ship", "hold", "unknown"]


@dataclass(frozen=True)
class RankedLabel:
    """A label, what it costs, and what is known of it.

    points (float): of F over all labels, 0 to 100, that there were more if the label were perfect.
    shares (dict): those points by kind of error: "missed", "spurious", "boundaries".
    """

    label: str
    scores: Scores
    errors: Errors
    points: float
    shares: Mapping[str, float]

    @property
    def few(self) -> bool:
        """Test has too few gold spans of it for its scores to say much."""
        return (self.scores.support or 0) < FEW

    @property
    def unjudged(self) -> bool:
        """Most of its predictions can't be judged: its scores are of the others alone."""
        errors = self.errors
        return errors.unjudged > errors.right + errors.spurious + errors.boundaries

    def verdict(self, ship_at: float = SHIP_AT) -> Verdict:
        """Tell whether it may be used: "ship" if the lower end of its interval of F reaches `ship_at`, or else "hold".

        RETURNS (str): "unknown" if test has few of its spans, or more predictions can't be judged than can.
        """
        if self.few or self.unjudged or self.scores.f_low is None:
            return "unknown"
        return "ship" if self.scores.f_low >= ship_at else "hold"


def rank_labels(metrics: Metrics) -> list[RankedLabel]:
    """Rank the labels by the points of F over all labels to gain; those with few spans in test come last."""
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
        costs = {"missed": one.missed, "spurious": one.spurious, "boundaries": 2 * one.boundaries}
        shares = {kind: points * n / max(1, missed + spurious) for kind, n in costs.items()}
        ranked.append(RankedLabel(label, metrics.all_gold.labels[label].shown(), one, points, shares))
    return sorted(ranked, key=lambda row: (row.few, -row.points, row.label))


def texts_needed(metrics: Metrics) -> int:
    """Compute how many more test texts give a label enough spans; 0 if one has enough, or none has any."""
    most = max((scores.support or 0 for scores in metrics.all_gold.labels.values()), default=0)
    return ceil(metrics.texts * (FEW - most) / most) if 0 < most < FEW else 0

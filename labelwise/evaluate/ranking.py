"""Rank the labels by their mistakes, and judge which ones are good enough to use."""

from typing import Literal, NamedTuple

from labelwise.base.sections import SHIP_AT
from labelwise.evaluate.scores import Metrics, Mistakes, Scores

CLOSE = 0.02  # of F1, by which trainings on two machines differ, because these round differently
FEW = 20  # gold spans in test, below which a label's scores say little
Verdict = Literal["ship", "hold", "unknown"]


class RankedLabel(NamedTuple):
    """A label with its scores, its mistakes, and a verdict.

    few (bool): test has too few of its gold spans for its scores to say much.
    verdict (str): "ship" if the lower end of its interval of F1 reaches the goal, or else "hold"; "unknown" if test has
        few of its spans, or more of its predictions can't be judged than can.
    close (bool): the verdict may be another one on another machine.
    """

    label: str
    scores: Scores
    mistakes: Mistakes
    few: bool
    verdict: Verdict
    close: bool

    @property
    def total(self) -> int:
        """The number of its mistakes; a confusion of two labels is a mistake of both."""
        return sum(self.mistakes.kinds.values())


def rank_labels(metrics: Metrics, ship_at: float = SHIP_AT) -> list[RankedLabel]:
    """Rank the labels, the one with the most mistakes first; those with few spans in test come last."""
    ranked = []
    for label, scores in metrics.all_gold.labels.items():
        mistakes = metrics.mistakes.get(label, Mistakes())
        few = (scores.support or 0) < FEW
        verdict: Verdict = "unknown"
        if not few and not mistakes.unknown and scores.f_low is not None:
            verdict = "ship" if scores.f_low >= ship_at else "hold"
        close = verdict != "unknown" and abs((scores.f_low or 0.0) - ship_at) < CLOSE
        ranked.append(RankedLabel(label, metrics.shown(label, metrics.all_gold), mistakes, few, verdict, close))
    return sorted(ranked, key=lambda row: (row.few, -row.total, row.label))

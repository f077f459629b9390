"""Count right, predicted and gold spans; compute precision, recall, F1 and macro F1."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from labelwise.base.text import SpanKey

Score = float | None  # None where there is nothing to score


class Scores(msgspec.Struct, omit_defaults=True):
    """Precision, recall and F1, 0 to 1.

    support (int | None): gold spans; None for an average over labels.
    f_low, f_high (float | None): 95% interval of F1, if any.
    units (int | None): units (`Metrics.unit`) with its spans, for the interval.
    """

    p: Score
    r: Score
    f: Score
    support: int | None = None
    f_low: Score = None
    f_high: Score = None
    units: int | None = None

    def shown(self) -> "Scores":
        """Hide recall and F1 without gold, which spaCy's formula makes 0."""
        return Scores(self.p, None, None, self.support) if self.support == 0 else self


class AllScores(Scores, omit_defaults=True, kw_only=True):
    """Scores of all spans (micro), mean over labels with gold (macro), and scores by label."""

    macro: Scores
    labels: dict[str, Scores]


def count_spans(gold: Collection[SpanKey], predicted: Collection[SpanKey], scored: Sequence[str]) -> np.ndarray:
    """Count right, predicted and gold spans of labels; shape (labels, 3). See `text.evaluable`."""
    counts = [Counter(label for *_, label in spans) for spans in ({*gold} & {*predicted}, predicted, gold)]
    return np.array([[count[label] for count in counts] for label in scored], int).reshape(-1, 3)


def score_table(counts: np.ndarray, labels: Sequence[str]) -> AllScores:
    """Compute scores from counts, shape (labels, 3); see `count_spans`."""
    by_label = {label: prf(*row) for label, row in zip(labels, counts.tolist(), strict=True)}
    micro = prf(*counts.sum(0).tolist())
    return AllScores(micro.p, micro.r, micro.f, micro.support, macro=macro(by_label.values()), labels=by_label)


def prf(right: int, predicted: int, gold: int) -> Scores:
    """Compute precision, recall and F1 as spaCy's PRFScore; None without spans."""
    if not predicted and not gold:
        return Scores(None, None, None, 0)
    p, r = right / (predicted + 1e-100), right / (gold + 1e-100)
    return Scores(p, r, 2 * (p * r / (p + r + 1e-100)), gold)


def macro(scores: Iterable[Scores]) -> Scores:
    """Average scores over labels with gold; None without."""
    defined = [score for score in scores if score.support]
    if not defined:
        return Scores(None, None, None)
    means = (sum(getattr(score, name) for score in defined) / len(defined) for name in "prf")
    return Scores(*means)

"""Calibrate probabilities on held-out texts.

Each label has a slope and an intercept: of the spans with a probability of 0.8, eight of ten are right; see
`decode.calibrated`. Labels with few spans shrink towards all labels together, and these towards no change. Only spans
that are known to be right or wrong count; see `known`.

A script, after the README's:

    import spacy
    from spacy.training import Corpus
    from spacy_per_label.calibrate import Judged

    nlp = spacy.load("out/model-best")
    ner = nlp.get_pipe("per_label")
    ner.cfg |= {"slopes": {}, "intercepts": {}}  # fit the model's own probabilities
    judged = Judged()
    for eg in Corpus("dev.spacy")(nlp):
        judged.add(nlp(eg.predicted), eg.reference, ner.spans_key)
    if fitted := judged.fit(ner.labels):  # None if no span can be judged
        ner.cfg |= fitted.settings
    nlp.to_disk("out/calibrated")
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc

from spacy_per_label.decode import calibrated, log_odds
from spacy_per_label.known import get_known, judge

PRIOR = 10.0  # weight of the common fit, in spans of a label
BINS = 10


class Fitted(NamedTuple):
    """Settings for `PerLabelRecognizer.cfg`, and the expected calibration error, before and after.

    The error after is cross-validated: each half of the texts with the settings fitted on the other half.
    """

    settings: dict[str, Any]
    before: float
    after: float


class Judged:
    """Predicted spans that are known to be right or wrong.

    rows (list): label, probability, whether it is right, and text number, of each span.
    texts (int): number of texts, with or without such a span.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, bool, int]] = []
        self.texts = 0

    def add(self, predicted: Doc, reference: Doc, spans_key: str) -> None:
        """Add a text's uncalibrated predictions and its reference."""
        self.texts += 1
        spans = predicted.spans[spans_key]
        rights = judge(get_known(reference), spans)
        for span, p, right in zip(spans, spans.attrs["scores"], rights, strict=True):
            if right is not None:
                self.rows.append((span.label_, float(p), right, self.texts))

    def fit(self, names: Sequence[str]) -> Fitted | None:
        """Fit the labels' slopes and intercepts; None without rows."""
        if not self.rows:
            return None
        labels, p, right, numbers = map(np.array, zip(*self.rows, strict=True))
        odds, odd, after = log_odds(p), numbers % 2 == 1, p.copy()
        for half in (odd, ~odd):
            if half.any() and not half.all():
                fitted = fit_settings(labels[~half], odds[~half], right[~half], names)
                slopes, intercepts = (np.array([kind[name] for name in labels[half]]) for kind in fitted.values())
                after[half] = calibrated(p[half], slopes, intercepts)
        settings = fit_settings(labels, odds, right, names)
        return Fitted(settings, calibration_error(p, right) or 0.0, calibration_error(after, right) or 0.0)


def fit_settings(
    labels: np.ndarray, odds: np.ndarray, right: np.ndarray, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Fit each label's slope and intercept.

    labels, odds, right (np.ndarray): shape (spans,): label, log-odds, and whether the span is right.
    names (Sequence[str]): labels that need settings.
    """
    design = np.stack([odds, np.ones_like(odds)], axis=1)  # (spans, 2)
    common = _logistic(design, right, np.array([1.0, 0.0]), 1.0)
    settings: dict[str, dict[str, float]] = {"slopes": {}, "intercepts": {}}
    for name in names:
        of_label = labels == name
        weights = _logistic(design[of_label], right[of_label], common, PRIOR) if of_label.any() else common
        for kind, value in zip(settings.values(), weights.tolist(), strict=True):
            kind[name] = round(value, 6)
    return settings


def calibration_error(probabilities: np.ndarray, right: np.ndarray) -> float | None:
    """Compute the expected calibration error; None without spans.

    It is the mean gap between mean probability and share of right spans in ten bins of equal width, weighted by number
    of spans (Guo et al., On Calibration of Modern Neural Networks, ICML 2017, equation 5).
    """
    return error_of_bins(sum_bins(probabilities, right))


def sum_bins(probabilities: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum the bins of `calibration_error`; sums of batches can be added.

    RETURNS (np.ndarray): shape (3, BINS): sums of probabilities, right spans, and all spans.
    """
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    return np.stack([np.bincount(bins, weights, BINS) for weights in (probabilities, right, np.ones(len(bins)))])


def error_of_bins(sums: np.ndarray) -> float | None:
    """Compute the expected calibration error from `sum_bins`; None without spans."""
    expected, right, spans = sums
    return float(np.abs(expected - right).sum() / spans.sum()) if spans.sum() else None


def _logistic(design: np.ndarray, right: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Fit a logistic regression with a Gaussian prior, by damped Newton steps.

    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, section 4.4.1.
    """

    def cost(weights: np.ndarray) -> float:
        odds = design @ weights
        return float(np.logaddexp(0, odds).sum() - odds @ right + strength / 2 * ((weights - prior) ** 2).sum())

    weights, size = prior.copy(), 1.0
    while size > 1e-9:
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        # A step of Newton's: the inverse of the Hessian, (weights, weights), times the gradient.
        curvature = (design.T * (p * (1 - p))) @ design + strength * np.eye(len(prior))
        step = np.linalg.solve(curvature, design.T @ (p - right) + strength * (weights - prior))
        while (size := np.abs(step).max()) > 1e-9 and cost(weights - step) > cost(weights):
            step /= 2
        weights = weights - step
    return weights

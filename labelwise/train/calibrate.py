"""Fit on dev, after training, what turns a label's scores into probabilities that can be trusted.

Each label of a per-label recognizer has a slope and an intercept, so that of the spans with a probability of 0.8, eight
of ten are right on dev; see `spacy_per_label.decode.calibrated`. Labels with few spans on dev are drawn towards all
labels together; where dev is small, all labels have one slope. Only what a text's coverage allows to judge counts.

Where train is small, labels are found too rarely, and one shift of the tag O is chosen on dev for all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import predict_each
from labelwise.corpus.reliability import Reliability
from spacy_per_label.decode import calibrated, log_odds

PRIOR = 10.0  # how many spans a label must have until they say more than those of all labels
FEW = 30  # texts of dev, below which labels have one temperature
OUTSIDE = (0.0, -0.5, -1.0, -1.5, -2.0)


class Fitted(NamedTuple):
    """What was fitted: settings of the component; and the calibration error on dev, before and after.

    The error after is measured on each half of dev with what the other half fits.
    """

    settings: dict[str, Any]
    before: float
    after: float


class Judged(NamedTuple):
    """The spans that were found and can be judged: labels, log-odds, if they are right, and their texts' numbers."""

    labels: np.ndarray
    log_odds: np.ndarray
    right: np.ndarray
    texts: np.ndarray

    def where(self, chosen: np.ndarray) -> "Judged":
        """Choose some of them."""
        return Judged(*(column[chosen] for column in self))


def choose_outside(nlp: Language, score: Callable[[], float]) -> None:
    """Choose what is added to the logits of all labels' tag O, so that a score is highest, and set it.

    score (Callable): scores the pipeline on dev.
    """
    settings: dict[str, Any] = nlp.get_pipe("ner").cfg  # type: ignore[attr-defined]
    scores = {}
    for settings["outside"] in OUTSIDE:
        scores[settings["outside"]] = score()
    settings["outside"] = max(OUTSIDE, key=lambda shift: scores[shift])


def fit(nlp: Language, texts: Iterator[StoredDoc]) -> Fitted | None:
    """Fit a pipeline's recognizer, which isn't calibrated, and leave it as it is.

    texts (Iterator[StoredDoc]): those of dev, read once; nothing is kept of a text but numbers.
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    rows: list[tuple[str, float, bool, int]] = []
    count = 0
    for count, (stored, doc) in enumerate(predict_each(nlp, texts, len), 1):
        found = doc.spans["labels"]
        keys = [(span.start_char, span.end_char, span.label_) for span in found]
        may, accepted = stored.annotation.judgeable(keys), stored.annotation.accepted
        scored = zip(keys, found.attrs["scores"], strict=True)
        rows += [(key[2], float(p), key in accepted, count) for key, p in scored if key in may]
    if not rows:
        return None
    labels, p, right, numbers = map(np.array, zip(*rows, strict=True))
    judged = Judged(labels, log_odds(p), right, numbers)
    names = nlp.get_pipe("ner").labels  # type: ignore[attr-defined]
    odd = numbers % 2 == 1
    after = p.copy()
    for half in (odd, ~odd):
        if half.any() and not half.all():
            other = fit_settings(judged.where(~half), names, count)
            slopes, intercepts = (np.array([kind[name] for name in labels[half]]) for kind in other.values())
            after[half] = calibrated(p[half], slopes, intercepts)
    errors = (Reliability(zip(q, right, strict=True)).error() or 0.0 for q in (p, after))
    return Fitted(fit_settings(judged, names, count), *errors)


def fit_settings(judged: Judged, names: Sequence[str], texts: int) -> dict[str, dict[str, float]]:
    """Fit the slope and the intercept of each label; below FEW texts, one slope for all of them, a temperature.

    texts (int): of dev.
    """
    design = np.stack([judged.log_odds, np.ones_like(judged.log_odds)], axis=1)
    if texts < FEW:
        slope = round(float(_logistic(design[:, :1], judged.right, np.array([1.0]), 1.0)[0]), 6)
        return {"slopes": dict.fromkeys(names, slope), "intercepts": dict.fromkeys(names, 0.0)}
    common = _logistic(design, judged.right, np.array([1.0, 0.0]), 1.0)
    settings: dict[str, dict[str, float]] = {"slopes": {}, "intercepts": {}}
    for name in names:
        own = judged.labels == name
        weights = _logistic(design[own], judged.right[own], common, PRIOR) if own.any() else common
        for kind, value in zip(settings.values(), weights.tolist(), strict=True):
            kind[name] = round(value, 6)
    return settings


def _logistic(design: np.ndarray, right: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Fit a logistic regression with a Gaussian prior, by Newton's method; a step that would make it worse is halved.

    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, section 4.4.1.
    """

    def cost(weights: np.ndarray) -> float:
        """Compute the negative logarithm of the posterior, but for a constant."""
        odds = design @ weights
        return float(np.logaddexp(0, odds).sum() - odds @ right + strength / 2 * ((weights - prior) ** 2).sum())

    weights, size = prior.copy(), 1.0
    while size > 1e-9:
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        curvature = (design.T * (p * (1 - p))) @ design + strength * np.eye(len(prior))
        step = np.linalg.solve(curvature, design.T @ (p - right) + strength * (weights - prior))
        while (size := np.abs(step).max()) > 1e-9 and cost(weights - step) > cost(weights):
            step /= 2
        weights = weights - step
    return weights

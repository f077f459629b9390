"""Fit on dev, after training, what turns a label's scores into probabilities that can be trusted.

Each label of a per-label recognizer has a slope and an intercept, so that of the spans with a probability of 0.8, eight
of ten are right on dev; see `spacy_per_label.decode.calibrated`. Labels with few spans on dev are drawn towards all
labels together. Only what a text's coverage allows to judge counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import predict_each
from labelwise.corpus.reliability import Reliability
from spacy_per_label.decode import calibrated, log_odds

PRIOR = 10.0  # how many spans a label must have until they say more than those of all labels


class Fitted(NamedTuple):
    """What was fitted: settings of the component, by label; and the calibration error on dev, before and after."""

    settings: dict[str, dict[str, float]]
    before: float
    after: float


def fit(nlp: Language, texts: Iterator[StoredDoc]) -> Fitted | None:
    """Fit a pipeline's recognizer, which isn't calibrated, and leave it as it is.

    texts (Iterator[StoredDoc]): those of dev, read once; nothing is kept of a text but numbers.
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    judged: list[tuple[str, float, bool]] = []
    for stored, doc in predict_each(nlp, texts, len):
        found = doc.spans["labels"]
        keys = [(span.start_char, span.end_char, span.label_) for span in found]
        may, accepted = stored.annotation.judgeable(keys), stored.annotation.accepted
        scored = zip(keys, found.attrs["scores"], strict=True)
        judged += [(key[2], float(p), key in accepted) for key, p in scored if key in may]
    if not judged:
        return None
    labels, p, right = map(np.array, zip(*judged, strict=True))
    x = log_odds(p)
    common = _logistic(x, right, np.array([1.0, 0.0]), 1.0)
    settings: dict[str, dict[str, float]] = {"slopes": {}, "intercepts": {}}
    for name in nlp.get_pipe("ner").labels:  # type: ignore[attr-defined]
        own = labels == name
        weights = _logistic(x[own], right[own], common, PRIOR) if own.any() else common
        for kind, value in zip(settings.values(), weights.tolist(), strict=True):
            kind[name] = round(value, 6)
    slopes, intercepts = (np.array([kind[name] for name in labels]) for kind in settings.values())
    errors = (Reliability(zip(q, right, strict=True)).error() or 0.0 for q in (p, calibrated(p, slopes, intercepts)))
    return Fitted(settings, *errors)


def _logistic(x: np.ndarray, right: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Fit a logistic regression with a Gaussian prior, by the method of Böhning (1992).

    A quarter bounds p (1 - p), and so a fixed matrix the second derivatives: each step helps, whatever its length.
    """
    design = np.stack([x, np.ones_like(x)], axis=1)
    bound = design.T @ design / 4 + strength * np.eye(2)
    weights = prior.copy()
    for _ in range(10_000):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        step = np.linalg.solve(bound, design.T @ (p - right) + strength * (weights - prior))
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return weights

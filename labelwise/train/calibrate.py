"""Fit on dev, after training, what turns a label's scores into probabilities that can be trusted.

Each label of a per-label recognizer has a slope and an intercept, so that of the spans with a probability of 0.8, eight
of ten are right on dev; see `spacy_per_label.decode.calibrated`. Labels with few spans on dev are drawn towards all
labels together. Only what a text's coverage allows to judge counts.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.training import Example

from labelwise.corpus.annotation import Annotation, annotation_of, entities, is_merged
from labelwise.corpus.pipeline import forgetting, take_batch
from labelwise.corpus.reliability import Reliability
from labelwise.train.tidy import rewrite
from spacy_per_label.decode import calibrated, log_odds

PRIOR = 10.0  # how many spans a label must have until they say more than those of all labels


class Fitted(NamedTuple):
    """What was fitted: settings of the component, by label; and the calibration error on dev, before and after."""

    settings: dict[str, dict[str, float]]
    before: float
    after: float


def fit(nlp: Language, examples: Iterable[Example]) -> Fitted | None:
    """Fit a pipeline's recognizer, which isn't calibrated, and leave it as it is.

    examples (Iterable[Example]): those of dev, read once; nothing is kept of a text but numbers.
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    names: list[str] = []
    odds, right = [], []
    examples = iter(examples)
    held = True
    while held:
        with forgetting(nlp):
            batch = take_batch(examples, nlp.batch_size, lambda eg: len(eg.predicted))
            for eg, doc in zip(batch, nlp.pipe(eg.predicted for eg in batch), strict=True):
                merged = annotation_of(eg.reference) if is_merged(eg.reference) else Annotation([], [], {})
                gold = merged.accepted if is_merged(eg.reference) else entities(eg.reference)
                found = doc.spans["labels"]
                keys = [(span.start_char, span.end_char, span.label_) for span in found]
                may, accepted = merged.judgeable(keys), merged.judgeable(gold)
                for key, p in zip(keys, found.attrs["scores"], strict=True):
                    if key in may:
                        names.append(key[2])
                        odds.append(log_odds(p))
                        right.append(key in accepted)
            held = bool(batch)
            batch.clear()
    if not right:
        return None
    x, y, labels = np.array(odds), np.array(right), np.array(names)
    common = _logistic(x, y, np.array([1.0, 0.0]), 1.0)
    each = {
        name: _logistic(x[labels == name], y[labels == name], common, PRIOR) if name in names else common
        for name in nlp.get_pipe("ner").labels  # type: ignore[attr-defined]
    }
    p = 1 / (1 + np.exp(-x))
    settings = {
        kind: {name: round(float(weights[place]), 6) for name, weights in each.items()}
        for place, kind in enumerate(("slopes", "intercepts"))
    }
    slopes, intercepts = (np.array([settings[kind][name] for name in names]) for kind in settings)
    errors = (Reliability(zip(q, y, strict=True)).error() or 0.0 for q in (p, calibrated(p, slopes, intercepts)))
    return Fitted(settings, *errors)


def write_fitted(folder: Path, fitted: Fitted) -> None:
    """Write what was fitted into the folder of a pipeline; the file is replaced, as checkpoints may share it."""
    path = folder / "ner" / "cfg"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf8")) | fitted.settings
    rewrite(path, json.dumps(content, indent=2, ensure_ascii=False))


def _logistic(x: np.ndarray, right: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Fit a logistic regression by Newton's method, with a Gaussian prior; its steps are halved until they help."""
    design = np.stack([x, np.ones_like(x)], axis=1)

    def loss(weights: np.ndarray) -> float:
        """Compute the negative logarithm of the posterior, but for a constant."""
        z = design @ weights
        return float(np.logaddexp(0, z).sum() - z[right].sum() + strength / 2 * ((weights - prior) ** 2).sum())

    weights = prior.copy()
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (p - right) + strength * (weights - prior)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + strength * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-9:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-7:
            break
    return weights

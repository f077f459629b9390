"""Fit on dev, after training, what turns a label's scores into probabilities that can be trusted.

Each label of a per-label recognizer has a slope and an intercept, so that of the spans with a probability of 0.8, eight
of ten are right on dev; see `per_label.calibrated`. Labels with few spans on dev are drawn towards all labels together.

Only what a text's coverage allows to judge counts. It is streamed: nothing is kept of a text but numbers.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from labelwise.common.spans import SpanKey
from labelwise.corpus.annotation import Annotation, annotation_of, entities, is_merged
from labelwise.corpus.streaming import forgetting, take_batch, texts_at_a_time
from labelwise.recognizer.per_label import TINY, FoundSpans, PerLabelRecognizer, calibrated, decode
from labelwise.recognizer.reliability import Reliability
from labelwise.recognizer.transformer import joined
from labelwise.train.tidy import rewrite

PRIOR = 10.0  # how many spans a label must have until they say more than those of all labels


class Judged(NamedTuple):
    """Spans that were found and can be judged: columns of labels, probabilities, and whether they are right."""

    labels: np.ndarray
    probabilities: np.ndarray
    right: np.ndarray


class Fitted(NamedTuple):
    """What was fitted: settings of the component, by label; and the calibration error on dev, before and after."""

    settings: dict[str, dict[str, float]]
    before: float
    after: float


def fit(nlp: Language, examples: Iterable[Example]) -> Fitted | None:
    """Fit a pipeline's recognizer, and leave it as it is.

    examples (Iterable[Example]): those of dev, read once.
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    component: Any = nlp.get_pipe("ner")
    judged = _collect(nlp, component, examples)
    if not len(judged.right):
        return None
    slopes, intercepts = _fit_odds(judged, len(component.labels))
    settings = {
        "slopes": _by_label(component, slopes, 1.0),
        "intercepts": _by_label(component, intercepts, 0.0),
    }
    p = calibrated(judged.probabilities, slopes[judged.labels], intercepts[judged.labels])
    before, after = (Reliability(zip(found, judged.right, strict=True)).error() for found in (judged.probabilities, p))
    return Fitted(settings, before or 0.0, after or 0.0)


def write_fitted(folder: Path, fitted: Fitted) -> None:
    """Write what was fitted into the folder of a pipeline; the file is replaced, as checkpoints may share it."""
    path = folder / "ner" / "cfg"
    content = json.loads(path.read_text(encoding="utf8")) | fitted.settings
    rewrite(path, json.dumps(content, indent=2, ensure_ascii=False))


def _collect(nlp: Language, component: PerLabelRecognizer, examples: Iterable[Example]) -> Judged:
    """Find spans, and judge them."""
    rows: list[Judged] = []
    examples = iter(examples)
    with joined(nlp):
        while True:
            with forgetting(nlp), nlp.select_pipes(disable="ner"):
                batch = take_batch(examples, texts_at_a_time(nlp), lambda eg: len(eg.predicted))
                if not batch:
                    return _stack(rows)
                docs = list(nlp.pipe(eg.predicted for eg in batch))
                found = decode(component.log_probabilities(docs), [len(doc) for doc in docs])
                for eg, doc, spans in zip(batch, docs, found, strict=True):
                    rows.append(_judged(doc, spans, component.labels, *_judge(eg)))


def _judge(eg: Example) -> tuple[set[SpanKey], Annotation]:
    """Tell the gold spans of a text that can be judged, and what decides on others."""
    if not is_merged(eg.reference):
        return entities(eg.reference), Annotation([], [], {})
    merged = annotation_of(eg.reference)
    return merged.judgeable(merged.accepted), merged


def _judged(doc: Doc, found: FoundSpans, labels: Sequence[str], accepted: set[SpanKey], merged: Annotation) -> Judged:
    keys = [(doc[start].idx, doc[end - 1].idx + len(doc[end - 1]), labels[label]) for start, end, label in found.rows()]
    may = merged.judgeable(keys)
    kept = np.array([key in may for key in keys], bool)
    right = np.array([key in accepted for key in keys], bool)
    return Judged(found.labels[kept], found.probabilities[kept], right[kept])


def _stack(parts: Sequence[Judged]) -> Judged:
    if not parts:
        return Judged(np.zeros(0, int), np.zeros(0), np.zeros(0, bool))
    return Judged(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _fit_odds(judged: Judged, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Fit slope and intercept of all labels together, then of each one, drawn towards those."""
    p = np.clip(judged.probabilities, TINY, 1 - TINY)
    odds = np.log(p) - np.log1p(-p)
    common = _logistic(odds, judged.right, np.array([1.0, 0.0]), 1.0)
    each = np.tile(common, (labels, 1))
    for label in range(labels):
        chosen = judged.labels == label
        if chosen.any():
            each[label] = _logistic(odds[chosen], judged.right[chosen], common, PRIOR)
    return each[:, 0].astype("float32"), each[:, 1].astype("float32")


def _logistic(odds: np.ndarray, right: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Fit a logistic regression by Newton's method, with a Gaussian prior; its steps are halved until they help."""
    design = np.stack([odds, np.ones_like(odds)], axis=1)

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


def _by_label(component: PerLabelRecognizer, values: np.ndarray, default: float) -> dict[str, float]:
    rounded = [round(float(value), 6) for value in values]
    return {label: value for label, value in zip(component.labels, rounded, strict=True) if value != default}

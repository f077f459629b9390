"""Detect broken or undertrained pipelines, by F1 on dev per step, and missed spans with known words."""

import numpy as np

from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SplitMetrics

MIN_SEEN_MISSED = 10  # missed gold spans with words annotated in train
MIN_GAIN = 0.01  # F1 on dev that twice the steps must add
MIN_F = 0.1  # best F1 on dev; a training below it is broken


def is_broken(curve: Curve | None, dev_gold: int) -> bool:
    """Return whether F1 on dev never reached MIN_F, though dev has gold."""
    return bool(curve and curve.f and dev_gold and max(curve.f) < MIN_F)


def train_longer(metrics: SplitMetrics, curve: Curve | None) -> str:
    """Explain why a pipeline is undertrained; "" if it isn't.

    It is if it misses more spans with words annotated in train than it predicts correctly in total, or if twice the
    steps are worthwhile.
    """
    if not curve or not curve.steps:
        return ""
    known, found = (
        sum(mistakes.causes.get(cause, 0) for mistakes in metrics.mistakes.values()) for cause in ("seen", "found")
    )
    if known >= MIN_SEEN_MISSED and known > found:
        return f"it misses {known:,} spans whose words are annotated in train, and finds {found:,} in all"
    if (gain := expect_gain(curve)) > MIN_GAIN:
        return f"F1 on dev still rises; twice the steps should add about {100 * gain:.1f} points"
    return ""


def expect_gain(curve: Curve) -> float:
    """Estimate the gain in F1 on dev by twice the steps; none, if the last evaluation isn't the best.

    The gain of each doubling is a constant share of the gain before (Aitken's delta-squared process), at most the last
    gain, and at most 1 - F1. Between evaluations, F1 is interpolated.
    """
    if curve.f[-1] < max(curve.f) or 2 * curve.steps[0] > curve.steps[-1]:  # or the first half has no evaluation
        return 0.0
    steps = [0, *curve.steps]
    quarter, half, last = np.interp([steps[-1] / 4, steps[-1] / 2, steps[-1]], steps, [0, *curve.f])
    gain = float(max(0.0, last - half))
    return gain and float(min(1 - last, gain * gain / max(gain, half - quarter)))

"""Was a training broken, or stopped too early? Look at F1 on dev by step, and at missed spans with known words."""

import numpy as np

from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import SplitMetrics

MIN_SEEN_MISSED = 10  # gold spans whose words train marks: how many must be missed to say something
MIN_GAIN = 0.01  # what twice the steps must add to F1 on dev
MIN_F = 0.1  # of F1 on dev, the best one: a training that never reaches it is broken


def is_broken(curve: Curve | None, dev_gold: int) -> bool:
    """Return whether a training learned next to nothing: F1 on dev never reached MIN_F, though dev has gold.

    dev_gold (int): gold spans in dev.
    """
    return bool(curve and curve.f and dev_gold and max(curve.f) < MIN_F)


def train_longer(metrics: SplitMetrics, curve: Curve | None) -> str:
    """Explain why a pipeline is undertrained, so that its scores say little of the annotations yet; empty if it isn't.

    It is if it misses more spans whose words train marks than it finds in all, or if twice the steps are worth it.
    """
    if not curve or not curve.steps:
        return ""
    known, found = (sum(one.causes.get(cause, 0) for one in metrics.mistakes.values()) for cause in ("seen", "found"))
    if known >= MIN_SEEN_MISSED and known > found:
        return f"it misses {known:,} spans whose words are annotated in train, and finds {found:,} in all"
    if (gain := expect_gain(curve)) > MIN_GAIN:
        return f"F1 on dev still rises; twice the steps should add about {100 * gain:.1f} points"
    return ""


def expect_gain(curve: Curve) -> float:
    """Estimate what twice the steps add to F1 on dev: nothing, if the last evaluation isn't the best.

    The gain of each doubling is a constant share of the gain before (Aitken's delta-squared process), and the next one
    is never more than the last, nor than F1 lacks. Between evaluations, F1 is interpolated.
    """
    if curve.f[-1] < max(curve.f) or 2 * curve.steps[0] > curve.steps[-1]:  # or the first half has no evaluation
        return 0.0
    steps = [0, *curve.steps]
    quarter, half, last = np.interp([steps[-1] / 4, steps[-1] / 2, steps[-1]], steps, [0, *curve.f])
    gain = float(max(0.0, last - half))
    return gain and float(min(1 - last, gain * gain / max(gain, half - quarter)))

"""Did a training stop too early? Look at the curve of F1 on dev, and at missed spans whose words train marks."""

import numpy as np

from labelwise.evaluate.results import Curve
from labelwise.evaluate.scores import Metrics

KNOWN = 10  # gold spans whose words train marks: how many must be missed to say something
WORTH = 0.01  # what twice the steps must add to F1 on dev


def train_longer(metrics: Metrics, curve: Curve | None) -> str:
    """Explain why a pipeline is undertrained, so that its scores say little of the annotations yet; empty if it isn't.

    It is if it misses more spans whose words train marks than it finds in all, or if twice the steps are worth it.
    """
    if not curve or not curve.steps:
        return ""
    known, found = (sum(one.causes.get(cause, 0) for one in metrics.mistakes.values()) for cause in ("known", "found"))
    if known >= KNOWN and known > found:
        return f"it misses {known:,} spans whose words train marks, and finds {found:,} in all"
    if (gain := expect_gain(curve)) > WORTH:
        return f"F1 on dev still rises, and twice the steps should add about {100 * gain:.1f} points"
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

"""Whether probabilities can be trusted."""

import numpy as np
import pytest

from labelwise.corpus.reliability import BINS, Reliability


def test_the_calibration_error_is_that_of_its_definition():
    rng = np.random.default_rng(1)
    p = np.append(rng.random(500), [0.0, 1.0])
    right = rng.random(502) < 0.5
    expected = 0.0
    for n in range(BINS):
        chosen = (p >= n / BINS) & ((p < (n + 1) / BINS) | (n == BINS - 1))
        if chosen.any():
            expected += chosen.sum() / len(p) * abs(right[chosen].mean() - p[chosen].mean())
    assert Reliability(zip(p, right, strict=True)).error() == pytest.approx(expected)
    assert Reliability().error() is None

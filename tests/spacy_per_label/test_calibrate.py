import numpy as np
import pytest

from spacy_per_label.calibrate import calibration_error, fit_settings


def posterior(odds, right, weights, prior, strength) -> np.ndarray:
    design = np.stack([odds, np.ones(len(odds))])
    return design @ (1 / (1 + np.exp(-np.array(weights) @ design)) - right) + strength * np.subtract(weights, prior)


def test_the_fit_is_the_most_probable_one_with_few_wrong_spans():
    rng = np.random.default_rng(0)
    odds = rng.normal(5, 1, 3000)
    right = rng.random(3000) < 1 / (1 + np.exp(-(2 * odds + 0.5)))
    settings = fit_settings(np.full(3000, "A"), odds, right, ("A", "B"))
    own, common = ([settings["slopes"][name], settings["intercepts"][name]] for name in "AB")
    assert posterior(odds, right, common, [1, 0], 1) == pytest.approx([0, 0], abs=1e-3)
    assert posterior(odds, right, own, common, 10) == pytest.approx([0, 0], abs=1e-3)


def test_what_generated_the_data_is_found():
    """Spans are right with log-odds 0.5 x + 0.3 where the pipeline's are x."""
    rng = np.random.default_rng(0)
    odds = rng.uniform(0.1, 5, 4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-(0.5 * odds + 0.3)))
    settings = fit_settings(np.full(4000, "A"), odds, right, ("A",))
    assert settings["slopes"]["A"] == pytest.approx(0.5, abs=0.08)
    assert settings["intercepts"]["A"] == pytest.approx(0.3, abs=0.2)


def test_the_calibration_error_is_the_mean_gap_of_bins():
    """A bin of 0.9 and 1.0, half of them right, has a gap of 0.45; a bin of 0.25, none right, a gap of 0.25."""
    p, right = np.array([0.9, 1.0, 0.25, 0.25]), np.array([True, False, False, False])
    assert calibration_error(p, right) == pytest.approx((2 * 0.45 + 2 * 0.25) / 4)
    assert calibration_error(p[:0], right[:0]) is None

import math

import numpy as np
import pytest

from labelwise.evaluate.resampling import (
    BLOCK,
    MIN_UNITS,
    Jackknife,
    f_scores,
    stream_units,
    students_t,
    sum_by_unit,
    wilson_interval,
)


def random_counts(rng: np.random.Generator, docs: int, labels: int = 2, quality: float = 0.7, most: int = 9):
    """Draw right, predicted and gold spans, shape (docs, labels, 3)."""
    gold = rng.integers(0, most, (docs, labels))
    right = rng.binomial(gold, quality)
    return np.stack([right, right + rng.integers(0, 4, gold.shape), gold], -1)


def jackknife(docs: np.ndarray, of=f_scores) -> Jackknife:
    left_out = Jackknife(docs.sum(0), of)
    for start in range(0, len(docs), BLOCK):  # as docs arrive
        left_out.add(docs[start : start + BLOCK])
    return left_out


def plain_f(counts: list) -> list[float]:
    def f(right: int, predicted: int, gold: int) -> float:
        if not predicted + gold:
            return math.nan
        p, r = (right / n if n else 0.0 for n in (predicted, gold))
        return 2 * p * r / (p + r) if p + r else 0.0

    by_label = [f(*row) for row in counts]
    defined = [value for value, (_, _, gold) in zip(by_label, counts, strict=True) if gold]
    mean = sum(defined) / len(defined) if defined else math.nan
    return [*by_label, f(*(sum(column) for column in zip(*counts, strict=True))), mean]


@pytest.mark.parametrize("shape", [(), (50,), (4, 5)])
@pytest.mark.parametrize("dtype", [int, float])
def test_f_is_what_a_loop_computes(shape, dtype):
    rng = np.random.default_rng(0)
    counts = random_counts(rng, math.prod(shape), 3, most=3) * rng.integers(0, 2, (math.prod(shape), 3, 1))
    expected = np.array([plain_f(count) for count in counts.tolist()]).reshape(*shape, 5)
    assert shape == () or np.isnan(expected).any()
    np.testing.assert_allclose(f_scores(counts.reshape(*shape, 3, 3).astype(dtype)), expected, rtol=1e-12)


def test_the_standard_error_is_that_of_leaving_out_each_doc():
    docs = random_counts(np.random.default_rng(3), 70)
    without = np.array([plain_f((docs.sum(0) - doc).tolist()) for doc in docs])
    squares = ((without - plain_f(docs.sum(0).tolist())) ** 2).sum(0)
    estimate = jackknife(docs)
    assert estimate.docs.tolist() == [*(docs.sum(-1) > 0).sum(0), *[(docs.sum((1, 2)) > 0).sum()] * 2]
    np.testing.assert_allclose(estimate.errors(), np.sqrt((estimate.docs - 1) / estimate.docs * squares), rtol=1e-9)


@pytest.mark.parametrize("units", [1, 7, 130, 300])
def test_counts_are_summed_by_unit_as_by_hand_and_texts_of_their_own_stay_as_they_come(units):
    rng = np.random.default_rng(units)
    docs = random_counts(rng, 300)
    of_each = np.arange(300) if units == 300 else rng.integers(0, units, 300)
    blocks = [docs[start : start + BLOCK] for start in range(0, 300, BLOCK)]
    streamed = [*stream_units(blocks, of_each)]
    assert max(map(len, streamed)) <= BLOCK
    by_hand = sorted(docs[of_each == unit].sum(0).tolist() for unit in {*of_each.tolist()})
    assert sorted(np.concatenate(streamed).tolist()) == sorted(sum_by_unit(docs, of_each).tolist()) == by_hand
    if units == 300:
        assert all(np.array_equal(*pair) for pair in zip(streamed, blocks, strict=True))


@pytest.mark.parametrize(
    ("degrees", "tests", "expected"),  # scipy.stats.t.ppf(1 - 0.025 / tests, degrees)
    [
        (1, 1, 12.706),
        (1.5, 1, 6.0167),
        (2, 1, 4.3027),
        (2.4, 1, 3.6835),
        (0.5, 1, 12.706),
        (1, 18, 229.18),
        (2, 18, 18.934),
        (3.7, 18, 7.0983),
        (8.2, 18, 4.2150),
        (1.2, 60, 263.71),
        (4, 60, 9.0294),
    ],
)
def test_students_t_is_exact_to_a_percent_from_one_degree_on_and_for_fractions(degrees, tests, expected):
    assert students_t(np.array([degrees, 300.0]), tests)[0] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("right", "predicted", "gold"), [(61, 61, 61), (0, 5, 3), (30, 40, 40), (1, 1, 9)])
def test_students_t_and_wilsons_interval_of_the_share_that_is_right_are_scipys(right, predicted, gold):
    import scipy.stats  # which takes a second

    degrees = np.arange(4, 200)
    np.testing.assert_allclose(students_t(degrees), scipy.stats.t.ppf(0.975, degrees), rtol=3e-3)
    share = scipy.stats.binomtest(right, predicted + gold - right).proportion_ci(method="wilson")
    # F = 2tp / (2tp + errors), written in the share tp / (tp + errors).
    expected = [2 / (1 + 1 / bound) if bound > 1e-9 else 0.0 for bound in share]
    assert wilson_interval(right, predicted, gold) == pytest.approx(expected)


def unequal_texts(rng: np.random.Generator, texts: int, ease: float) -> np.ndarray:
    """Draw counts of texts of unequal difficulty, length and number of spans; `ease` in log-odds."""
    size = rng.lognormal(np.log(6), 0.7, texts)
    gold = rng.poisson(size)
    p = 1 / (1 + np.exp(-(ease + rng.normal(size=texts))))
    right = rng.binomial(gold, p)
    return np.stack([right, right + rng.poisson(0.9 * size * (1 - p)), gold], 1)[:, None]


@pytest.mark.guarantee("intervals")
@pytest.mark.parametrize("texts", [MIN_UNITS, 8, 12, 20, 33, pytest.param(100, marks=pytest.mark.nightly)])
def test_an_interval_covers_what_is_true(texts):
    """93 % or more, and the truth is below in 4.5 % at most, within the noise of 1,000 samples."""
    covered, below = [], []
    for ease in (0.8, 2.0):
        rng = np.random.default_rng((1, texts))
        true = f_scores(unequal_texts(rng, 400_000, ease).sum(0))[0]
        for _ in range(500):
            low, high = jackknife(unequal_texts(rng, texts, ease)).interval(within=True)[:, 0]
            if not np.isnan(low):
                covered.append(low <= true <= high)
                below.append(true < low)
    assert np.mean(covered) >= 0.93 - 0.016
    assert np.mean(below) <= 0.045 + 0.013

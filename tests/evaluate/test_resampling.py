"""Statistics over docs, against scipy's, against all swaps that there are, and by hand."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.stats

from labelwise.evaluate.resampling import (
    BLOCK,
    REPLICATES,
    SWAPS,
    Bootstrap,
    Swaps,
    f_scores,
    holm,
    interval,
    wilson_interval,
)


def random_counts(rng: np.random.Generator, docs: int, labels: int = 2, quality: float = 0.7, most: int = 9):
    """Right, predicted and gold spans of docs, of the shape (docs, labels, 3)."""
    gold = rng.integers(0, most, (docs, labels))
    right = rng.binomial(gold, quality)
    return np.stack([right, right + rng.integers(0, 4, gold.shape), gold], -1)


def blocks(docs: np.ndarray):
    """In the blocks in which docs come: random weights depend on them."""
    return (docs[start : start + BLOCK] for start in range(0, len(docs), BLOCK))


def bootstrap(docs: np.ndarray, seed: int = 0) -> Bootstrap:
    replicates = Bootstrap(docs.shape[1:], seed=seed)
    for block in blocks(docs):
        replicates.add(block)
    return replicates


def p_values(base: np.ndarray, other: np.ndarray, seed: int = 0) -> np.ndarray:
    swaps = Swaps(base.shape[1:], seed=seed)
    for one, two in zip(blocks(base), blocks(other), strict=True):
        swaps.add(one, two)
    return swaps.p_values()


def plain_f(counts: list) -> list[float]:
    """F of each label, over all, and the mean of the labels that have gold; one set of counts, in the plainest way."""

    def f(right: int, predicted: int, gold: int) -> float:
        if not predicted + gold:
            return math.nan
        p, r = (right / n if n else 0.0 for n in (predicted, gold))
        return 2 * p * r / (p + r) if p + r else 0.0

    by_label = [f(*row) for row in counts]
    defined = [value for value, (_, _, gold) in zip(by_label, counts, strict=True) if gold]
    mean = sum(defined) / len(defined) if defined else math.nan
    return [*by_label, f(*(sum(column) for column in zip(*counts, strict=True))), mean]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[1, 2, 2], [3, 3, 3]], [0.5, 1.0, 0.8, 0.75]),
        ([[0, 2, 0], [0, 0, 3]], [0, 0, 0, 0]),  # only predicted, only gold
        ([[1, 2, 2], [0, 0, 0]], [0.5, math.nan, 0.5, 0.5]),  # a label without spans isn't in the mean
        ([[0, 0, 0], [0, 0, 0]], [math.nan] * 4),
    ],
)
def test_f_by_hand(counts, expected):
    assert f_scores(np.array(counts)).tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("shape", [(), (50,), (4, 5)])
@pytest.mark.parametrize("dtype", [int, float])
def test_f_is_what_a_loop_computes(shape, dtype):
    rng = np.random.default_rng(0)
    counts = random_counts(rng, math.prod(shape), 3, most=3) * rng.integers(0, 2, (math.prod(shape), 3, 1))
    expected = np.array([plain_f(one) for one in counts.tolist()]).reshape(*shape, 5)
    assert shape == () or np.isnan(expected).any()
    np.testing.assert_allclose(f_scores(counts.reshape(*shape, 3, 3).astype(dtype)), expected, rtol=1e-12)


@pytest.mark.parametrize("column", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_are_nearly_scipys(seed, column):
    """Both are random: a bound of a thousand replicates varies by about a fiftieth of the interval's width."""
    docs = random_counts(np.random.default_rng(seed), 250)
    expected = scipy.stats.bootstrap(
        (np.arange(len(docs)),),
        lambda chosen: plain_f(docs[chosen].sum(0).tolist())[column],
        n_resamples=2000,
        method="percentile",
        vectorized=False,
        rng=seed,
    ).confidence_interval
    bounds = interval(f_scores(bootstrap(docs).sums))[:, column]
    width = expected.high - expected.low
    assert 0.01 < width < 0.1
    assert bounds == pytest.approx([expected.low, expected.high], abs=0.1 * width)


@pytest.mark.parametrize(("right", "predicted", "gold"), [(61, 61, 61), (0, 5, 3), (30, 40, 40), (1, 1, 9)])
def test_wilsons_interval_is_scipys_of_the_share_that_is_right(right, predicted, gold):
    share = scipy.stats.binomtest(right, predicted + gold - right).proportion_ci(method="wilson")
    # F = 2tp / (2tp + errors), written in the share tp / (tp + errors).
    expected = [2 / (1 + 1 / bound) if bound > 1e-9 else 0.0 for bound in share]
    assert wilson_interval(right, predicted, gold) == pytest.approx(expected)


def test_docs_are_the_units():
    """Equal spans in fewer docs are less sure: by the square root of the number."""
    single = random_counts(np.random.default_rng(0), 800, 1)
    grouped = single.reshape(100, 8, 1, 3).sum(1)
    bounds = [interval(f_scores(bootstrap(docs).sums))[:, 0] for docs in (single, grouped, np.repeat(grouped, 4, 0))]
    widths = [high - low for low, high in bounds]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    assert widths[2] == pytest.approx(widths[1] / 2, rel=0.15)


def test_an_interval_covers_what_is_true():
    """So often as it says: of 200 samples of 100 docs. The mean of a binomial of 0.95 varies by 0.015."""
    rng = np.random.default_rng(0)
    true = f_scores(random_counts(rng, 200_000, 1).sum(0))[0]
    covered = 0
    for _ in range(200):
        low, high = interval(f_scores(bootstrap(random_counts(rng, 100, 1)).sums))[:, 0]
        covered += low <= true <= high
    assert 0.9 <= covered / 200 <= 0.99


def test_equal_seeds_give_equal_replicates():
    docs = random_counts(np.random.default_rng(0), 150)
    sums = bootstrap(docs).sums
    assert sums.shape == (REPLICATES, 2, 3)
    assert (bootstrap(docs).sums == sums).all()
    assert (bootstrap(docs, seed=1).sums != sums).any()
    base, other = docs[:75], docs[75:]
    assert (p_values(base, other) == p_values(base, other)).all()
    assert (p_values(base, other) != p_values(base, other, seed=1)).any()


def test_what_is_added_together_is_resampled_together():
    """Twice as many spans are twice as many in every replicate; a pipeline's, beside another's or alone, are equal."""
    docs = random_counts(np.random.default_rng(0), 150)
    both = bootstrap(np.stack([docs, 2 * docs], 1)).sums
    assert (both[:, 1] == 2 * both[:, 0]).all()
    assert (both[:, 0] == bootstrap(docs).sums).all()


def test_weights_have_a_mean_and_a_variance_of_one():
    """One doc with one span: the sums are the weights."""
    sums = bootstrap(np.ones((1, 1, 1), int)).sums.ravel()
    assert set(sums.tolist()) >= {0, 1, 2, 3}
    assert sums.mean() == pytest.approx(1, abs=0.1)
    assert sums.var() == pytest.approx(1, abs=0.2)
    two = bootstrap(np.eye(2, dtype=int)[:, :, None]).sums[:, :, 0]
    assert abs(np.corrcoef(two.T)[0, 1]) < 0.1


def test_replicates_without_spans_are_left_out_of_an_interval():
    nan = math.nan
    found = interval(np.array([[0.5, nan, nan], [0.5, nan, 0.1], [0.5, nan, 0.3]]))
    np.testing.assert_allclose(found, [[0.5, nan, 0.105], [0.5, nan, 0.295]])


def test_an_interval_is_of_ninety_five_percent():
    np.testing.assert_allclose(interval(np.linspace(0, 1, 1001)[:, None]), [[0.025], [0.975]])


def by_all_swaps(base: np.ndarray, other: np.ndarray) -> list[float]:
    """The share of all 2^n ways to swap docs whose difference is as large as the one that is seen."""

    def differences(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return np.abs(np.subtract(plain_f(two.sum(0).tolist()), plain_f(one.sum(0).tolist())))

    seen = differences(base, other)
    as_large = np.zeros(len(seen))
    for swaps in product([False, True], repeat=len(base)):
        swapped = np.array(swaps)[:, None, None]
        found = differences(np.where(swapped, other, base), np.where(swapped, base, other))
        as_large += ~(found < seen - 1e-12)
    return (as_large / 2 ** len(base)).tolist()


@pytest.mark.parametrize(("docs", "quality"), [(8, 0.7), (9, 0.5), (10, 0.3)])
def test_p_is_that_of_all_swaps(docs, quality):
    rng = np.random.default_rng(docs)
    base, other = random_counts(rng, docs), random_counts(rng, docs, quality=quality)
    expected = by_all_swaps(base, other)
    found = p_values(base, other)
    for p, exact in zip(found, expected, strict=True):
        assert p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / SWAPS) + 2 / SWAPS)
    assert any(0.001 < exact < 0.9 for exact in expected)


@pytest.mark.parametrize("column", [0, 2, 3])
def test_p_is_scipys(column):
    rng = np.random.default_rng(5)
    base, other = random_counts(rng, 40), random_counts(rng, 40, quality=0.63)
    both = np.concatenate([base, other])

    def statistic(one, two):
        scores = [plain_f(both[chosen.astype(int)].sum(0).tolist())[column] for chosen in (one, two)]
        return abs(scores[0] - scores[1])

    expected = scipy.stats.permutation_test(
        (np.arange(40), np.arange(40, 80)),
        statistic,
        permutation_type="samples",
        alternative="greater",
        vectorized=False,
        n_resamples=3000,
        rng=0,
    ).pvalue
    assert 0.001 < expected < 0.9
    p = p_values(base, other)[column]
    assert p == pytest.approx(expected, abs=4 * math.sqrt(expected / 3000))


def test_p_is_uniform_where_chance_alone_makes_a_difference():
    rng = np.random.default_rng(0)
    found = np.array([p_values(*(random_counts(rng, 30) for _ in range(2))) for _ in range(120)])
    for column in found.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 0.01
        assert (column < 0.05).mean() < 0.12


def test_p_is_small_for_a_real_difference():
    """As small as it can be: no swap of ten thousand gives as much; and the same the other way round."""
    rng = np.random.default_rng(0)
    base, other = random_counts(rng, 100), random_counts(rng, 100, quality=0.3)
    assert p_values(base, other).tolist() == [1 / (SWAPS + 1)] * 4
    assert p_values(other, base).tolist() == [1 / (SWAPS + 1)] * 4


def test_p_of_equal_predictions_is_one():
    docs = random_counts(np.random.default_rng(0), 70)
    assert p_values(docs, docs).tolist() == [1.0] * 4


def test_p_is_nan_where_one_has_no_score():
    docs = random_counts(np.random.default_rng(0), 20)
    other = docs.copy()
    docs[:, 0] = 0
    found = p_values(docs, other)
    assert np.isnan(found).tolist() == [True, False, False, False]


def test_the_ends_of_a_block_do_not_part_docs():
    """Of one doc more than a block, none is lost: the totals and each weight's mean are right."""
    docs = np.ones((BLOCK + 1, 1, 3), int)
    assert bootstrap(docs).sums.mean() == pytest.approx(BLOCK + 1, rel=0.02)
    swaps = Swaps((1, 3))
    for block in blocks(docs):
        swaps.add(block, 2 * block)
    assert swaps.total.tolist() == [[[BLOCK + 1] * 3], [[2 * BLOCK + 2] * 3]]
    assert swaps.moved.mean() == pytest.approx((BLOCK + 1) / 2, rel=0.01)


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([], []),
        ([0.03], [0.03]),
        # Holm 1979: the smallest times 4, then 3, 2, 1; never less than one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.6, 0.01], [1.0, 1.0, 0.03]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.01, math.nan, 0.04], [0.02, math.nan, 0.04]),
        ([math.nan], [math.nan]),
        ([0.04, 0.012, 0.013], [0.04, 0.036, 0.036]),
    ],
)
def test_holm_by_hand(p, expected):
    assert holm(p) == pytest.approx(expected, nan_ok=True)

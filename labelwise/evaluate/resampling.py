"""How certain a score is: statistics over docs that are seen once and not kept.

The counts of a doc are an array of `labels` x 3: right, predicted and gold spans. Docs are the units, as the spans of
one doc have much in common. Replicates are sums of docs' counts with random weights, so their memory doesn't grow with
the number of docs, and F is computed from the sums.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

REPLICATES = 1000  # of a bootstrap
SWAPS = 10_000  # of a randomization test; the smallest p is 1 / (SWAPS + 1)
BLOCK = 64  # docs that are weighted at a time
CONFIDENCE = 0.95
FEWEST = 5  # docs that an interval is computed from; with fewer, it would be far too narrow
TIE = 1e-12  # differences of scores that are closer than this count as equal


def f_scores(counts: np.ndarray) -> np.ndarray:
    """Compute F from counts, for each label, over all (micro average), and the mean of the labels (macro average).

    counts (np.ndarray): of any shape that ends with (labels, 3).
    RETURNS (np.ndarray): of the same shape, except that it ends with (labels + 2); NaN where there are no spans. The
        macro average is over the labels that have gold: all that is known of others is that predictions are wrong.
    """
    right, predicted, gold = np.moveaxis(np.concatenate([counts, counts.sum(-2, keepdims=True)], axis=-2), -1, 0)
    spans = predicted + gold
    f = np.divide(2 * right, spans, out=np.full(spans.shape, np.nan), where=spans > 0)
    defined = gold[..., :-1] > 0
    number = defined.sum(-1)
    total = np.where(defined, f[..., :-1], 0.0).sum(-1)
    macro = np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0)
    return np.concatenate([f, macro[..., None]], axis=-1)


class Bootstrap:
    """Replicates in which each doc has a random weight, from a Poisson distribution with mean 1.

    That is the bootstrap over docs, except that their number varies a little; it needs no doc twice (Chamandy,
    Muralidharan, Najmi and Naidu 2012, "Estimating uncertainty for massive data streams"). Equal seeds give equal
    weights: whatever is added together, such as the counts of two pipelines, is resampled together.
    """

    def __init__(self, shape: tuple[int, ...], *, seed: int = 0) -> None:
        """Take the shape of a doc's counts."""
        self.sums = np.zeros((REPLICATES, *shape))
        self._docs = np.zeros((*shape[:-2], shape[-2] + 2))  # those that have spans of a label, or of any
        self._rng = np.random.default_rng(seed)

    def add(self, docs: np.ndarray) -> None:
        """Add the counts of some docs, of the shape (docs, *shape)."""
        weights = self._rng.poisson(1.0, (REPLICATES, len(docs))).astype(float)
        self.sums += np.tensordot(weights, docs.astype(float), 1)
        found = docs.sum(-1) > 0
        anything = found.any(-1, keepdims=True)
        self._docs += np.concatenate([found, anything, anything], axis=-1).sum(0)

    def f_scores(self, labels: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Compute what `f_scores` gives for each replicate; NaN where fewer docs than FEWEST have any span.

        labels (np.ndarray): which labels to take, as booleans.
        """
        docs = np.concatenate([self._docs[..., :-2][..., labels], self._docs[..., -2:]], axis=-1)
        return np.where(docs >= FEWEST, f_scores(self.sums[..., labels, :]), np.nan)


class Swaps:
    """Replicates in which two pipelines' counts of each doc are swapped, or not, as if only chance made a difference.

    The paired approximate randomization test (Noreen 1989; Yeh 2000, "More accurate tests for the statistical
    significance of result differences").
    """

    def __init__(self, shape: tuple[int, ...], *, seed: int = 0) -> None:
        """Take the shape of a doc's counts."""
        self.total = np.zeros((2, *shape))
        self.moved = np.zeros((SWAPS, *shape))
        self._rng = np.random.default_rng(seed)

    def add(self, base: np.ndarray, other: np.ndarray) -> None:
        """Add the counts of some docs, each of the shape (docs, *shape)."""
        swapped = self._rng.integers(0, 2, (SWAPS, len(base)), np.int8).astype(float)
        self.moved += np.tensordot(swapped, (other - base).astype(float), 1)
        self.total += base.sum(0), other.sum(0)

    def p_values(self) -> np.ndarray:
        """Compute two-sided p for each F that `f_scores` gives; NaN where one of the two has no F."""
        base, other = self.total
        seen = np.abs(f_scores(other) - f_scores(base))
        by_chance = np.abs(f_scores(other - self.moved) - f_scores(base + self.moved))
        # Where a swap leaves one without any span there is no difference to compare: it counts against significance.
        as_large = ~(by_chance < seen - TIE)
        return np.where(np.isnan(seen), np.nan, (1 + as_large.sum(0)) / (SWAPS + 1))


def interval(replicates: np.ndarray) -> np.ndarray:
    """Return the lower and the upper bound between which CONFIDENCE of the replicates lie, in columns.

    replicates (np.ndarray): of the shape (replicates, columns); NaN is left out.
    """
    bounds = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    empty = np.isnan(replicates).all(0)
    return np.where(empty, np.nan, np.nanquantile(np.where(empty, 0.0, replicates), bounds, axis=0))


def wilson_interval(right: int, predicted: int, gold: int) -> tuple[float, float]:
    """Compute an interval of F where the bootstrap has none, as all spans are right, or none is.

    Of the distinct spans, predicted or gold, a share is in both; F grows with it: F = 2 * share / (1 + share). Wilson's
    interval is that of the share, with CONFIDENCE. It takes spans for independent of each other, so it is rather too
    narrow.

    The formula: Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    n = predicted + gold - right
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (right + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * sqrt(right * (n - right) / n + z**2 / 4)
    low, high = (2 * share / (1 + share) for share in (max(0.0, middle - half), min(1.0, middle + half)))
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979); NaN stays, and isn't counted."""
    tests = sorted((p, place) for place, p in enumerate(p_values) if not np.isnan(p))
    corrected = [float("nan")] * len(p_values)
    largest = 0.0
    for before, (p, place) in enumerate(tests):
        largest = max(largest, min(1.0, (len(tests) - before) * p))
        corrected[place] = largest
    return corrected

"""Intervals of scores over docs, because spans of one doc are dependent.

A doc is a unit of the corpus (`annotation.Annotation`): a text, or a document of several texts. Its counts have the
shape (labels, 3): right, predicted and gold spans. Docs are streamed twice, because leaving one out needs the totals.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

BLOCK = 64  # docs per addition
CONFIDENCE = 0.95
MAX_TERM = 0.02  # of the series for Student's t, the last term as a share of the normal quantile
MIN_UNITS = 5  # docs for an interval; docs/benchmarks.md says how often it holds


def f_scores(counts: np.ndarray) -> np.ndarray:
    """Compute F1 from counts: each label's, micro, and macro.

    counts (np.ndarray): shape (..., labels, 3).
    RETURNS (np.ndarray): shape (..., labels + 2); NaN without spans. The macro average is over labels with gold: the F1
        of others can only be 0.
    """
    right, predicted, gold = np.moveaxis(np.concatenate([counts, counts.sum(-2, keepdims=True)], axis=-2), -1, 0)
    spans = predicted + gold
    f = np.divide(2 * right, spans, out=np.full(spans.shape, np.nan), where=spans > 0)
    defined = gold[..., :-1] > 0
    number = defined.sum(-1)
    total = np.where(defined, f[..., :-1], 0.0).sum(-1)
    macro = np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0)
    return np.concatenate([f, macro[..., None]], axis=-1)


def sum_by_unit(counts: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Sum the counts of texts by unit; see `stream_units`.

    counts (np.ndarray): shape (texts, ...).
    """
    return np.concatenate([*stream_units([counts], units)])


def stream_units(blocks: Iterable[np.ndarray], units: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the counts of units: single texts as they come, then the sums of others, which are held.

    blocks (Iterable[np.ndarray]): counts of some texts each.
    units (np.ndarray): shape (texts,); numbers of their units, from 0.
    """
    shared = np.bincount(units) > 1
    place, sums = np.cumsum(shared) - 1, np.zeros(0, int)
    for counts in blocks:
        own, units = units[: len(counts)], units[len(counts) :]
        sums = sums if len(sums) else np.zeros((shared.sum(), *counts.shape[1:]), counts.dtype)
        several = shared[own]
        np.add.at(sums, place[own[several]], counts[several])
        yield counts[~several]
    yield from (sums[start : start + BLOCK] for start in range(0, len(sums), BLOCK))


class Jackknife:
    """Jackknife over docs (Tukey 1958; Efron and Stein 1981).

    docs (np.ndarray): shape (labels + 2); docs with spans of each label, then of any label (twice).
    """

    def __init__(self, total: np.ndarray, of: Callable[[np.ndarray], np.ndarray] = f_scores) -> None:
        self.total, self.value, self._of = total, of(total), of
        self.docs, self._squares = np.zeros(self.value.shape[-1]), np.zeros(self.value.shape)

    def add(self, docs: np.ndarray) -> None:
        """Leave out each of some docs, shape (docs, *total.shape)."""
        gaps = self._of(self.total - docs) - self.value
        self._squares += np.nansum(gaps**2, axis=0)
        has_spans = docs.sum(-1) > 0
        has_spans = has_spans.any(axis=tuple(range(1, has_spans.ndim - 1)))  # in one of several pipelines
        anything = has_spans.any(-1, keepdims=True)
        self.docs += np.concatenate([has_spans, anything, anything], axis=-1).sum(0)

    def errors(self) -> np.ndarray:
        """Compute standard errors, shape (labels + 2); NaN with spans in fewer than MIN_UNITS docs."""
        docs = np.maximum(self.docs, 1)
        return np.where(self.docs >= MIN_UNITS, np.sqrt((docs - 1) / docs * self._squares), np.nan)

    def interval(self, *, within: bool = False, tests: int = 1, runs: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Compute the interval's bounds, with CONFIDENCE, by Student's t with docs - 1 degrees of freedom.

        With runs, each of the two variances has its own quantile of t (Banerjee 1960, "Approximate confidence interval
        for linear functions of means of k populations when the population variances are not equal"): the coverage is at
        least CONFIDENCE, whichever variance is larger. With two or three trainings, Satterthwaite's (1946) degrees for
        the sum don't guarantee that. A seed's effect on single texts is in both variances, so the sum is rather too
        large.

        within (bool): keep to 0 to 1: symmetric in log-odds; a score of 0 or 1 has no interval. Otherwise keep to
            -1 to 1, as differences of scores do.
        runs (Sequence | None): variance of the value between trainings with other seeds, and its degrees of freedom,
            broadcast to the value's shape.
        tests (int): number of simultaneous intervals (Bonferroni).
        """
        half = students_t(self.docs - 1, tests) * self.errors()
        if runs:
            half = np.hypot(half, students_t(runs[1], tests) * np.sqrt(runs[0]))
        if not within:
            return np.clip(np.stack([self.value - half, self.value + half]), -1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds, half = np.log(self.value / (1 - self.value)), half / (self.value * (1 - self.value))
            bounds = 1 / (1 + np.exp(-np.stack([odds - half, odds + half])))
        return np.where((half > 0) & np.isfinite(odds), bounds, np.nan)


def students_t(degrees: np.ndarray, tests: int = 1) -> np.ndarray:
    """Compute the quantile of Student's t for CONFIDENCE in several tests; error below 0.3%.

    The series from the normal quantile is Abramowitz and Stegun's (1964), 26.7.5. If its last term isn't small, as with
    few degrees and many tests, the density is integrated.

    degrees (np.ndarray): any shape; fractions are allowed, and values below 1 count as 1.
    """
    tail = (1 - CONFIDENCE) / 2 / tests
    z = NormalDist().inv_cdf(1 - tail)
    n = np.maximum(degrees, 1)
    terms = [
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    ]
    quantile = z + sum(term / n**power for power, term in enumerate(terms, 1))
    rough = terms[-1] / n**4 > MAX_TERM * z
    quantile[rough] = [_integrate_t(few, tail) for few in n[rough].tolist()]
    return quantile


def _integrate_t(degrees: float, tail: float) -> float:
    """Return the quantile of Student's t with upper tail `tail`, by integrating its density over t = sinh(x)."""
    x = np.linspace(40, 0, 8001)  # with one degree, the density falls as exp(-x)
    density = np.cosh(x) * (1 + np.sinh(x) ** 2 / degrees) ** (-(degrees + 1) / 2)
    above = density.cumsum() - density / 2
    return float(np.sinh(np.interp(tail, above / above[-1] / 2, x)))


def wilson_interval(right: int, predicted: int, gold: int) -> tuple[float, float]:
    """Compute an interval of F1 if all spans are right, or none, where the jackknife has none.

    F1 = 2 * share / (1 + share), where the share is that of right spans among all distinct ones, predicted or gold; its
    interval is Wilson's. It assumes independent spans, so it is rather too narrow.
    """
    low, high = (2 * share / (1 + share) for share in wilson_share(right, predicted + gold - right))
    return low, high


def wilson_share(right: int, n: int) -> tuple[float, float]:
    """Compute Wilson's interval of a share, with CONFIDENCE, for `right` of `n`.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (right + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * sqrt(right * (n - right) / n + z**2 / 4)
    return max(0.0, middle - half), min(1.0, middle + half)

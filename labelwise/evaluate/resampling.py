"""Intervals of scores, by statistics over docs, because the spans of one doc have much in common.

A doc is a unit of the corpus (`annotation.Annotation`): a document, if it is several texts, or else a text. The counts
of a doc are an array of `labels` x 3: right, predicted and gold spans. Docs are streamed, twice, because leaving one
out needs the totals.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

BLOCK = 64  # docs that are added at a time
CONFIDENCE = 0.95
MAX_TERM = 0.02  # of the series for Student's t, the last term as a share of the normal quantile
MIN_UNITS = 5  # docs from which an interval is computed; docs/benchmarks.md says how often it holds


def f_scores(counts: np.ndarray) -> np.ndarray:
    """Compute F1 from counts: of each label, of all spans (micro average), and the mean of the labels (macro average).

    counts (np.ndarray): of any shape that ends with (labels, 3).
    RETURNS (np.ndarray): of the same shape, except that it ends with (labels + 2); NaN where there are no spans. The
        macro average is over the labels that have gold, because the F1 of others can only be 0.
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

    counts (np.ndarray): of any shape that begins with (texts).
    """
    return np.concatenate([*stream_units([counts], units)])


def stream_units(blocks: Iterable[np.ndarray], units: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the counts of units: of single texts as they come, then the sums of the others, which alone are held.

    blocks (Iterable[np.ndarray]): the counts of some texts each.
    units (np.ndarray): the number of each text's unit, from 0.
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
    """Measure how scores vary with the docs by leaving each out once (Tukey 1958; Efron and Stein 1981).

    value (np.ndarray): the scores of all docs.
    docs (np.ndarray): the number of docs that have spans of each label, and, twice, of any.
    """

    def __init__(self, total: np.ndarray, of: Callable[[np.ndarray], np.ndarray] = f_scores) -> None:
        self.total, self.value, self._of = total, of(total), of
        self.docs, self._squares = np.zeros(self.value.shape[-1]), np.zeros(self.value.shape)

    def add(self, docs: np.ndarray) -> None:
        """Leave out each of some docs, of the shape (docs, *total.shape)."""
        gaps = self._of(self.total - docs) - self.value
        self._squares += np.nansum(gaps**2, axis=0)
        found = docs.sum(-1) > 0
        found = found.any(axis=tuple(range(1, found.ndim - 1)))  # in one of several pipelines
        anything = found.any(-1, keepdims=True)
        self.docs += np.concatenate([found, anything, anything], axis=-1).sum(0)

    def errors(self) -> np.ndarray:
        """Compute the standard errors; NaN where fewer docs than MIN_UNITS have any span."""
        docs = np.maximum(self.docs, 1)
        return np.where(self.docs >= MIN_UNITS, np.sqrt((docs - 1) / docs * self._squares), np.nan)

    def interval(self, *, within: bool = False, tests: int = 1, runs: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Compute the lower and upper bounds, with CONFIDENCE, by Student's t with a degree less than docs.

        With runs, each of the two variances has its own quantile of t (Banerjee 1960, "Approximate confidence interval
        for linear functions of means of k populations when the population variances are not equal"): the interval
        holds at least so often, whichever variance is larger. Degrees for the sum (Satterthwaite 1946) don't, with two
        or three trainings. How a seed acts on single texts is in both variances: the sum is rather too large.

        within (bool): keep to 0 to 1: the interval is symmetric in log-odds, because F1 near 1 can't be much higher; a
            score of 0 or 1 has none.
        runs (Sequence | None): variance of the value between trainings with other seeds, and its degrees, of shapes
            that broadcast to the value's.
        tests (int): the number of intervals that hold together with CONFIDENCE (Bonferroni).
        """
        half = students_t(self.docs - 1, tests) * self.errors()
        if runs:
            half = np.hypot(half, students_t(runs[1], tests) * np.sqrt(runs[0]))
        if not within:
            return np.stack([self.value - half, self.value + half])
        with np.errstate(divide="ignore", invalid="ignore"):
            odds, half = np.log(self.value / (1 - self.value)), half / (self.value * (1 - self.value))
            bounds = 1 / (1 + np.exp(-np.stack([odds - half, odds + half])))
        return np.where((half > 0) & np.isfinite(odds), bounds, np.nan)


def students_t(degrees: np.ndarray, tests: int = 1) -> np.ndarray:
    """Compute the quantile of Student's t for CONFIDENCE in several tests together; off by less than 0.3%.

    The series from the normal quantile is of Abramowitz and Stegun (1964), 26.7.5. Where its last term isn't small, as
    for few degrees and many tests, the density is integrated.

    degrees (np.ndarray): any shape; fractions are allowed, and less than 1 counts as 1.
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
    found = z + sum(term / n**power for power, term in enumerate(terms, 1))
    rough = terms[-1] / n**4 > MAX_TERM * z
    found[rough] = [_integrate_t(few, tail) for few in n[rough].tolist()]
    return found


def _integrate_t(degrees: float, tail: float) -> float:
    """Return the quantile of Student's t with upper tail `tail`, by integrating its density over t = sinh(x)."""
    x = np.linspace(40, 0, 8001)  # one degree's density falls as exp(-x)
    density = np.cosh(x) * (1 + np.sinh(x) ** 2 / degrees) ** (-(degrees + 1) / 2)
    above = density.cumsum() - density / 2
    return float(np.sinh(np.interp(tail, above / above[-1] / 2, x)))


def wilson_interval(right: int, predicted: int, gold: int) -> tuple[float, float]:
    """Compute an interval of F1 where the jackknife has none, because all spans are right, or none is.

    F1 = 2 * share / (1 + share), where the share is that of right spans among all distinct ones, predicted or gold; its
    interval is Wilson's. It takes spans for independent of each other, so it is rather too narrow.
    """
    low, high = (2 * share / (1 + share) for share in wilson_share(right, predicted + gold - right))
    return low, high


def wilson_share(right: int, n: int) -> tuple[float, float]:
    """Compute Wilson's interval of a share, with CONFIDENCE, from a sample in which `right` of `n` are right.

    The formula: Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (right + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * sqrt(right * (n - right) / n + z**2 / 4)
    return max(0.0, middle - half), min(1.0, middle + half)

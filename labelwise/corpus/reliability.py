"""Whether probabilities can be trusted: of the spans with a probability of 0.8, eight of ten should be right.

Guo et al., On Calibration of Modern Neural Networks (ICML 2017), equation 5: spans are put into ten bins of equal
width; the expected calibration error is the mean gap between a bin's mean probability and its share of right spans,
weighted by its number of spans.
"""

from collections.abc import Iterable

import numpy as np

BINS = 10


class Reliability:
    """Counts spans by probability; only the bins are kept."""

    def __init__(self, spans: Iterable[tuple[float, bool]] = ()) -> None:
        """Start with some spans, or empty."""
        self._sums = np.zeros((BINS, 3))  # spans, probabilities, right ones
        self.add(spans)

    def add(self, spans: Iterable[tuple[float, bool]]) -> None:
        """Count spans, each with its probability, and whether it is right."""
        for probability, right in spans:
            self._sums[min(int(probability * BINS), BINS - 1)] += (1, probability, right)

    def error(self) -> float | None:
        """Compute the expected calibration error; None without any span."""
        total = self._sums[:, 0].sum()
        return float(np.abs(self._sums[:, 1] - self._sums[:, 2]).sum() / total) if total else None

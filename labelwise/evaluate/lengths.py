"""Scores by length: of spans, as long ones are found less often, and of texts, as some are cut for a transformer.

A length is the number of words between spaces. A span that was found is of its own length, right or wrong.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence

import numpy as np

from labelwise.common.spans import SpanKey
from labelwise.evaluate.scores import Scores, prf

SPANS, TEXTS = (1, 2, 3, 4, 6), (0, 50, 100, 200, 400)  # the least words of each class


class Lengths:
    """Counts spans by length."""

    def __init__(self) -> None:
        """Start empty."""
        self._spans = np.zeros((len(SPANS), 3), int)
        self._texts = np.zeros((len(TEXTS), 3), int)

    def add(self, text: str, predicted: Collection[SpanKey], gold: Collection[SpanKey]) -> None:
        """Count the spans of a text, each once."""
        here = _class(TEXTS, text)
        for column, spans in enumerate((set(predicted) & set(gold), predicted, gold)):
            self._texts[here, column] += len(spans)
            for start, end, _ in spans:
                self._spans[_class(SPANS, text[start:end]), column] += 1

    def spans(self) -> dict[str, Scores]:
        """Compute the scores of spans by their length."""
        return _scores(SPANS, self._spans)

    def texts(self) -> dict[str, Scores]:
        """Compute the scores of all spans by the length of their texts."""
        return _scores(TEXTS, self._texts)


def _class(least: Sequence[int], text: str) -> int:
    return max(bisect_right(least, len(text.split())) - 1, 0)


def _scores(least: Sequence[int], counts: np.ndarray) -> dict[str, Scores]:
    """Compute the scores of the classes that have spans, by name."""
    ends = [*(after - 1 for after in least[1:]), None]
    names = [
        f"{first} or more" if last is None else f"{first}" if first == last else f"{first} to {last}"
        for first, last in zip(least, ends, strict=True)
    ]
    return {name: prf(*row) for name, row in zip(names, counts.tolist(), strict=True) if any(row)}

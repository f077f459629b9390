"""Pairs of gold and predicted spans of a text.

Each span is in at most one pair. Pairs are made in this order:

1. the same span with the same label: right;
2. the same span with another label;
3. overlapping spans with the same label: wrong boundaries;
4. overlapping spans with two labels.

Pairs that share the most characters come first. Unpaired gold is missed, and unpaired predictions are spurious.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from labelwise.base.text import SpanKey, overlapping_groups

Kind = Literal["right", "boundaries", "label", "missed", "spurious", "unscored", "nested"]  # the last two: `tables`


class SpanPair(NamedTuple):
    """A gold span and the prediction for it; either may be None."""

    gold: SpanKey | None
    predicted: SpanKey | None
    kind: Kind

    @property
    def about(self) -> SpanKey:
        """Return the gold span, or else the predicted one."""
        return self.gold or self.predicted or (0, 0, "")


def pair_spans(gold: Iterable[SpanKey], predicted: Iterable[SpanKey]) -> list[SpanPair]:
    """Pair the spans of a text, in text order."""
    gold, predicted = set(gold), set(predicted)
    pairs = [SpanPair(span, span, "right") for span in gold & predicted]
    free, unused = gold - predicted, predicted - gold
    candidates = [
        (_rank(one, other), one, other)
        for group, others in overlapping_groups(free, unused)
        for one in group
        for other in others
        if one[0] < other[1] and other[0] < one[1]
    ]
    for _, one, other in sorted(candidates):
        if one in free and other in unused:
            pairs.append(SpanPair(one, other, "boundaries" if one[2] == other[2] else "label"))
            free.remove(one)
            unused.remove(other)
    pairs += [SpanPair(span, None, "missed") for span in free]
    pairs += [SpanPair(None, span, "spurious") for span in unused]
    return sorted(pairs, key=lambda pair: (pair.about, pair.predicted or pair.about))


def _rank(gold: SpanKey, predicted: SpanKey) -> tuple[int, int]:
    same_span, same_label = gold[:2] == predicted[:2], gold[2] == predicted[2]
    shared = min(gold[1], predicted[1]) - max(gold[0], predicted[0])
    return 0 if same_span else 1 if same_label else 2, -shared

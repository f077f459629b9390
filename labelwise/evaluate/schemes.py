"""The partial schemes of SemEval 2013 (task 9.1), as the package nervaluate computes them.

"strict": span and label; "exact": the span, whatever its label; "partial": half a point for a span that overlaps,
whatever its label; "type": the label, of spans that overlap. To nervaluate, spans overlap if they share one percent of
the gold span, which matters for those of more than a hundred characters.

Nervaluate compares every span of a doc with every other. Only spans that overlap matter to each other, so it is given
groups of those, with offsets from the group's own start; equal groups, such as a span that is right, are computed once.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from nervaluate import Evaluator
from nervaluate.entities import EvaluationResult

from labelwise.common.spans import SpanKey, overlapping_groups
from labelwise.evaluate.scores import SchemeScores

SCHEMES = {"strict": "strict", "exact": "exact", "partial": "partial", "type": "ent_type"}  # ours, nervaluate's
COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")
ALL = ""  # in place of a label

Spans = tuple[SpanKey, ...]
CountKey = tuple[str, str, str]  # label, scheme, count


class SchemeCounts:
    """Counts of spans by label and scheme; those of any docs add up.

    counts (Counter): by label, or ALL, by scheme, and by one of COUNTS. A label's own counts see the spans of that
        label alone, so that a span with a wrong label is missed for the one and spurious for the other.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.counts: Counter[CountKey] = Counter()

    def add(self, predicted: Iterable[SpanKey], gold: Iterable[SpanKey]) -> None:
        """Count the spans of a doc, each once; the predicted ones don't overlap."""
        for group in overlapping_groups(predicted, gold):
            for place, n in evaluate_group(*from_zero(*group)):
                self.counts[place] += n

    def scores(self, label: str = ALL) -> dict[str, SchemeScores]:
        """Compute the scores of each scheme; None where there are no spans."""
        return {scheme: _scores(scheme, [self.counts[label, scheme, name] for name in COUNTS]) for scheme in SCHEMES}


def from_zero(predicted: Iterable[SpanKey], gold: Iterable[SpanKey]) -> tuple[Spans, Spans]:
    """Move a group of spans, so that the first begins at 0."""
    sides = tuple(predicted), tuple(gold)
    first = min(start for side in sides for start, _, _ in side)
    moved = [tuple((start - first, end - first, label) for start, end, label in side) for side in sides]
    return moved[0], moved[1]


@lru_cache(maxsize=2**12)
def evaluate_group(predicted: Spans, gold: Spans) -> list[tuple[CountKey, int]]:
    """Let nervaluate count a group; zeros are left out."""
    labels = sorted({label for _, _, label in predicted + gold})
    # For nervaluate, a span's end is its last character.
    gold_doc, predicted_doc = (
        [{"start": start, "end": end - 1, "label": label} for start, end, label in spans] for spans in (gold, predicted)
    )
    results = Evaluator([gold_doc], [predicted_doc], tags=labels, loader="dict").evaluate()
    by_label = {ALL: results["overall"], **results["entities"]}
    return [
        ((label, ours, name), n)
        for label in (ALL, *labels)
        for ours, theirs in SCHEMES.items()
        for name in COUNTS
        if (n := getattr(by_label[label][theirs], name))
    ]


def _scores(scheme: str, counts: list[int]) -> SchemeScores:
    result = EvaluationResult(*counts)
    result.compute_metrics(partial_or_type=scheme in ("partial", "type"))
    p, r, f = (result.precision, result.recall, result.f1) if sum(counts) else (None, None, None)
    return SchemeScores(p, r, f, **dict(zip(COUNTS, counts, strict=True)))

"""Score predicted spans against gold: counts that add up, label by label.

Spans are compared in characters: one is right if start, end and label are. Two kinds of gold are counted:

1. "all gold": every accepted span. One that the tokenizer or the flat projection lost counts as missed, so that losing
   gold can't improve a score.
2. "flat gold": the entities that a pipeline could be trained on.

A label is scored only on texts that are complete for it, and elsewhere on the spans that were judged: what spaCy's
scorer does with missing values (it ignores predictions, but counts gold) would make precision too high there.
"""

from collections import Counter
from collections.abc import Sequence
from math import isnan

import numpy as np

from labelwise.common.reliability import Reliability
from labelwise.common.spans import SpanKey, overlapping_groups
from labelwise.corpus.seen_texts import SeenTexts
from labelwise.evaluate.mistakes import Mistakes
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.resampling import BLOCK, Bootstrap, interval, wilson_interval
from labelwise.evaluate.scores import AllScores, Bin, Details, Errors, Metrics, Seen, count, prf, score_table
from labelwise.evaluate.uncovered import Rates

MOST_FREQUENT = 20  # mistakes of a kind
BOUNDARIES = 5  # wrong ones of a label


class Scoring:
    """Scores docs one after another; nothing is kept of them but counts.

    labels (Sequence[str]): those of the corpus; predictions of others can't be judged.
    seen (SeenTexts | None): the texts that the pipeline was trained on, if it has their digests.
    texts (int): docs so far.
    unscored (int): predictions that can't be judged.
    """

    def __init__(self, labels: Sequence[str], seen: SeenTexts | None = None) -> None:
        """Start empty."""
        self.labels = labels
        self.seen = seen
        self.texts = self.unscored = self._seen_texts = 0
        self._unjudged: Counter[str] = Counter()
        self._all_gold = np.zeros((len(labels), 3), int)
        self._seen_gold = np.zeros((len(labels), 3), int)
        self._flat_gold = np.zeros((len(labels), 3), int)
        self._bootstrap = Bootstrap(self._all_gold.shape)
        self._block: list[np.ndarray] = []
        self._has_found = self._gold_overlaps = False
        self._all_spans = np.zeros((len(labels), 3), int)
        self._reliability = Reliability()
        self._rates = Rates()
        self._mistakes = Mistakes()

    def add(self, doc: PredictedDoc) -> None:
        """Count a doc."""
        found = len(doc.predicted)
        doc = doc.only(self.labels)
        predicted, gold = doc.scored(doc.predicted), doc.scored(doc.gold)
        counts = count(predicted, gold, self.labels)
        self.texts += 1
        self.unscored += found - len(predicted)
        self._unjudged.update(label for *_, label in {*doc.predicted} - predicted)
        self._all_gold += counts
        if self.seen and self.seen.has(doc.key):
            self._seen_texts += 1
            self._seen_gold += counts
        predicted_flat, flat = (doc.scored(spans, doc.entities) for spans in (doc.predicted, doc.entities))
        self._flat_gold += count(predicted_flat, flat, self.labels)
        self._mistakes.add(doc)
        self._add_found(doc, gold)
        self._rates.add(doc, self.labels)
        self._block.append(counts)
        if len(self._block) == BLOCK:
            self._resample()

    def _add_found(self, doc: PredictedDoc, gold: set[SpanKey]) -> None:
        """Count all spans, which may overlap, and their probabilities."""
        self._has_found |= bool(doc.found)
        self._gold_overlaps |= any(len(group) > 1 for group, _ in overlapping_groups(gold, ()))
        spans = {(start, end, label): p for start, end, label, p in doc.found}
        scored = doc.scored(doc.all_spans())
        self._all_spans += count(scored, gold, self.labels)
        self._reliability.add((p, span in gold) for span, p in spans.items() if span in scored)

    def metrics(self) -> Metrics:
        """Compute the scores, the same for equal docs, once all have been added."""
        self._resample()
        without = prf(*(self._all_gold - self._seen_gold).sum(0).tolist()).f
        return Metrics(
            texts=self.texts,
            all_gold=_with_intervals(self._all_gold, self._bootstrap, self.labels),
            flat_gold=score_table(self._flat_gold, self.labels),
            all_spans=score_table(self._all_spans, self.labels) if self._has_found and self._gold_overlaps else None,
            calibration_error=self._reliability.error(),
            unscored=self.unscored,
            errors=self._errors(),
            seen=self.seen and Seen(self._seen_texts, without, self.seen.whole),
        )

    def _errors(self) -> dict[str, Errors]:
        errors = {}
        for label, (right, predicted, gold) in zip(self.labels, self._all_gold.tolist(), strict=True):
            both = self._mistakes.boundaries[label]
            errors[label] = Errors(right, gold - right - both, predicted - right - both, both, self._unjudged[label])
        return errors

    def details(self) -> Details:
        """Return what is too much for a metric: the confusion of labels, and frequent mistakes."""
        return Details(
            confusion={label: dict(sorted(row.items())) for label, row in sorted(self._mistakes.confusion.items())},
            frequent=self._mistakes.frequent(MOST_FREQUENT),
            reliability=[Bin(*found) for found in self._reliability.bins()],
            uncovered=self._rates.rates(),
            wrong_boundaries=self._mistakes.wrong_boundaries(BOUNDARIES),
        )

    def _resample(self) -> None:
        if self._block:
            self._bootstrap.add(np.stack(self._block))
            self._block.clear()


def _with_intervals(counts: np.ndarray, bootstrap: Bootstrap, labels: Sequence[str]) -> AllScores:
    """Compute scores from counts, with intervals; where no replicate differs from another, they are Wilson's."""
    scores = score_table(counts, labels)
    bounds = interval(bootstrap.f_scores()).T.tolist()
    rows = [*(scores.labels[label] for label in labels), scores, scores.macro]
    totals = [*counts.tolist(), counts.sum(0).tolist(), None]
    for row, total, (low, high) in zip(rows, totals, bounds, strict=True):
        if row.f is None or isnan(low):
            continue
        if low < high:
            row.f_low, row.f_high = low, high
        elif total:
            row.f_low, row.f_high = wilson_interval(*total)
    return scores

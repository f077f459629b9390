"""Score predicted spans against gold: counts that add up, label by label.

Spans are compared in characters: one is right if start, end and label are. Two kinds of gold are counted:

1. "all gold": every accepted span. One that the tokenizer or the flat projection lost is missed, so that losing gold
   can't improve a score.
2. "flat gold": the entities that a pipeline could be trained on.

A label is scored only on texts that are complete for it, and elsewhere on the spans that were judged: what spaCy's
scorer does with missing values (it ignores predictions, but counts gold) would make precision too good there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from labelwise.mistakes import Mistakes
from labelwise.offsets import SpanKey
from labelwise.predictions import PredictedDoc
from labelwise.resampling import BLOCK, Bootstrap, f_scores, interval
from labelwise.schemes import SCHEMES, SchemeCounts

Scores = dict[str, Any]
MOST_FREQUENT = 20  # mistakes of a kind


class Scoring:
    """Scores docs one after another; nothing is kept of them but counts.

    labels (Sequence[str]): those of the corpus; predictions of others can't be told right or wrong.
    texts (int): docs so far.
    unscored (int): predictions that can't be told right or wrong.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        """Begin with nothing."""
        self.labels = labels
        self.texts = self.unscored = 0
        self._all_gold = np.zeros((len(labels), 3), int)
        self._flat_gold = np.zeros((len(labels), 3), int)
        self._bootstrap = Bootstrap(self._all_gold.shape)
        self._block: list[np.ndarray] = []
        self._schemes = SchemeCounts()
        self._mistakes = Mistakes()

    def add(self, doc: PredictedDoc) -> None:
        """Count a doc."""
        found = len(doc.predicted)
        doc = doc.only(self.labels)
        predicted, gold = doc.scored(doc.predicted), doc.scored(doc.gold)
        counts = count(predicted, gold, self.labels)
        self.texts += 1
        self.unscored += found - len(predicted)
        self._all_gold += counts
        self._flat_gold += count(predicted, doc.scored(doc.entities), self.labels)
        self._schemes.add(predicted, gold)
        self._mistakes.add(doc)
        self._block.append(counts)
        if len(self._block) == BLOCK:
            self._resample()

    def scores(self) -> Scores:
        """Compute the scores, the same for equal docs, once all have been added."""
        self._resample()
        schemes = self._schemes.scores()
        return {
            "texts": self.texts,
            "unscored": self.unscored,
            "all_gold": _with_intervals(score_table(self._all_gold, self.labels), self._bootstrap, self.labels),
            "flat_gold": score_table(self._flat_gold, self.labels),
            "schemes": {name: {key: schemes[name][key] for key in "prf"} for name in SCHEMES},
        }

    def details(self) -> dict[str, Any]:
        """Give what is too much for a metric: schemes by label, the confusion of labels, and frequent mistakes."""
        return {
            "schemes": {label: self._schemes.scores(label) for label in self.labels},
            "confusion": {label: dict(sorted(row.items())) for label, row in sorted(self._mistakes.confusion.items())},
            "frequent": self._mistakes.frequent(MOST_FREQUENT),
        }

    def _resample(self) -> None:
        if self._block:
            self._bootstrap.add(np.stack(self._block))
            self._block.clear()


def count(predicted: Collection[SpanKey], gold: Collection[SpanKey], labels: Sequence[str]) -> np.ndarray:
    """Count the spans of a doc: right, predicted and gold ones for each label, of the shape (labels, 3).

    predicted, gold (Collection): spans of these labels alone, each once.
    """
    counts = np.zeros((len(labels), 3), int)
    place = {label: number for number, label in enumerate(labels)}
    for column, spans in enumerate((set(predicted) & set(gold), predicted, gold)):
        for _, _, label in spans:
            counts[place[label], column] += 1
    return counts


def score_table(counts: np.ndarray, labels: Sequence[str]) -> Scores:
    """Compute the scores of all spans (micro average), the mean of the labels (macro average), and each label's.

    counts (np.ndarray): right, predicted and gold, for each label.
    """
    by_label = {label: prf(*row) for label, row in zip(labels, counts.tolist(), strict=True)}
    return {**prf(*counts.sum(0).tolist()), "macro": macro(by_label.values()), "labels": by_label}


def prf(right: int, predicted: int, gold: int) -> Scores:
    """Compute precision, recall and their harmonic mean with the very formula of spaCy's PRFScore (spacy/scorer.py).

    RETURNS (dict): "p", "r" and "f", None where there is no span at all, and "support", the number of gold spans.
    """
    if not predicted and not gold:
        return {"p": None, "r": None, "f": None, "support": 0}
    p, r = right / (predicted + 1e-100), right / (gold + 1e-100)
    return {"p": p, "r": r, "f": 2 * (p * r / (p + r + 1e-100)), "support": gold}


def macro(scores: Iterable[Mapping[str, Any]]) -> Scores:
    """Average scores over the labels that have any; None if none has."""
    defined = [score for score in scores if score["f"] is not None]
    return {key: sum(score[key] for score in defined) / len(defined) if defined else None for key in "prf"}


def _with_intervals(scores: Scores, bootstrap: Bootstrap, labels: Sequence[str]) -> Scores:
    low, high = interval(f_scores(bootstrap.sums))
    rows = [*(scores["labels"][label] for label in labels), scores, scores["macro"]]
    for row, *bounds in zip(rows, low.tolist(), high.tolist(), strict=True):
        row |= dict(zip(("f_low", "f_high"), (None if row["f"] is None else bound for bound in bounds), strict=True))
    return scores

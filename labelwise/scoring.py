"""Score predicted spans against gold: counts that add up, by label.

Spans are compared in characters: one is right if start, end and label are. Two kinds of gold are counted:

1. "all gold": every accepted span. One that the tokenizer or the flat projection lost is missed, so that losing gold
   can't improve a score.
2. "flat gold": the entities that the model could be trained on.

A label is scored only on texts that are complete for it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from spacy.tokens import Doc

from labelwise.annotation import all_gold, entities, uncovered
from labelwise.offsets import SpanKey

Scores = dict[str, float | int]


class Counts(msgspec.Struct):
    """Counts by label; those of any documents can be added up.

    right (Counter[str]): predicted spans that are gold.
    predicted, gold (Counter[str]): spans.
    """

    right: Counter[str] = msgspec.field(default_factory=Counter)
    predicted: Counter[str] = msgspec.field(default_factory=Counter)
    gold: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, predicted: Iterable[SpanKey], gold: Iterable[SpanKey]) -> None:
        """Count the spans of one document."""
        predicted, gold = set(predicted), set(gold)
        self.right.update(label for _, _, label in predicted & gold)
        self.predicted.update(label for _, _, label in predicted)
        self.gold.update(label for _, _, label in gold)

    def scores(self, labels: Sequence[str]) -> dict[str, Any]:
        """Compute the scores over all labels (micro average) and for each."""
        by_label = {label: prf(self.right[label], self.predicted[label], self.gold[label]) for label in labels}
        return {**prf(self.right.total(), self.predicted.total(), self.gold.total()), "labels": by_label}


def prf(right: int, predicted: int, gold: int) -> Scores:
    """Compute precision, recall and their harmonic mean; 0 where there is nothing to divide by.

    RETURNS (dict): "p", "r", "f", rounded to 4 digits, and "support", the number of gold spans.
    """
    p = right / predicted if predicted else 0.0
    r = right / gold if gold else 0.0
    f = 2 * right / (predicted + gold) if predicted + gold else 0.0
    return {"p": round(p, 4), "r": round(r, 4), "f": round(f, 4), "support": gold}


def covered(spans: Iterable[SpanKey], gold: Doc) -> set[SpanKey]:
    """Leave out the spans of labels that a merged Doc isn't complete for."""
    unscored = uncovered(gold)
    return {span for span in spans if span[2] not in unscored}


def count_docs(pairs: Iterable[tuple[Doc, Doc]]) -> tuple[Counts, Counts]:
    """Count (predicted, gold) Docs against all gold and against flat gold; nothing is kept of them."""
    against_all, against_flat = Counts(), Counts()
    for predicted, gold in pairs:
        found = covered(entities(predicted), gold)
        against_all.add(found, covered(all_gold(gold), gold))
        against_flat.add(found, covered(entities(gold), gold))
    return against_all, against_flat

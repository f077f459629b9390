"""Evaluation during training that streams: what `nlp.evaluate` computes, without holding the dev set.

Entities are counted as far as they can be judged. Of a text that is complete for all labels, as spaCy's `get_ner_prf`
does (spacy/scorer.py). Of another one, what its labels' coverage allows to judge counts, predictions and gold alike;
see `Annotation.evaluable`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from spacy.scorer import PRFScore
from spacy.tokens import Doc

from labelwise.corpus.annotation import SpanKey, entities
from labelwise.corpus.docbin_reader import MISSING, StoredDoc

SCORES = ("ents_f", "ents_p", "ents_r", "ents_macro_f")  # the scores that weights can be for
KINDS = ("tp", "fp", "fn")
Counts = Counter[tuple[str, str]]  # entities by label and kind


def count_entities(predicted: Iterable[tuple[StoredDoc, Doc]]) -> Counts:
    """Count the entities that are found, spurious and missed in predicted texts."""
    counts: Counts = Counter()
    for stored, doc in predicted:
        gold, found, annotation = stored.entities(), entities(doc), stored.annotation
        known = found if annotation.uncovered else without_missing(stored, found)
        can, may = annotation.evaluable(gold, gold), annotation.evaluable(known, gold)
        for kind, spans in zip(KINDS, (can & may, may - can, can - may), strict=True):
            counts.update((label, kind) for _, _, label in spans)
    return counts


def without_missing(stored: StoredDoc, spans: Iterable[SpanKey]) -> set[SpanKey]:
    """Leave out the spans on a token whose value is missing: gold without token boundaries touches it."""
    starts, ends = (offsets[stored.iob == MISSING] for offsets in stored.offsets())
    return {span for span in spans if not np.any((starts < span[1]) & (ends > span[0]))}


def scores_of(counts: Counts) -> dict[str, Any]:
    """Compute what spaCy's scorer of named entities gives, and the mean of the labels' F1, `ents_macro_f`.

    RETURNS (dict): None where there is nothing to compute it from.
    """
    if not counts:
        return dict.fromkeys((*SCORES, "ents_per_type"))
    labels = sorted({label for label, _ in counts})
    by_label = {label: PRFScore(**{kind: counts[label, kind] for kind in KINDS}) for label in labels}
    micro = sum(by_label.values(), PRFScore())
    return {
        "ents_p": micro.precision,
        "ents_r": micro.recall,
        "ents_f": micro.fscore,
        "ents_per_type": {label: count.to_dict() for label, count in by_label.items()},
        "ents_macro_f": sum(count.fscore for count in by_label.values()) / len(labels),
    }


def weighted_score(scores: Mapping[str, Any], weights: Mapping[str, float | None]) -> float:
    """Compute the score that decides which pipeline is the best.

    weights (Mapping): by score; None, or 0, for one that doesn't count, and may not be computed.
    """
    return sum((weight * (scores[name] or 0.0) for name, weight in weights.items() if weight), 0.0)

"""Streaming evaluation during training: `nlp.evaluate`'s scores, without holding dev.

Entities are counted if they can be scored: on a text complete for all labels as by spaCy's `get_ner_prf`
(spacy/scorer.py), else by `Annotation.evaluable`, predictions and gold alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc

from labelwise.base.counts import count_spans, score_table
from labelwise.corpus.annotation import SpanKey, entities
from labelwise.corpus.docbin_reader import MISSING, StoredDoc

SCORES = ("ents_f", "ents_p", "ents_r", "ents_macro_f")  # scores that can have weights


def count_entities(predicted: Iterable[tuple[StoredDoc, Doc]], labels: Sequence[str]) -> np.ndarray:
    """Count right, predicted and gold entities, shape (labels, 3); see `counts.count_spans`."""
    counts = np.zeros((len(labels), 3), int)
    for stored, doc in predicted:
        gold, predicted_entities, annotation = stored.entities(), entities(doc), stored.annotation
        known = predicted_entities if annotation.uncovered else without_missing(stored, predicted_entities)
        counts += count_spans(annotation.evaluable(gold, gold), annotation.evaluable(known, gold), labels)
    return counts


def without_missing(stored: StoredDoc, spans: Iterable[SpanKey]) -> set[SpanKey]:
    """Leave out spans on a token with the missing value, which misaligned gold touches."""
    starts, ends = (offsets[stored.iob == MISSING] for offsets in stored.offsets())
    return {span for span in spans if not np.any((starts < span[1]) & (ends > span[0]))}


def scores_of(counts: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Compute the scores of spaCy's NER scorer, and the mean F1 of labels, `ents_macro_f`.

    counts (np.ndarray): shape (labels, 3); right, predicted and gold entities.
    RETURNS (dict): None for undefined scores.
    """
    table = score_table(counts, labels)
    rows = {
        label: {key: getattr(row, key) for key in "prf"} for label, row in table.labels.items() if row.f is not None
    }
    return {f"ents_{key}": getattr(table, key) for key in "prf"} | {
        "ents_per_type": rows or None,
        "ents_macro_f": table.macro.f,
    }


def weighted_score(scores: Mapping[str, Any], weights: Mapping[str, float | None]) -> float:
    """Compute the score that selects the best pipeline.

    weights (Mapping): by score; None or 0 for unused scores, which may be missing.
    """
    return sum((weight * (scores[name] or 0.0) for name, weight in weights.items() if weight), 0.0)

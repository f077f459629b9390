"""Counts of spans by label: right, predicted and gold ones, those that annotators agree on; and scores of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from labelwise.offsets import SpanKey

Scores = dict[str, Any]


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
    """Average scores over the labels that have gold; None if none has."""
    defined = [score for score in scores if score["support"]]
    return {key: sum(score[key] for score in defined) / len(defined) if defined else None for key in "prf"}


def pairwise_f(both: int, spans: int) -> float | None:
    """Compute F between two annotators, whoever of them is taken for gold; None if neither marked anything.

    both (int): spans that both marked.
    spans (int): those of the one, and those of the other.
    The formula: Hripcsak and Rothschild (2005), "Agreement, the F-measure, and reliability in information retrieval".
    """
    return 2 * both / spans if spans else None


def agreement_scores(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    """Compute F of what the books of a merge have, by label.

    RETURNS (dict): for each label that any annotator marked, "f" and the number of "texts".
    """
    found = {label: pairwise_f(row.get("both", 0), row.get("spans", 0)) for label, row in counts.items()}
    return {label: {"f": f, "texts": counts[label].get("texts", 0)} for label, f in found.items() if f is not None}

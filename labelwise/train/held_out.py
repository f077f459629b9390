"""Fit a trained per-label recognizer on dev: its probabilities, and how readily it finds entities."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import predict_batches
from labelwise.train.dev_scores import count_entities
from labelwise.train.reader import make_reference
from spacy_per_label.calibrate import Fitted, Judged, annotate_shifted


def fit(
    nlp: Language,
    texts: Iterator[StoredDoc],
    shifts: Sequence[float],
    labels: Sequence[str],
    score: Callable[[np.ndarray], float],
) -> Fitted | None:
    """Choose a shift of the tag O, and fit slopes and intercepts for it; the recognizer gets both.

    texts (Iterator[StoredDoc]): those of dev, predicted once; nothing is kept of a text but numbers.
    shifts (Sequence[float]): those to choose from; of equally good ones, the first.
    labels (Sequence[str]): labels that are scored.
    score (Callable): scores counts of entities, shape (labels, 3).
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    ner: Any = nlp.get_pipe("ner")
    ner.cfg |= {"slopes": {}, "intercepts": {}}
    ner.cfg.pop("points", None)
    counts, judged = dict.fromkeys(shifts, np.zeros((len(labels), 3), int)), {shift: Judged() for shift in shifts}
    for batch, made in predict_batches(nlp, texts, len, without=["ner"]):
        docs = list(made)
        references = [make_reference(stored, nlp.vocab) for stored in batch]
        for shift in annotate_shifted(ner, docs, shifts):
            counts[shift] = counts[shift] + count_entities(zip(batch, docs, strict=True), labels)
            for doc, reference in zip(docs, references, strict=True):
                judged[shift].add(doc, reference, ner.spans_key)
    best = max(shifts, key=lambda shift: score(counts[shift]))
    fitted = judged[best].fit(ner.labels)
    ner.cfg |= {"outside": best} | (fitted.settings if fitted else {})
    return fitted

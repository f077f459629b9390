"""Calibrate the probabilities of a trained per-label recognizer on dev."""

from collections.abc import Iterator
from typing import Any

from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import predict_each
from labelwise.train.reader import make_reference
from spacy_per_label.calibrate import Fitted, Judged


def fit(nlp: Language, texts: Iterator[StoredDoc]) -> Fitted | None:
    """Fit and set the recognizer's slopes and intercepts.

    texts (Iterator[StoredDoc]): of dev; only numbers are kept.
    RETURNS (Fitted | None): None without a predicted span that annotators accepted, rejected or left out.
    """
    ner: Any = nlp.get_pipe("ner")
    ner.cfg |= {"slopes": {}, "intercepts": {}}
    ner.cfg.pop("points", None)
    reviewed = Judged()
    for stored, doc in predict_each(nlp, texts, len):
        reviewed.add(doc, make_reference(stored, nlp.vocab), ner.spans_key)
    fitted = reviewed.fit(ner.labels)
    ner.cfg |= fitted.settings if fitted else {}
    return fitted

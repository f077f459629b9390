"""Calibrate the probabilities of a trained per-label recognizer on dev."""

from collections.abc import Iterator
from typing import Any

from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import predict_each
from labelwise.train.reader import make_reference
from spacy_per_label.calibrate import Fitted, Judged


def fit(nlp: Language, texts: Iterator[StoredDoc]) -> Fitted | None:
    """Fit slopes and intercepts, which the recognizer gets.

    texts (Iterator[StoredDoc]): texts of dev; nothing is kept of a text but numbers.
    RETURNS (Fitted | None): None if nothing that was found can be judged.
    """
    ner: Any = nlp.get_pipe("ner")
    ner.cfg |= {"slopes": {}, "intercepts": {}}
    ner.cfg.pop("points", None)
    judged = Judged()
    for stored, doc in predict_each(nlp, texts, len):
        judged.add(doc, make_reference(stored, nlp.vocab), ner.spans_key)
    fitted = judged.fit(ner.labels)
    ner.cfg |= fitted.settings if fitted else {}
    return fitted

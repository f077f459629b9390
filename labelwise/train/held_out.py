"""Fit a trained per-label recognizer on dev: calibrate its probabilities, and choose operating points for goals."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language

from labelwise.corpus.docbin_reader import StoredDoc, read_docs
from labelwise.corpus.pipeline import predict_each
from labelwise.train.reader import make_reference
from spacy_per_label.calibrate import Fitted, Judged
from spacy_per_label.operating_point import Goal, OperatingPoints


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


def fit_points(nlp: Language, texts: Iterator[StoredDoc], goals: Mapping[str, Goal], corpus: Path) -> None:
    """Choose and set the operating points of a calibrated recognizer.

    texts (Iterator[StoredDoc]): of dev, predicted once; only numbers are kept.
    """
    ner: Any = nlp.get_pipe("ner")
    fitting = OperatingPoints(ner, goals, find_longest(corpus))
    ner.cfg["points"] = fitting.candidates
    for stored, doc in predict_each(nlp, texts, len):
        fitting.add(doc, make_reference(stored, nlp.vocab), stored.annotation.unit or None)
    ner.cfg["points"] = fitting.fit()


def find_longest(corpus: Path) -> dict[str, int]:
    """Return the length in tokens of each label's longest gold span in train."""
    longest: dict[str, int] = {}
    for stored in read_docs(corpus, "train"):
        for start, end, label in stored.gold:
            name = stored.strings[label]
            longest[name] = max(longest.get(name, 0), end - start)
    return longest

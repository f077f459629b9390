"""Texts with the spans that are to be handed back: a merged corpus's gold, or what a pipeline predicted."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import SPLITS, partitions_of, read_manifest
from labelwise.evaluate.predictions import PredictedDoc, read_predictions
from labelwise.text import SpanKey, text_key


class ExportDoc(NamedTuple):
    """A text with spans.

    name (str): of the document that it is; empty if it has none.
    key (str): digest of the text, in hexadecimal.
    spans (list[SpanKey]): sorted.
    scores (Mapping): the probabilities of spans, if there are any.
    unknown (Mapping[str, str]): the labels that the text isn't complete for.
    predicted (bool): a pipeline found the spans, and nobody has looked at them.
    shown (Sequence[str]): labels that annotators should be shown, used or not.
    split (str): the one that a declaration gives the text; empty if none does.
    """

    text: str
    name: str
    key: str
    spans: list[SpanKey]
    scores: Mapping[SpanKey, float]
    unknown: Mapping[str, str]
    predicted: bool = False
    shown: Sequence[str] = ()
    split: str = ""


def worth(doc: ExportDoc, label: str | None = None) -> float:
    """Say how much there is to learn from a prediction, of a label or of all; 0 for what isn't one.

    It is from 0 to 1 where spans have probabilities, by the least certain one; else the number of spans.
    """
    spans = [span for span in doc.spans if doc.predicted and label in (None, span[2])]
    if not doc.scores:
        return float(len(spans))
    return max((1 - abs(2 * doc.scores[span] - 1) for span in spans if span in doc.scores), default=0.0)


def read_corpus(corpus: Path, splits: Sequence[str] = SPLITS) -> Iterator[ExportDoc]:
    """Yield the texts of a merged corpus with all accepted spans.

    RAISES (InputError): it isn't a merged corpus.
    """
    for split in splits:
        for file in partitions_of(corpus, split):
            for stored in read_stored_docs(file):
                merged = stored.annotation
                key = text_key(stored.text.encode("utf8")).hex()
                yield ExportDoc(stored.text, merged.doc, key, sorted(merged.accepted), {}, merged.uncovered)


def read_complete(corpus: Path) -> dict[str, frozenset[str]]:
    """Read which labels each text of a merged corpus is complete for, by key; about 200 bytes are held for a text.

    RAISES (InputError): it isn't a merged corpus.
    """
    labels = read_labels(corpus)
    known: dict[frozenset[str], frozenset[str]] = {}
    found = {}
    for doc in read_corpus(corpus):
        complete = frozenset(labels).difference(doc.unknown)
        found[doc.key] = known.setdefault(complete, complete)
    return found


def read_labels(corpus: Path) -> list[str]:
    """List the labels of a merged corpus.

    RAISES (InputError): it isn't one.
    """
    return read_manifest(corpus).labels


def read_predicted(path: Path) -> Iterator[ExportDoc]:
    """Yield texts with what was predicted, be it for a split or for raw texts.

    RAISES (InputError): there is no such file, or a line of it isn't a prediction.
    """
    return map(predicted_doc, read_predictions(path, in_order=False))


def predicted_doc(doc: PredictedDoc) -> ExportDoc:
    """Take the spans that were predicted: with heads for labels all that were found, which may overlap."""
    scores = {(start, end, label): score for start, end, label, score in doc.found}
    spans = sorted(scores or doc.predicted)
    return ExportDoc(doc.text, doc.doc, doc.key, spans, scores, doc.uncovered, predicted=True, shown=[*doc.uncovered])

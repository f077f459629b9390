"""Find the annotated spans of train that speak most for each span that a pipeline predicts.

A span's score is the cosine of two gradients (`influence`): 1 if training on it changes the label's head as training on
the predicted span would. Vectors of train are computed on demand, batch by batch.
"""

from collections.abc import Collection, Iterator, Sequence
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import StoredDoc, read_docs
from labelwise.corpus.pipeline import load_pipeline, predict_batches
from labelwise.corpus.record import check_corpus
from spacy_per_label import PerLabelRecognizer
from spacy_per_label.influence import span_gradients, unit

MOST = 10  # annotated spans for each predicted one
CONTEXT = 50  # characters that are shown on either side of a span


class TrainSpan(NamedTuple):
    """An annotated span of train.

    score (float): cosine of its gradient and the predicted span's.
    start, end (int): offsets in characters.
    shown (str): the span in brackets, with the words around it.
    """

    score: float
    key: str
    start: int
    end: int
    label: str
    shown: str


class PredictedSpan(NamedTuple):
    """A predicted span, offsets in characters, its probability, and the annotated spans that speak most for it."""

    start: int
    end: int
    label: str
    probability: float
    speaking: Sequence[TrainSpan]


def explain(model: Path, corpus: Path, texts: Sequence[str], at: int | None = None) -> list[list[PredictedSpan]]:
    """Return the spans predicted for each text, with the annotated spans that speak most for them.

    at (int | None): offset of a character; only the spans that have it.
    RAISES (InputError): if there is no pipeline, it has no heads for labels, or was trained on another corpus.
    """
    nlp = load_pipeline(model)
    check_corpus(model, corpus)
    _, ner = find_recognizer(nlp)
    least = {label: point.get("least", 0.0) for label, point in ner.cfg.get("points", {}).items()}
    predicted, labels, gradients = list[list[PredictedSpan]](), list[int](), list[np.ndarray]()
    for text in texts:
        doc = nlp(text)
        group = doc.spans[ner.spans_key]
        scored = zip(group, map(float, group.attrs["scores"]), strict=True)
        spans = [(span, p) for span, p in sorted(scored) if p >= least.get(span.label_, 0.0)]
        spans = [(span, p) for span, p in spans if at is None or span.start_char <= at < span.end_char]
        places = [(span.start, span.end, ner.labels.index(span.label_)) for span, _ in spans]
        labels += [label for *_, label in places]
        gradients += [*span_gradients(ner, [doc], places)] if places else []
        predicted.append([PredictedSpan(span.start_char, span.end_char, span.label_, p, ()) for span, p in spans])
    speaking = iter(rank(nlp, corpus, labels, np.array(gradients)))
    return [[span._replace(speaking=next(speaking)) for span in spans] for spans in predicted]


def find_recognizer(nlp: Language) -> tuple[str, PerLabelRecognizer]:
    """Return name and recognizer with a head for each label; refuse a pipeline without one."""
    for name, pipe in nlp.pipeline:
        if isinstance(pipe, PerLabelRecognizer):
            return name, pipe
    raise InputError(f"{nlp.path}: it has no head for each label; name a pipeline that has, such as cpu")


def rank(nlp: Language, corpus: Path, labels: Sequence[int], gradients: np.ndarray) -> list[list[TrainSpan]]:
    """Return for each gradient the annotated spans of train with the highest positive scores, highest first.

    labels (Sequence[int]): number of each gradient's label.
    gradients (np.ndarray): shape (gradients, 5 width); see `influence.span_gradients`.
    """
    best: list[list[TrainSpan]] = [[] for _ in labels]
    if not labels:
        return best
    name, ner = find_recognizer(nlp)
    rows, directions = np.array(labels), unit(gradients)
    for batch, made in predict_batches(nlp, filter(len, read_docs(corpus, "train")), len, without=[name]):
        spans = [*learned_spans(batch, ner.labels, {*labels})]
        places = [place for place, *_ in spans]
        if not places:
            continue
        numbers, docs = np.array(places)[:, 2], [*made]
        scores = directions @ unit(span_gradients(ner, docs, places)).T  # (gradients, spans)
        scores[(rows[:, None] != numbers) | (scores <= 0)] = -1
        for best_of_span, row in zip(best, scores, strict=True):
            new = [at for at in np.argsort(-row, kind="stable")[:MOST].tolist() if row[at] > 0]
            placed = [TrainSpan(float(row[at]), *locate(*spans[at][1:])) for at in new]
            best_of_span[:] = nlargest(MOST, [*best_of_span, *placed], key=lambda one: one.score)
    return best


def locate(doc: StoredDoc, start: int, end: int, label: str) -> tuple[str, int, int, str, str]:
    """Return the fields of `TrainSpan` that don't depend on the pipeline."""
    return doc.key, start, end, label, show(doc.text, start, end)


def show(text: str, start: int, end: int) -> str:
    """Write a span in brackets, with the words around it, in one line.

    >>> show("Wash with 5 ml of water.", 10, 14)
    'Wash with [5 ml] of water.'
    """
    first, last = max(0, start - CONTEXT), end + CONTEXT
    shown = f"{text[first:start]}[{text[start:end]}]{text[end:last]}"
    return f"{'… ' if first else ''}{' '.join(shown.split())}{' …' if last < len(text) else ''}"


def learned_spans(
    docs: Sequence[StoredDoc], names: Sequence[str], labels: Collection[int]
) -> Iterator[tuple[tuple[int, int, int], StoredDoc, int, int, str]]:
    """Yield the annotated spans of some labels that training learns: of nested ones with a label, the longest.

    YIELDS (tuple): start, end and label's number, tokens counted through the docs; the doc; start and end in
        characters, and label.
    """
    base = 0
    for doc in docs:
        gold = [span[:3] for span in doc.annotation.gold if span[2] in names and names.index(span[2]) in labels]
        used: set[tuple[int, str]] = set()
        placed = [(place, span) for place, span in zip(doc.in_tokens(gold), gold, strict=True) if place]
        for (start, end), span in sorted(placed, key=lambda one: (one[0][0] - one[0][1], one)):
            tokens = {(token, span[2]) for token in range(start, end)}
            if used.isdisjoint(tokens) and doc.annotation.uncovered.get(span[2]) != "none":
                used |= tokens
                yield (base + start, base + end, names.index(span[2])), doc, *span
        base += len(doc)

"""Candidate annotation errors in a text, each scored in log-odds.

Two kinds of evidence add up: how often the surface form is annotated with the label elsewhere, and how often not
(`surface_forms`); and the span's probability by a pipeline trained without the text. The score is the log-odds of the
correction against the annotation. Ambiguous words score near 0.

Comparing out-of-sample predictions with annotations is the idea of confident learning (Northcutt, Jiang and Chuang,
"Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 2021).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.manifest import Split
from labelwise.corpus.surface_forms import SurfaceForms
from spacy_per_label.decode import FoundSpans, Layout, forward_backward
from spacy_per_label.targets import BEGIN, IN, LAST, UNIT

Kind = Literal["missing", "spurious", "wrong label", "wrong boundaries"]
MIN_LOG_ODDS = 1.0  # log-odds of a form's counts to propose it
MIN_TIMES = 3  # annotated occurrences
MAX_FORM_LOG_ODDS = 3.0  # limit of a form's log-odds, because texts repeat themselves
MIN_PROBABILITY = 1e-4

Place = tuple[int, int, int]  # start and end in tokens, number of the label


class Correction(NamedTuple):
    """An annotated span and its proposed replacement; one of them may be None.

    times, against (int): other occurrences annotated as proposed, and as here.
    agrees (bool): the out-of-fold pipeline predicts the proposed span.
    """

    current: Place | None
    proposed: Place | None
    score: float
    times: int = 0
    against: int = 0
    agrees: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of error."""
        if self.current is None:
            return "missing"
        if self.proposed is None:
            return "spurious"
        return "wrong label" if self.current[:2] == self.proposed[:2] else "wrong boundaries"


class OutOfFold:
    """Out-of-fold predictions for one text."""

    def __init__(self, log_p: np.ndarray, spans: FoundSpans, numbers: Sequence[int | None]) -> None:
        """Take the tags' log probabilities, and the spans decoded from them.

        log_p (np.ndarray): shape (tokens, the pipeline's labels, 5).
        numbers (Sequence[int | None]): the corpus's number of each of the pipeline's labels; None if it has none.
        """
        self._log_p, self._ways = log_p, forward_backward(log_p, Layout([len(log_p)]))
        self._column = {number: column for column, number in enumerate(numbers)}
        places = ((start, end, numbers[label]) for start, end, label in spans.rows())
        self.found: set[Place] = {(start, end, number) for start, end, number in places if number is not None}

    def log_odds(self, span: Place | None, against: Place | None) -> float:
        """Compute the log-odds of a span against another; None stands for no span."""
        p, against_p = self.probability(span), self.probability(against)
        if p is None and against_p is None:
            return 0.0
        p = 1 - (against_p or 0.0) if p is None else p
        against_p = 1 - p if against_p is None else against_p
        return log(max(p, MIN_PROBABILITY)) - log(max(against_p, MIN_PROBABILITY))

    def agrees(self, correction: Correction) -> bool:
        """Return whether the pipeline predicts the proposed span; without one, whether it omits the annotated span."""
        about: Any = correction.proposed or correction.current
        return about[2] in self._column and (about in self.found) == (correction.proposed is not None)

    def probability(self, span: Place | None) -> float | None:
        """Compute a span's marginal probability over all ways to tag the text; see `spacy_per_label.decode`."""
        if span is None or span[2] not in self._column:
            return None
        start, end, number = span
        column = self._column[number]
        rows, (before, behind, total) = self._log_p[start:end, column], self._ways
        inner = rows[0, BEGIN] + rows[1:-1, IN].sum() + rows[-1, LAST]
        tags = rows[0, UNIT] if end - start == 1 else inner
        return float(np.exp(min(0.0, tags + before[start, column] + behind[end - 1, column] - total[0, column])))


class CheckedDoc(NamedTuple):
    """A text, and its out-of-fold prediction, if any."""

    split: Split
    stored: StoredDoc
    prediction: OutOfFold | None = None

    @property
    def text(self) -> str:
        """The text."""
        return self.stored.text


class Evidence:
    """Evidence for and against changes to a text's annotation.

    unknown (set[int]): labels that aren't fully annotated, so none of their spans is proposed.
    proposed (set[Place]): spans that the surface forms or the pipeline would add.
    others (set[Place]): these, and annotated spans with another label.
    """

    def __init__(self, doc: StoredDoc, forms: SurfaceForms, prediction: OutOfFold | None) -> None:
        spans = forms.spans(doc)
        self.prediction, self.gold = prediction, set(spans)
        self.unknown = {forms.labels.index(label) for label in doc.annotation.uncovered}
        candidates = _often_marked(doc, forms).union(prediction.found if prediction else ()) - self.gold
        self.proposed = {place for place in candidates if place[2] not in self.unknown}
        same = _with_other_labels(doc, forms, spans)
        self.others = {*self.proposed, *same} - self.gold
        self._counts = {**same, **forms.counts(doc, [*self.gold, *self.proposed])}
        self._forms = {(start, end): tuple(doc.words[start:end].tolist()) for start, end, _ in spans}
        self._alike = Counter((self._forms[span[:2]], span[2]) for span in spans)

    def times(self, current: Place | None, better: Place | None) -> tuple[int, int]:
        """Count other occurrences annotated as proposed, and as in the current annotation."""
        marked, free = self._counts[better] if better else (0, 0)
        if current is None:
            return marked, max(free - 1, 0)
        here, elsewhere = self._counts[current]
        return marked if better else elsewhere, here - 1

    def score(self, current: Place | None, better: Place | None) -> float:
        """Add up the evidence for a change, in log-odds: the pipeline's, and the surface form's counts.

            change      counts for it                      counts against it
            add         times the form is marked so        times it is unmarked
            remove      times the form is unmarked         times it is marked so
            replace     times the new form is marked so    times the old one is marked so

        With a pipeline, the counts of a removed form that is annotated nowhere else are omitted: it may be a rare
        sense. For a form annotated n times in the text, log n is subtracted.
        """
        so, against = self.times(current, better)
        words = max(-MAX_FORM_LOG_ODDS, min(MAX_FORM_LOG_ODDS, _odds(so, against)))
        if self.prediction is None:
            return words
        alone = current is not None and better is None and not against
        here = self._alike[self._forms[current[:2]], current[2]] if current else 1
        return self.prediction.log_odds(better, current) + words * (not alone) - log(here)


def find_corrections(doc: StoredDoc, forms: SurfaceForms, prediction: OutOfFold | None) -> Iterator[Correction]:
    """Yield the corrections of a text, each span at most once, most certain first.

    Skips labels that the text isn't fully annotated for.
    """
    evidence = Evidence(doc, forms, prediction)
    changed: set[Place] = set()
    candidates = sorted(_candidates(evidence), key=lambda item: (-item[0], item[1].proposed is None, str(item[1])))
    for _, correction in candidates:
        involved = {span for span in (correction.current, correction.proposed) if span}
        # A missing span that overlaps a span of its label is a question of that span's boundaries.
        missing = correction.proposed if correction.current is None else None
        settled = missing and any(_clash(missing, span) for span in evidence.gold)
        if correction.score > 0 and changed.isdisjoint(involved) and not settled:
            changed |= involved
            so, against = evidence.times(correction.current, correction.proposed)
            agrees = bool(prediction and prediction.agrees(correction))
            yield correction._replace(times=so, against=against, agrees=agrees)


def _candidates(evidence: Evidence) -> Iterator[tuple[float, Correction]]:
    """Yield every change with its score; changes of the same span compete."""
    missing = {place: evidence.score(None, place) for place in evidence.proposed}
    for place, score in missing.items():
        yield score, Correction(None, place, score)
    for span in evidence.gold:
        wrong = evidence.score(span, None)
        yield wrong, Correction(span, None, wrong)
        for place in evidence.others:
            change = evidence.score(span, place) if place[2] not in evidence.unknown else 0.0
            halves = wrong, missing.get(place, 0.0)
            if place[:2] == span[:2] and min(halves) > 0:
                # Heads of two labels are independent: the evidence for both halves adds up, but both must hold.
                yield sum(halves), Correction(span, place, min(halves))
            elif place[:2] == span[:2]:
                yield change, Correction(span, place, change)
            elif _clash(place, span) and change > 0:
                # Only one of two overlapping spans of a label can be right: evidence against this one adds nothing.
                yield max(change, wrong), Correction(span, place, max(change, wrong))


def _often_marked(doc: StoredDoc, forms: SurfaceForms) -> set[Place]:
    """Return places that are unannotated here, but annotated nearly everywhere else."""
    free = forms.occurrences(doc)
    rows = zip(free.starts.tolist(), free.ends.tolist(), free.labels.tolist(), strict=True)
    marked, unmarked = forms.marked.of(free.keys).tolist(), forms.free.of(free.keys).tolist()
    counts = zip(rows, marked, unmarked, strict=True)
    return {place for place, so, against in counts if so >= MIN_TIMES and _odds(so, against - 1) >= MIN_LOG_ODDS}


def _with_other_labels(doc: StoredDoc, forms: SurfaceForms, spans: Sequence[Place]) -> dict[Place, tuple[int, int]]:
    marked = forms.marked_as(doc, spans)
    often = zip(*(array.tolist() for array in np.nonzero(marked >= MIN_TIMES)), strict=True)
    return {(*spans[row][:2], number): (int(marked[row, number]), 0) for row, number in often}


def _clash(one: Place, other: Place) -> bool:
    """Return whether two spans of a label overlap, so at most one of them is right."""
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


def _odds(times: int, against: int) -> float:
    return log((times + 0.5) / (against + 0.5))

"""What seems wrong in the annotation of a text, and how much speaks for it.

Two things speak for or against a span: how often its form is marked with its label elsewhere, and how often it isn't
(`forms`); and how probable a pipeline finds it that was trained without the text. A score is the sum of both, in
log-odds: how much more likely what is proposed is than what is there. What is ambiguous by nature has a score near 0.

Of confident learning (Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR
2021) it has the idea: predictions out of sample, compared with what was annotated.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.surface_forms import SurfaceForms
from spacy_per_label.decode import FoundSpans, forward_backward
from spacy_per_label.targets import BEGIN, IN, LAST, UNIT

Kind = Literal["missing", "spurious", "wrong label", "wrong boundaries"]
LEAST = 1.0  # log-odds of the forms from which they make a correction by themselves
ENOUGH = 3  # times that a form must be marked, or free, for that
MOST_FORM = 3.0  # log-odds that the forms may add at most, as texts repeat themselves
TINY = 1e-4

Place = tuple[int, int, int]  # start and end in tokens, number of the label


class Correction(NamedTuple):
    """A span that is there, one that may rather be, or both.

    score (float): how much speaks for it, in log-odds.
    times, against (int): how often its form is annotated as proposed elsewhere, and how often as it is here.
    agrees (bool): the pipeline that was asked annotates as proposed.
    """

    current: Place | None
    proposed: Place | None
    score: float
    times: int = 0
    against: int = 0
    agrees: bool = False

    @property
    def kind(self) -> Kind:
        """What is wrong."""
        if self.current is None:
            return "missing"
        if self.proposed is None:
            return "spurious"
        return "wrong label" if self.current[:2] == self.proposed[:2] else "wrong boundaries"


class OutOfFold:
    """What a pipeline that wasn't trained on a text thinks of it.

    found (set[Place]): the spans that it finds.
    """

    def __init__(self, log_p: np.ndarray, found: FoundSpans, numbers: Sequence[int | None]) -> None:
        """Take the logarithms of the tags' probabilities, and what was decoded of them.

        log_p (np.ndarray): of the shape (tokens, the pipeline's labels, 5).
        numbers (Sequence[int | None]): of the pipeline's labels, among all; None for one that isn't among them.
        """
        self._log_p, self._ways = log_p, forward_backward(log_p)
        self._column = {number: column for column, number in enumerate(numbers)}
        rows = zip(found.starts.tolist(), found.ends.tolist(), found.labels.tolist(), strict=True)
        places = ((start, end, numbers[label]) for start, end, label in rows)
        self.found: set[Place] = {(start, end, number) for start, end, number in places if number is not None}

    def log_odds(self, span: Place | None, against: Place | None) -> float:
        """Compute how much more probable a span is than another one; None stands for there being none."""
        one, other = self.probability(span), self.probability(against)
        if one is None and other is None:
            return 0.0
        one = 1 - (other or 0.0) if one is None else one
        other = 1 - one if other is None else other
        return log(max(one, TINY)) - log(max(other, TINY))

    def agrees(self, correction: Correction) -> bool:
        """Return whether the pipeline finds what is proposed; or, where that is nothing, doesn't find what is there."""
        about: Any = correction.proposed or correction.current
        return about[2] in self._column and (about in self.found) == (correction.proposed is not None)

    def probability(self, span: Place | None) -> float | None:
        """Compute a span's probability, its share of all ways to tag the text; see `spacy_per_label.decode`."""
        if span is None or span[2] not in self._column:
            return None
        start, end, number = span
        column = self._column[number]
        rows, (before, behind, total) = self._log_p[start:end, column], self._ways
        inner = rows[0, BEGIN] + rows[1:-1, IN].sum() + rows[-1, LAST]
        tags = rows[0, UNIT] if end - start == 1 else inner
        return float(np.exp(min(0.0, tags + before[start, column] + behind[end - 1, column] - total[column])))


class Evidence:
    """What speaks for and against changes of one text.

    gold (set[Place]): the spans that are there.
    unknown (set[int]): the labels that the text isn't complete for, of which nothing is proposed.
    proposed (set[Place]): spans that the forms or the pipeline would add.
    others (set[Place]): these, and spans that are there with another label.
    """

    def __init__(self, doc: StoredDoc, forms: SurfaceForms, opinion: OutOfFold | None) -> None:
        """Count the forms of a text.

        opinion (OutOfFold | None): None if no pipeline was asked.
        """
        spans = forms.spans(doc)
        self.opinion, self.gold = opinion, set(spans)
        self.unknown = {forms.labels.index(label) for label in doc.annotation.uncovered}
        wanted = _often_marked(doc, forms).union(opinion.found if opinion else ()) - self.gold
        self.proposed = {place for place in wanted if place[2] not in self.unknown}
        same = _with_other_labels(doc, forms, spans)
        self.others = {*self.proposed, *same} - self.gold
        self._counts = {**same, **forms.counts(doc, [*self.gold, *self.proposed])}
        self._forms = {(start, end): tuple(doc.words[start:end].tolist()) for start, end, _ in spans}
        self._alike = Counter((self._forms[span[:2]], span[2]) for span in spans)

    def times(self, current: Place | None, better: Place | None) -> tuple[int, int]:
        """Count how often the forms are elsewhere as a change would have them, and how often as they are here."""
        marked, free = self._counts[better] if better else (0, 0)
        if current is None:
            return marked, max(free - 1, 0)
        here, elsewhere = self._counts[current]
        return marked if better else elsewhere, here - 1

    def score(self, current: Place | None, better: Place | None) -> float:
        """Add up what speaks for a change, in log-odds: the pipeline's, and those of counts of the form elsewhere.

            change      counts for it                      counts against it
            add         times the form is marked so        times it is unmarked
            remove      times the form is unmarked         times it is marked so
            replace     times the new form is marked so    times the old one is marked so

        Two terms are special. Where a removed form is marked here alone, its counts are left out, if a pipeline was
        asked: it may be a rare sense. What is marked n times in a text was hardly marked by mistake: log n is
        subtracted.
        """
        so, against = self.times(current, better)
        words = max(-MOST_FORM, min(MOST_FORM, _odds(so, against)))
        if self.opinion is None:
            return words
        alone = current is not None and better is None and not against
        here = self._alike[self._forms[current[:2]], current[2]] if current else 1
        return self.opinion.log_odds(better, current) + words * (not alone) - log(here)


def find_corrections(doc: StoredDoc, forms: SurfaceForms, opinion: OutOfFold | None) -> Iterator[Correction]:
    """Yield what seems wrong in a text, each span at most once, the surest first.

    Of labels that the text isn't complete for, nothing is proposed.

    opinion (OutOfFold | None): None if no pipeline was asked.
    """
    evidence = Evidence(doc, forms, opinion)
    taken: set[Place] = set()
    found = sorted(_candidates(evidence), key=lambda one: (-one[0], one[1].proposed is None, str(one[1])))
    for _, correction in found:
        # Where a span is there already under another label, that is what is inconsistent.
        involved = {span for span in (correction.current, correction.proposed) if span}
        # A span that is missing, and would overlap one of its label, would be another's boundaries.
        better = correction.proposed if correction.current is None else None
        settled = better and any(_clash(better, span) for span in evidence.gold)
        if correction.score > 0 and taken.isdisjoint(involved) and not settled:
            taken |= involved
            so, against = evidence.times(correction.current, correction.proposed)
            agrees = bool(opinion and opinion.agrees(correction))
            yield correction._replace(times=so, against=against, agrees=agrees)


def _candidates(evidence: Evidence) -> Iterator[tuple[float, Correction]]:
    """Yield every change, with what speaks for it among those of its spans."""
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
                # Heads of two labels know nothing of each other: what speaks for both halves adds up; both must hold.
                yield sum(halves), Correction(span, place, min(halves))
            elif place[:2] == span[:2]:
                yield change, Correction(span, place, change)
            elif _clash(place, span) and change > 0:
                # Of one label's boundaries, only one can be right: that the span is wrong says no more.
                yield max(change, wrong), Correction(span, place, max(change, wrong))


def _often_marked(doc: StoredDoc, forms: SurfaceForms) -> set[Place]:
    """Find the places that are unmarked here, and marked nearly everywhere else."""
    free = forms.occurrences(doc)
    rows = zip(free.starts.tolist(), free.ends.tolist(), free.labels.tolist(), strict=True)
    marked, unmarked = forms.marked.of(free.keys).tolist(), forms.free.of(free.keys).tolist()
    counts = zip(rows, marked, unmarked, strict=True)
    return {place for place, so, against in counts if so >= ENOUGH and _odds(so, against - 1) >= LEAST}


def _with_other_labels(doc: StoredDoc, forms: SurfaceForms, spans: Sequence[Place]) -> dict[Place, tuple[int, int]]:
    """Count how often the forms of spans are marked with each label; only those of ENOUGH times are listed."""
    marked = forms.marked_as(doc, spans)
    often = zip(*(array.tolist() for array in np.nonzero(marked >= ENOUGH)), strict=True)
    return {(*spans[row][:2], number): (int(marked[row, number]), 0) for row, number in often}


def _clash(one: Place, other: Place) -> bool:
    """Return whether two spans of a label overlap, so that only one of them can be right."""
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


def _odds(times: int, against: int) -> float:
    return log((times + 0.5) / (against + 0.5))

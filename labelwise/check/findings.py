"""What seems wrong in the annotation of a text, and how much speaks for it.

Two things speak for or against a span: how often its form is marked with its label elsewhere, and how often it isn't
(`forms`); and how probable a pipeline finds it that was trained without the text. A score is the sum of both, in
log-odds: how much more likely what is proposed is than what is there. What is ambiguous by nature has a score near 0.

Of confident learning (Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR
2021) it has the idea: predictions out of sample, compared with what was annotated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.forms import Forms
from spacy_per_label import BEGIN, IN, LAST, UNIT, FoundSpans

Kind = Literal["missing", "spurious", "wrong label", "wrong boundaries"]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]
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


class Opinion:
    """What a pipeline that wasn't trained on a text thinks of it.

    found (set[Place]): the spans that it finds.
    """

    def __init__(self, log_p: np.ndarray, found: FoundSpans, numbers: Sequence[int | None]) -> None:
        """Take the logarithms of the tags' probabilities, and what was decoded of them.

        log_p (np.ndarray): of the shape (tokens, the pipeline's labels, 5).
        numbers (Sequence[int | None]): of the pipeline's labels, among all; None for one that isn't among them.
        """
        self._log_p = log_p
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
        """Tell whether the pipeline finds what is proposed; or, where that is nothing, doesn't find what is there."""
        about: Any = correction.proposed or correction.current
        return about[2] in self._column and (about in self.found) == (correction.proposed is not None)

    def probability(self, span: Place | None) -> float | None:
        """Compute a span's probability, the geometric mean of those of its tags."""
        if span is None or span[2] not in self._column:
            return None
        start, end, number = span
        rows = self._log_p[start:end, self._column[number]]
        if end - start == 1:
            return float(np.exp(rows[0, UNIT]))
        total = rows[0, BEGIN] + rows[1:-1, IN].sum() + rows[-1, LAST]
        return float(np.exp(total / (end - start)))


def find_corrections(doc: StoredDoc, forms: Forms, opinion: Opinion | None, unknown: set[int]) -> Iterator[Correction]:
    """Yield what seems wrong in a text, each span at most once, the surest first.

    opinion (Opinion | None): None if no pipeline was asked.
    unknown (set[int]): numbers of the labels that the text isn't complete for, of which nothing is proposed.
    """
    gold = set(forms.spans(doc))
    free = forms.occurrences(doc)
    rows = zip(free.starts.tolist(), free.ends.tolist(), free.labels.tolist(), strict=True)
    marked, unmarked = forms.marked.of(free.keys).tolist(), forms.free.of(free.keys).tolist()
    counts = {place: (m, u) for place, m, u in zip(rows, marked, unmarked, strict=True)}
    often = {place for place, (m, u) in counts.items() if m >= ENOUGH and _odds(m, u - 1) >= LEAST}
    proposed = {place for place in often.union(opinion.found if opinion else ()) - gold if place[2] not in unknown}
    evidence = _Evidence(doc, forms, gold, proposed)

    def score(current: Place | None, better: Place | None) -> float:
        """Add up what speaks for a change.

        A form that is marked here alone may be a rare sense: no pipeline can know it, and the words say no more. What
        is marked several times in a text was hardly marked by mistake.
        """
        times, against = evidence.times(current, better)
        words = max(-MOST_FORM, min(MOST_FORM, _odds(times, against)))
        if opinion is None:
            return words
        alone = current is not None and better is None and not against
        return opinion.log_odds(better, current) + words * (not alone) - log(evidence.here(current))

    missing: dict[Place | None, float] = {place: score(None, place) for place in proposed}
    corrections = [Correction(None, place, worth) for place, worth in missing.items()]
    for span in gold:
        wrong = score(span, None)
        corrections.append(Correction(span, None, wrong))
        same = ((span[0], span[1], number) for *_, number in evidence.labels_of(span))
        others = {*same, *(place for place in proposed if place[:2] == span[:2] or _clash(place, span))} - gold
        for place in others:
            if place[2] not in unknown:
                corrections.append(Correction(span, place, _worth(span, place, score(span, place), wrong, missing)))
    spurious = {one.current: one.score for one in corrections if one.proposed is None}

    def surety(correction: Correction) -> float:
        """Return what speaks for a correction; for one to another label, the weaker half: both must hold."""
        halves = [spurious.get(correction.current, 0.0), missing.get(correction.proposed, 0.0)]
        labels = {span[2] for span in (correction.current, correction.proposed) if span}
        return min(halves) if len(labels) > 1 and min(halves) > 0 else correction.score

    taken: set[Place] = set()
    for correction in sorted(corrections, key=lambda one: (-one.score, one.proposed is None, str(one))):
        # Where a span is there already under another label, that is what is inconsistent.
        spans = {span for span in (correction.current, correction.proposed) if span}
        # A span that is missing, and would overlap one of its label, would be another's boundaries.
        better = correction.proposed if correction.current is None else None
        settled = better and any(_clash(better, span) for span in gold)
        if correction.score > 0 and taken.isdisjoint(spans) and not settled:
            taken |= spans
            times, against = evidence.times(correction.current, correction.proposed)
            agrees = bool(opinion and opinion.agrees(correction))
            yield correction._replace(score=surety(correction), times=times, against=against, agrees=agrees)


def _worth(span: Place, place: Place, change: float, wrong: float, missing: dict[Place | None, float]) -> float:
    """Compute what speaks for a span in the place of another.

    Heads of two labels know nothing of each other: that one span is wrong, and that the other is missing, add up. Of
    one label's boundaries, only one can be right: that the span is wrong says no more than that the other one is right.

    change, wrong, missing: what speaks for the change, for nothing in the place of the span, and for missing spans.
    """
    if place[2] != span[2]:
        return wrong + missing[place] if place in missing and min(wrong, missing[place]) > 0 else change
    return max(change, wrong) if change > 0 else change


def _clash(one: Place, other: Place) -> bool:
    """Tell whether two spans of a label overlap, so that only one of them can be right."""
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


class _Evidence:
    """How often the forms of some spans of a text are marked, and free."""

    def __init__(self, doc: StoredDoc, forms: Forms, gold: Iterable[Place], proposed: Iterable[Place]) -> None:
        spans = [*gold, *proposed]
        self.forms = forms
        self.form = dict(zip(spans, forms.form_keys(doc, spans), strict=True))
        self._here = Counter((self.form[span], span[2]) for span in gold)
        keys = forms.keys(
            np.array([self.form[span] for span in spans], np.uint64), np.array([span[2] for span in spans], int)
        )
        counts = zip(forms.marked.of(keys).tolist(), forms.free.of(keys).tolist(), strict=True)
        self.counts = dict(zip(spans, counts, strict=True))

    def here(self, span: Place | None) -> int:
        """Count the spans of this text with a span's form and label, at least 1."""
        return max(1, self._here[self.form[span], span[2]]) if span else 1

    def labels_of(self, span: Place) -> list[Place]:
        """List the labels by which a span's form is marked ENOUGH times, as spans of those labels."""
        numbers = np.arange(len(self.forms.labels))
        keys = self.forms.keys(np.full(len(numbers), self.form[span], np.uint64), numbers)
        marked = self.forms.marked.of(keys)
        found = [(span[0], span[1], number) for number in np.flatnonzero(marked >= ENOUGH).tolist()]
        for place in found:
            self.form.setdefault(place, self.form[span])
            self.counts.setdefault(place, (int(marked[place[2]]), 0))
        return [place for place in found if place != span]

    def times(self, current: Place | None, better: Place | None) -> tuple[int, int]:
        """Tell how often the forms are elsewhere as a change would have them, and how often as they are here."""
        marked, free = self.counts[better] if better else (0, 0)
        if current is None:
            return marked, max(free - 1, 0)
        here, elsewhere = self.counts[current]
        return marked if better else elsewhere, here - 1


def _odds(times: int, against: int) -> float:
    return log((times + 0.5) / (against + 0.5))

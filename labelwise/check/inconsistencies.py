"""Where annotation doesn't agree on what belongs to a span: the words at its edges.

Some spans of a label begin (or end) with a word that others with the same head stop short of: a determiner, a number, a
unit, punctuation, the part before a hyphen. All numbers count as one word, "0". None of that is wrong by itself: a
policy decides, and the rarer way is what there is to change. The word itself counts most: all words with a hyphen, or
all numbers, are a prior of each, worth PRIOR times.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

from labelwise.base.text import times
from labelwise.check.deck import Finding, finding_of, generalize
from labelwise.check.findings import Correction, Place
from labelwise.check.folds import CheckedDoc
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.surface_forms import SurfaceForms

What = Literal["first word", "last word"]
FEWEST = 3  # times that each way must have been taken
MOST = 1000  # findings of an inconsistency
PRIOR = 1.0
HYPHENS = frozenset("-‐‑–")


class Edge(NamedTuple):
    """A word at a span's edge, inside or just outside, and where the span would be the other way.

    word, kind (str): the word in lower case, and the kind of words that it is one of.
    """

    what: What
    word: str
    kind: str
    inside: bool
    other: tuple[int, int]


class Inconsistencies:
    """Finds ways that don't agree, in two passes: edges to count, and what to list."""

    def __init__(self, forms: SurfaceForms) -> None:
        """Take what counts forms."""
        self.forms = forms
        self._counts: Counter[tuple[int, What, str, bool]] = Counter()
        self._listed: Counter[tuple[int, What, str]] = Counter()

    def count(self, doc: StoredDoc) -> None:
        """Count a text's edges, once it is known how often forms are marked."""
        for place, edge in self._edges(doc):
            for name in {edge.word, edge.kind}:
                self._counts[place[2], edge.what, name, edge.inside] += 1

    def find(self, checked: CheckedDoc) -> Iterator[Finding]:
        """Yield what went the rarer way in a text, once everything is counted."""
        for place, edge in self._edges(checked.stored):
            name = (place[2], edge.what, edge.kind)
            taken_in, left_out = (self._counts[*name, way] for way in (True, False))
            rarer, more = sorted((taken_in, left_out))
            if rarer < FEWEST or edge.inside != (taken_in <= left_out) or self._listed[name] >= MOST:
                continue
            here, there = (self._counts[place[2], edge.what, edge.word, way] for way in (edge.inside, not edge.inside))
            prior = [PRIOR * (n + 0.5) / (rarer + more + 1) for n in (more, rarer)]
            score, word = log((there + prior[0]) / (here - 1 + prior[1])), edge.kind
            if score <= 0:
                continue
            if here + there >= 2 * FEWEST:
                word, (taken_in, left_out) = edge.word, (here, there) if edge.inside else (there, here)
            self._listed[name] += 1
            why = (
                f"{word!r} as the {edge.what} of {self.forms.labels[place[2]]}: inside "
                f"{times(taken_in)}, outside {times(left_out)}"
            )
            correction = Correction(place, (*edge.other, place[2]), score)
            yield finding_of(checked, correction, self.forms.labels, why=why)

    def _edges(self, doc: StoredDoc) -> list[tuple[Place, Edge]]:
        """List the edges of a text's spans, where what the span would be the other way is marked elsewhere.

        Where it is a span of the text itself, one is nested in the other: the annotator means both.
        """
        words = [doc.strings[word] for word in doc.words.tolist()]
        spans = set(self.forms.spans(doc))
        found = [(span, edge) for span in sorted(spans) for edge in edges(words, span[0], span[1])]
        others = {(span, edge): (*edge.other, span[2]) for span, edge in found}
        counts = self.forms.counts(doc, sorted({*others.values()} - spans))
        return [pair for pair in found if counts.get(others[pair], (0, 0))[0]]


def edges(words: Sequence[str], start: int, end: int) -> Iterator[Edge]:
    """Yield the words at a span's edges: the first and the last one inside, and its neighbours outside.

    Where a hyphen joins the word to the rest, both are taken in or left out.
    """
    if end - start > 1:
        hyphen = end - start > 2 and words[start + 1] in HYPHENS
        yield _edge("first word", words[start], hyphen, True, (start + 1 + hyphen, end))
        hyphen = end - start > 2 and words[end - 2] in HYPHENS
        yield _edge("last word", words[end - 1], hyphen, True, (start, end - 1 - hyphen))
    if start > 0:
        hyphen = start > 1 and words[start - 1] in HYPHENS
        yield _edge("first word", words[start - 1 - hyphen], hyphen, False, (start - 1 - hyphen, end))
    if end < len(words):
        hyphen = end < len(words) - 1 and words[end] in HYPHENS
        yield _edge("last word", words[end + hyphen], hyphen, False, (start, end + 1 + hyphen))


def _edge(what: What, word: str, hyphen: bool, inside: bool, other: tuple[int, int]) -> Edge:
    word = word.lower()
    if not hyphen:
        return Edge(what, word, generalize(word), inside, other)
    first = what == "first word"
    return Edge(what, f"{word}-" if first else f"-{word}", "…-" if first else "-…", inside, other)

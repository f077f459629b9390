"""Find inconsistent boundaries: words that some spans include at an edge and others exclude.

Some spans of a label begin (or end) with a word that others with the same head leave out: a determiner, a number, a
unit, punctuation, the part before a hyphen. All numbers count as one word, "0". Either boundary is right under some
guideline; the findings are the rarer ones. The word's own counts decide; counts of its kind, such as all words with a
hyphen, are a prior worth PRIOR occurrences.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

from labelwise.base.text import times
from labelwise.check.finding import Finding, finding_of, generalize
from labelwise.check.findings import CheckedDoc, Correction, Place
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.surface_forms import SurfaceForms

What = Literal["first word", "last word"]
MIN_TIMES = 3  # occurrences of each boundary
MAX_FINDINGS = 1000  # findings of one label, edge and kind of word
PRIOR = 1.0
HYPHENS = frozenset("-‐‑–")


class Edge(NamedTuple):
    """A word at a span's edge, inside or just outside.

    word, kind (str): lower-case word, and its kind.
    other (tuple): start and end of the span without the word, or with it.
    """

    what: What
    word: str
    kind: str
    inside: bool
    other: tuple[int, int]


class Inconsistencies:
    """Finds inconsistent boundaries in two passes: count edges, then list the rarer boundaries."""

    def __init__(self, forms: SurfaceForms) -> None:
        self.forms = forms
        self._counts: Counter[tuple[int, What, str, bool]] = Counter()
        self._listed: Counter[tuple[int, What, str]] = Counter()

    def count(self, doc: StoredDoc) -> None:
        """Count the edges of a text's spans, after all surface forms."""
        for place, edge in self._edges(doc):
            for name in {edge.word, edge.kind}:
                self._counts[place[2], edge.what, name, edge.inside] += 1

    def find(self, checked: CheckedDoc) -> Iterator[Finding]:
        """Yield the spans of a text with the rarer boundaries, after all texts were counted."""
        for place, edge in self._edges(checked.stored):
            label, ways, name = place[2], (edge.inside, not edge.inside), (place[2], edge.what, edge.kind)
            so, otherwise = (self._counts[*name, way] for way in ways)
            rarer = so < otherwise or (so == otherwise and edge.inside)
            if not rarer or so < MIN_TIMES or self._listed[name] >= MAX_FINDINGS:
                continue
            here, there = (self._counts[label, edge.what, edge.word, way] for way in ways)
            prior = [PRIOR * (n + 0.5) / (so + otherwise + 1) for n in (otherwise, so)]
            score = log((there + prior[0]) / (here - 1 + prior[1]))
            if score <= 0:
                continue
            self._listed[name] += 1
            often = here + there >= 2 * MIN_TIMES
            word, counts = (edge.word, (here, there)) if often else (edge.kind, (so, otherwise))
            inside, outside = map(times, counts if edge.inside else counts[::-1])
            why = f"{word!r} as the {edge.what} of {self.forms.labels[label]}: inside {inside}, outside {outside}"
            correction = Correction(place, (*edge.other, label), score)
            yield finding_of(checked, correction, self.forms.labels, why=why)

    def _edges(self, doc: StoredDoc) -> list[tuple[Place, Edge]]:
        """List the edges of a text's spans whose other boundaries are annotated elsewhere.

        If both are spans of this text, one is nested in the other, and the annotator means both.
        """
        words = [doc.strings[word] for word in doc.words.tolist()]
        spans = set(self.forms.spans(doc))
        candidates = [(span, edge) for span in sorted(spans) for edge in edges(words, span[0], span[1])]
        others = {(span, edge): (*edge.other, span[2]) for span, edge in candidates}
        counts = self.forms.counts(doc, sorted({*others.values()} - spans))
        return [pair for pair in candidates if counts.get(others[pair], (0, 0))[0]]


def edges(words: Sequence[str], start: int, end: int) -> Iterator[Edge]:
    """Yield the words at a span's edges: first and last inside, and the neighbors outside.

    A hyphen that joins the word to the rest belongs to it.
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

"""Where annotation doesn't agree on what belongs to a span: the words at its edges.

Some spans of a label begin (or end) with a word that others with the same head stop short of: a determiner, a number, a
unit, punctuation, the part before a hyphen. All numbers count as one word, "0". None of that is wrong by itself: a
policy decides, and the rarer way is what there is to change. Spans without letters and digits are listed, too.
"""

import re
from collections.abc import Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from spacy.strings import get_string_id

from labelwise.check.deck import Finding, finding_of
from labelwise.check.findings import Correction, Place
from labelwise.check.folds import CheckedDoc
from labelwise.common.wording import counted
from labelwise.corpus.counts import Counts
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.forms import Forms

What = Literal["first word", "last word", "no letters"]
FEWEST = 3  # times that each way must have been taken
MOST = 100  # findings of an inconsistency
HYPHENS = frozenset("-‐‑–")
DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


class Inconsistency(msgspec.Struct, frozen=True, order=True):
    """Two ways to annotate.

    word (str): the word at the edge, "…-" or "-…" for a part of a word with hyphens; or the form.
    taken_in, left_out (int): times that the word is in the span, or just outside.
    """

    label: str
    what: What
    word: str
    taken_in: int
    left_out: int

    @property
    def rarer(self) -> int:
        """How often the rarer way was taken: what there is to change."""
        return min(self.taken_in, self.left_out)

    def __str__(self) -> str:
        """Say what is inconsistent."""
        if self.what == "no letters":
            return f"{self.word!r} has neither letters nor digits, and is {self.label}"
        ways = f"inside {counted(self.taken_in, 'time')}, outside {counted(self.left_out, 'time')}"
        return f"{self.word!r} as the {self.what} of {self.label}: {ways}"


class Edge(NamedTuple):
    """A word at a span's edge, inside or just outside, and where the span would be the other way."""

    what: What
    word: str
    inside: bool
    other: tuple[int, int]


class Inconsistencies:
    """Finds ways that don't agree, in two passes: edges to count, and what to list."""

    def __init__(self, forms: Forms) -> None:
        """Take what counts forms."""
        self.forms = forms
        self._edges_counted = Counts()
        self._found: dict[Inconsistency, list[Finding]] = {}

    def count(self, doc: StoredDoc) -> None:
        """Count a text's edges, once it is known how often forms are marked."""
        self._edges_counted.add(_keys([(place[2], edge, edge.inside) for place, edge in self._edges(doc)]))

    def add(self, checked: CheckedDoc) -> None:
        """List what went the rarer way in a text, once everything is counted."""
        doc, labels = checked.stored, self.forms.labels
        found = list(self._edges(doc))
        ways = (
            self._edges_counted.of(_keys([(place[2], edge, way) for place, edge in found])).tolist()
            for way in (True, False)
        )
        for (place, edge), taken_in, left_out in zip(found, *ways, strict=True):
            inconsistency = Inconsistency(labels[place[2]], edge.what, edge.word, taken_in, left_out)
            if inconsistency.rarer >= FEWEST and edge.inside == (taken_in <= left_out):
                self._list(checked, inconsistency, place, (*edge.other, place[2]))
        for place in self.forms.spans(doc):
            form = " ".join(_words(doc, place))
            if not any(char.isalnum() for char in form):
                self._list(checked, Inconsistency(labels[place[2]], "no letters", form, 1, 0), place, None)

    def found(self) -> dict[Inconsistency, list[Finding]]:
        """List the inconsistencies, those with the most to change first, each with what went the rarer way."""
        return dict(sorted(self._found.items(), key=lambda item: (-item[0].rarer, item[0])))

    def _list(self, doc: CheckedDoc, about: Inconsistency, current: Place | None, proposed: Place | None) -> None:
        listed = self._found.setdefault(about, [])
        if len(listed) < MOST:
            score = log((max(about.taken_in, about.left_out) + 0.5) / (about.rarer + 0.5))
            correction = Correction(current, proposed, score)
            listed.append(finding_of(doc, correction, self.forms.labels, why=str(about)))

    def _edges(self, doc: StoredDoc) -> list[tuple[Place, Edge]]:
        """List the edges of a text's spans, where what the span would be the other way is marked elsewhere.

        Where it is a span of the text itself, one is nested in the other: the annotator means both.
        """
        words = [doc.strings[word] for word in doc.words.tolist()]
        spans = set(self.forms.spans(doc))
        every = [(span, edge) for span in sorted(spans) for edge in edges(words, span[0], span[1])]
        found = [(span, edge) for span, edge in every if (*edge.other, span[2]) not in spans]
        forms = self.forms.form_keys(doc, [edge.other for _, edge in found])
        marked = self.forms.marked.of(self.forms.keys(forms, np.array([span[2] for span, _ in found], int)))
        return [pair for pair, times in zip(found, marked.tolist(), strict=True) if times]


def edges(words: Sequence[str], start: int, end: int) -> Iterator[Edge]:
    """Yield the words at a span's edges: the first and the last one inside, and its neighbours outside.

    Where a hyphen joins the word to the rest, both are taken in or left out.
    """
    if end - start > 1:
        hyphen = end - start > 2 and words[start + 1] in HYPHENS
        yield Edge("first word", "…-" if hyphen else _general(words[start]), True, (start + 1 + hyphen, end))
        hyphen = end - start > 2 and words[end - 2] in HYPHENS
        yield Edge("last word", "-…" if hyphen else _general(words[end - 1]), True, (start, end - 1 - hyphen))
    if start > 0:
        hyphen = start > 1 and words[start - 1] in HYPHENS
        yield Edge("first word", "…-" if hyphen else _general(words[start - 1]), False, (start - 1 - hyphen, end))
    if end < len(words):
        hyphen = end < len(words) - 1 and words[end] in HYPHENS
        yield Edge("last word", "-…" if hyphen else _general(words[end]), False, (start, end + 1 + hyphen))


def _general(word: str) -> str:
    """Write a word so that it is the same in upper case, and whatever its number is."""
    return DIGITS.sub("0", word.lower())


def _keys(found: Sequence[tuple[int, Edge, bool]]) -> np.ndarray:
    """Digest edges with the labels of their spans and a way, inside or outside."""
    return np.array(
        [get_string_id(f"{number}\t{edge.what}\t{edge.word}\t{way}") for number, edge, way in found], np.uint64
    )


def _words(doc: StoredDoc, place: Place) -> list[str]:
    return [doc.strings[word] for word in doc.words[place[0] : place[1]].tolist()]

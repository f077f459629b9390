"""Where annotation doesn't agree on what belongs to a span: words at its edges, and the plural.

An edge: some spans of a label begin (or end) with a word that others with the same head stop short of: a determiner, a
number, a unit, punctuation, the part before a hyphen. All numbers count as one word, "0". A plural: a form is marked
with a label, and the same form in the other number (plates, boxes, antibodies) is left unmarked.

None of that is wrong by itself. It is for a policy to decide, and the rarer way is what there is to change. Spans that
have neither letters nor digits are listed, too.
"""

import re
from collections.abc import Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from spacy.strings import get_string_id

from labelwise.check.findings import Correction, Place
from labelwise.check.folds import CheckedDoc
from labelwise.check.worklists import Finding, finding_of
from labelwise.corpus.counts import Counts
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.forms import Forms, digest

What = Literal["first word", "last word", "plural", "no letters"]
FEWEST = 3  # times that each way must have been taken
CLEAR = 2  # how many times as often as the other way one must be taken, for a form to be marked, or left unmarked
MOST = 100  # findings of an inconsistency
HYPHENS = frozenset("-‐‑–")
HISSING = ("ss", "x", "zz", "ch", "sh")  # what takes -es in the plural
VOWEL_Y = ("ay", "ey", "oy", "uy")
DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


class Inconsistency(msgspec.Struct, frozen=True, order=True):
    """Two ways to annotate.

    word (str): the word at the edge, "…-" or "-…" for a part of a word with hyphens; or the form, with "(s)".
    taken_in, left_out (int): times that the word is in the span, or just outside; that a form is marked, or not.
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
        ways = f"{self.taken_in:,} times; {self.left_out:,} times"
        if self.what == "plural":
            return f"{self.word}: in one number it is {self.label}, {ways}, in the other one, it isn't"
        return f"{self.word!r} is the {self.what} of {self.label} {ways} it is left out"


class Edge(NamedTuple):
    """A word at a span's edge, inside or just outside, and where the span would be the other way."""

    what: What
    word: str
    inside: bool
    other: tuple[int, int]


class Inconsistencies:
    """Finds ways that don't agree, in three passes: plurals to look for, edges to count, and what to list."""

    def __init__(self, forms: Forms) -> None:
        """Take what counts forms."""
        self.forms = forms
        self._edges_counted = Counts()
        self._found: dict[Inconsistency, list[Finding]] = {}

    def look_for(self, doc: StoredDoc) -> None:
        """Have the other number of a text's forms looked for."""
        spans = self.forms.spans(doc)
        self.forms.look_for_keys(_other_numbers(doc, spans), np.array([number for *_, number in spans], int))

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
        for place, marked, unmarked, is_marked in self._plurals(doc):
            inconsistency = Inconsistency(labels[place[2]], "plural", _stem(doc, place), marked, unmarked)
            if inconsistency.rarer >= FEWEST and is_marked == (marked <= unmarked):
                self._list(checked, inconsistency, *((place, None) if is_marked else (None, place)))
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

    def _plurals(self, doc: StoredDoc) -> Iterator[tuple[Place, int, int, bool]]:
        """Yield places whose form is marked and the other number isn't, or the other way round.

        YIELDS (tuple): a place, how often the one number is marked, and the other one isn't, and which of both it is.
        """
        free = self.forms.occurrences(doc)
        places = self.forms.spans(doc)
        count = len(places)
        places += zip(free.starts.tolist(), free.ends.tolist(), free.labels.tolist(), strict=True)
        numbers = np.array([number for *_, number in places], int)
        here = self._counts(self.forms.form_keys(doc, places), numbers)
        there = self._counts(_other_numbers(doc, places), numbers)
        for position, (place, one, other) in enumerate(zip(places, here, there, strict=True)):
            is_marked = position < count
            (marked, free_times), (marked_too, unmarked) = (one, other) if is_marked else (other, one)
            if marked > CLEAR * free_times and unmarked > CLEAR * marked_too:
                yield place, marked, unmarked, is_marked

    def _counts(self, forms: np.ndarray, numbers: np.ndarray) -> list[tuple[int, int]]:
        """Tell how often forms are marked with labels, and free."""
        keys = self.forms.keys(forms, numbers)
        return list(zip(self.forms.marked.of(keys).tolist(), self.forms.free.of(keys).tolist(), strict=True))


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


def _other_numbers(doc: StoredDoc, places: Sequence[Place]) -> np.ndarray:
    """Digest the words of spans with the last one in the other number."""
    digests = []
    for start, end, _ in places:
        last = doc.strings[int(doc.words[end - 1])]
        singular, plural = numbers(last)
        other = singular if last == plural else plural
        digests.append(digest(np.append(doc.words[start : end - 1], np.uint64(get_string_id(other)))))
    return np.array(digests, np.uint64)


def numbers(word: str) -> tuple[str, str]:
    """Guess the singular and the plural of an English word, one of which it is.

    >>> numbers("plate"), numbers("boxes"), numbers("antibody"), numbers("days"), numbers("glass")
    (('plate', 'plates'), ('box', 'boxes'), ('antibody', 'antibodies'), ('day', 'days'), ('glass', 'glasses'))
    """
    if word.endswith("ies"):
        return word[:-3] + "y", word
    if word.endswith(tuple(ending + "es" for ending in HISSING)):
        return word[:-2], word
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1], word
    if word.endswith(HISSING):
        return word, word + "es"
    if word.endswith("y") and not word.endswith(VOWEL_Y):
        return word, word[:-1] + "ies"
    return word, word + "s"


def _stem(doc: StoredDoc, place: Place) -> str:
    *words, last = [word.lower() for word in _words(doc, place)]
    singular, plural = numbers(last)
    return " ".join([*words, f"{singular}(s)" if plural == singular + "s" else f"{singular}/{plural}"])


def _words(doc: StoredDoc, place: Place) -> list[str]:
    return [doc.strings[word] for word in doc.words[place[0] : place[1]].tolist()]

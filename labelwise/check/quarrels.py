"""Where annotation doesn't agree on what belongs to a span: words at its edges, and the plural.

An edge: some spans of a label begin (or end) with a word that others with the same head stop short of: a determiner, a
number, a unit, punctuation, the part before a hyphen. All numbers count as one word, "0". A plural: a form is marked
with a label, and the same form with an s, or without it, is left unmarked.

None of that is wrong by itself. It is for a policy to decide, and the rarer way is what there is to change.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Literal, NamedTuple

import numpy as np
from spacy.strings import get_string_id

from labelwise.check.findings import Candidate, Place
from labelwise.check.folds import CheckedDoc
from labelwise.check.kept import finding_of
from labelwise.check.worklists import Finding
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.forms import Forms, digest

What = Literal["first word", "last word", "plural"]
FEWEST = 3  # times that each way must have been taken
CLEAR = 2  # how many times as often as the other way one must be taken, for a form to be marked, or left unmarked
MOST = 20  # findings of a quarrel
HYPHENS = frozenset("-‐‑–")
DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


class Quarrel(NamedTuple):
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
        """Say what is quarrelled about."""
        times = f"{self.taken_in:,} times, and {self.left_out:,} times"
        if self.what == "plural":
            return f"{self.word} is {self.label} {times} it isn't, with the s or without"
        return f"{self.word!r} is the {self.what} of {self.label} {times} just outside"


class Edge(NamedTuple):
    """A word at a span's edge, inside or just outside, and where the span would be the other way."""

    what: What
    word: str
    inside: bool
    other: tuple[int, int]


@dataclass(slots=True)
class _Ways:
    """How often each way was taken, taken in or left out, with examples."""

    counts: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    examples: dict[bool, list[Finding]] = field(default_factory=lambda: {True: [], False: []})


class Quarrels:
    """Has plurals looked for in a first pass; counts and collects in another one, once all forms are counted."""

    def __init__(self, forms: Forms) -> None:
        """Take what counts forms."""
        self.forms = forms
        self._ways: dict[tuple[str, What, str], _Ways] = {}

    def look_for(self, doc: StoredDoc) -> None:
        """Have the other number of a text's forms looked for."""
        spans = self.forms.spans(doc)
        self.forms.look_for_keys(_other_numbers(doc, spans), np.array([number for *_, number in spans], int))

    def add(self, checked: CheckedDoc) -> None:
        """Count and collect both ways in a text."""
        for place, edge in self._edges(checked.stored):
            self._add(checked, place, (*edge.other, place[2]), edge.what, edge.word, edge.inside)
        for place, is_marked in self._plurals(checked.stored):
            current, proposed = (place, None) if is_marked else (None, place)
            self._add(checked, current, proposed, "plural", _stem(checked.stored, place), is_marked)

    def found(self) -> dict[Quarrel, list[Finding]]:
        """List the quarrels, those with the most to change first, each with what went the rarer way."""
        found = {}
        for name, ways in self._ways.items():
            quarrel = Quarrel(*name, ways.counts[True], ways.counts[False])
            if quarrel.rarer < FEWEST:
                continue
            found[quarrel] = ways.examples[quarrel.taken_in <= quarrel.left_out]
            for one in found[quarrel]:
                one.why = str(quarrel)
                one.score = round(log((max(quarrel[3:]) + 0.5) / (quarrel.rarer + 0.5)), 4)
        return dict(sorted(found.items(), key=lambda item: (-item[0].rarer, item[0])))

    def _add(
        self, doc: CheckedDoc, current: Place | None, proposed: Place | None, what: What, word: str, way: bool
    ) -> None:
        about = current or proposed
        if about is None:
            return
        ways = self._ways.setdefault((self.forms.labels[about[2]], what, word), _Ways())
        ways.counts[way] += 1
        if len(ways.examples[way]) < MOST:
            ways.examples[way].append(finding_of(doc, Candidate(current, proposed, 0.0), self.forms.labels))

    def _edges(self, doc: StoredDoc) -> Iterator[tuple[Place, Edge]]:
        """Yield the edges of a text's spans, where what the span would be the other way is marked elsewhere."""
        words = [doc.strings[word] for word in doc.words.tolist()]
        found = [(span, edge) for span in self.forms.spans(doc) for edge in edges(words, span[0], span[1])]
        forms = self.forms.form_keys(doc, [edge.other for _, edge in found])
        marked = self.forms.marked.of(self.forms.keys(forms, np.array([span[2] for span, _ in found], int)))
        yield from (pair for pair, times in zip(found, marked.tolist(), strict=True) if times)

    def _plurals(self, doc: StoredDoc) -> Iterator[tuple[Place, bool]]:
        """Yield places whose form is marked and the other number isn't, or the other way round; and which it is."""
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
                yield place, is_marked

    def _counts(self, forms: np.ndarray, numbers: np.ndarray) -> list[tuple[int, int]]:
        """Tell how often forms are marked with labels, and free."""
        keys = self.forms.keys(forms, numbers)
        return list(zip(self.forms.marked.of(keys).tolist(), self.forms.free.of(keys).tolist(), strict=True))


def edges(words: Sequence[str], start: int, end: int) -> Iterator[Edge]:
    """Yield the words at a span's edges: the first and the last one inside, and its neighbours outside."""
    if end - start > 2 and words[start + 1] in HYPHENS:
        yield Edge("first word", "…-", True, (start + 2, end))
    elif end - start > 1:
        yield Edge("first word", _general(words[start]), True, (start + 1, end))
    if end - start > 2 and words[end - 2] in HYPHENS:
        yield Edge("last word", "-…", True, (start, end - 2))
    elif end - start > 1:
        yield Edge("last word", _general(words[end - 1]), True, (start, end - 1))
    if start > 1 and words[start - 1] in HYPHENS:
        yield Edge("first word", "…-", False, (start - 2, end))
    elif start > 0:
        yield Edge("first word", _general(words[start - 1]), False, (start - 1, end))
    if end < len(words) - 1 and words[end] in HYPHENS:
        yield Edge("last word", "-…", False, (start, end + 2))
    elif end < len(words):
        yield Edge("last word", _general(words[end]), False, (start, end + 1))


def _general(word: str) -> str:
    """Write a word so that it is the same in upper case, and whatever its number is."""
    return DIGITS.sub("0", word.lower())


def _other_numbers(doc: StoredDoc, places: Sequence[Place]) -> np.ndarray:
    """Digest the words of spans with an s more at the end, or without the one that is there."""
    digests = []
    for start, end, _ in places:
        last = doc.strings[int(doc.words[end - 1])]
        other = last[:-1] if last.endswith("s") else last + "s"
        digests.append(digest(np.append(doc.words[start : end - 1], np.uint64(get_string_id(other)))))
    return np.array(digests, np.uint64)


def _stem(doc: StoredDoc, place: Place) -> str:
    words = [doc.strings[word] for word in doc.words[place[0] : place[1]].tolist()]
    return " ".join(words).removesuffix("s") + "(s)"

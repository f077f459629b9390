"""Count surface forms, which are sequences of words, annotated with a label and unannotated.

An occurrence is unannotated for a label if the text is complete for the label, it overlaps no span of the label, and it
isn't inside a longer span of another label. Tokens are compared as written; single spaces between them don't count.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.strings import get_string_id

from labelwise.corpus.docbin_reader import StoredDoc, TokenSpan

MAX_WORDS = 8  # of a form to look for
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio: neighboring numbers get distant digests
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)


class HashCounter:
    """Counts of 64-bit keys in 16 bytes each; of a million, two collide with a chance of 1 in 10^7."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.counts = np.zeros(0, np.int64)
        self._waiting: list[np.ndarray] = []

    def add(self, keys: np.ndarray) -> None:
        """Count keys, as often as they occur."""
        self._waiting.append(keys.astype(np.uint64, copy=False))

    def of(self, keys: np.ndarray) -> np.ndarray:
        """Return each key's count."""
        self._count()
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.counts[places], 0)

    def _count(self) -> None:
        if not self._waiting:
            return
        new = np.concatenate(self._waiting)
        self._waiting = []
        weights = np.concatenate([self.counts, np.ones(len(new), np.int64)])
        self.keys, places = np.unique(np.concatenate([self.keys, new]), return_inverse=True)
        self.counts = np.bincount(places, weights, minlength=len(self.keys)).astype(np.int64)


class Occurrences(NamedTuple):
    """Unannotated occurrences: start and end in tokens, number of the label, key of form and label."""

    starts: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    keys: np.ndarray


class SurfaceForms:
    """Counts of annotated (`marked`) and unannotated (`free`) occurrences of surface forms, by label."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = list(labels)
        self.hashes = np.array([get_string_id(label) for label in labels], np.uint64)
        self.number = {int(value): number for number, value in enumerate(self.hashes)}
        self.marked = HashCounter()
        self.free = HashCounter()
        self._forms = HashCounter()
        self._wanted = HashCounter()

    def look_for(self, doc: StoredDoc) -> None:
        """Want the surface forms of a text's accepted spans, with their labels."""
        spans = self.spans(doc)
        self.want(self.form_keys(doc, spans), np.array([number for *_, number in spans], int))

    def want(self, forms: np.ndarray, labels: np.ndarray) -> None:
        """Want digests of surface forms, with label numbers."""
        self._forms.add(forms)
        self._wanted.add(self.keys(forms, labels))

    def mark(self, doc: StoredDoc) -> None:
        """Count a text's annotated surface forms."""
        self.marked.add(self.keys_of(doc, self.spans(doc)))

    def release(self, doc: StoredDoc) -> None:
        """Count a text's unannotated occurrences of wanted surface forms."""
        self.free.add(self.occurrences(doc).keys)

    def spans(self, doc: StoredDoc) -> list[TokenSpan]:
        """List the distinct accepted spans of a text, with label numbers."""
        return sorted({(start, end, self.number[label]) for start, end, label in doc.gold if label in self.number})

    def form_keys(self, doc: StoredDoc, spans: Iterable[Sequence[int]]) -> np.ndarray:
        """Digest the words of spans."""
        return np.array([digest(doc.words[start:end]) for start, end, *_ in spans], np.uint64)

    def keys_of(self, doc: StoredDoc, spans: Sequence[TokenSpan]) -> np.ndarray:
        """Digest the words of spans with their labels."""
        return self.keys(self.form_keys(doc, spans), np.array([number for *_, number in spans], int))

    def counts(self, doc: StoredDoc, spans: Sequence[TokenSpan]) -> dict[TokenSpan, tuple[int, int]]:
        """Return each span's counts: surface form with its label, and unannotated."""
        keys = self.keys_of(doc, spans)
        both = zip(self.marked.of(keys).tolist(), self.free.of(keys).tolist(), strict=True)
        return dict(zip(spans, both, strict=True))

    def marked_as(self, doc: StoredDoc, spans: Iterable[Sequence[int]]) -> np.ndarray:
        """Count the surface form of each span by label, shape (spans, labels)."""
        return self.marked.of(self.keys(self.form_keys(doc, spans)[:, None], np.arange(len(self.labels))))

    def keys(self, forms: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Digest surface forms with labels."""
        with np.errstate(over="ignore"):
            return (forms * _FACTOR) ^ (self.hashes[labels] * _OTHER)  # no zero where a word is its own label

    def occurrences(self, doc: StoredDoc) -> Occurrences:
        """Find the unannotated occurrences of wanted surface forms.

        In the tokens `New York beats New York`, the first two are a span of CITY, and its surface form (New, York)
        occurs at 0 and at 3. The latter is unannotated: `taken[CITY]`, the number of tokens in spans before each token,
        is [0, 1, 2, 2, 2, 2], equal at its start, 3, and behind its end, 5. If `York` alone were wanted, 1 wouldn't
        count for any label: a span that begins earlier reaches to 2, so `York` is part of it (`_reach`).
        """
        unknown = doc.annotation.uncovered
        known = np.array([number for number, label in enumerate(self.labels) if label not in unknown], int)
        taken = np.zeros((len(self.labels), len(doc) + 1), np.int64)
        for start, end, number in self.spans(doc):
            taken[number, start + 1 : end + 1] = 1
        taken = np.cumsum(taken, axis=1)
        at, before = self._reach(doc)
        none = np.zeros(0, int)
        parts: list[tuple[np.ndarray, ...]] = [(none, none, none, none.astype(np.uint64))]
        for length, forms in enumerate(ngrams(doc.words, MAX_WORDS), 1):
            starts = np.flatnonzero(self._forms.of(forms))
            if not len(starts) or not len(known):
                continue
            place, label = np.meshgrid(starts, known, indexing="ij")
            place, label = place.ravel(), label.ravel()
            keys = self.keys(forms[place], label)
            free = taken[label, place + length] == taken[label, place]
            part = (before[place] >= place + length) | (at[place] > place + length)
            counted = (self._wanted.of(keys) > 0) & free & ~part
            parts.append((place[counted], place[counted] + length, label[counted], keys[counted]))
        return Occurrences(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _reach(self, doc: StoredDoc) -> tuple[np.ndarray, np.ndarray]:
        """Return, per token, the furthest end of spans starting there, and of spans starting before."""
        at = np.zeros(len(doc) + 1, int)
        for start, end, _ in self.spans(doc):
            at[start] = max(at[start], end)
        return at, np.append(0, np.maximum.accumulate(at)[:-1])


def digest(words: np.ndarray) -> np.uint64:
    """Digest a sequence of word hashes."""
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for word in words:
            total = (total * _FACTOR) ^ (np.uint64(word) * _OTHER)
    return total


def ngrams(words: np.ndarray, longest: int) -> Iterable[np.ndarray]:
    """Yield, for each length from 1, the digests of all n-grams, by their first word."""
    words = words.astype(np.uint64)
    totals = np.zeros(len(words), np.uint64)
    for length in range(1, min(longest, len(words)) + 1):
        with np.errstate(over="ignore"):
            totals = (totals[: len(words) - length + 1] * _FACTOR) ^ (words[length - 1 :] * _OTHER)
        yield totals

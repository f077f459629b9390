"""Forms that annotators marked variously, and where: their occurrences in train and dev, with the words around them.

A form is here if test has mistakes about it, and train marks it in some places and not in others. In this order:

1. a pass over test and its predictions: the forms of what was missed, or predicted wrongly, are looked for;
2. a pass over train, which counts how often each is marked, and how often it is free;
3. a pass over train and dev, which keeps some occurrences of those with the most mistakes;
4. a pass over `places.jsonl`, for data set, file and line of each.

Nothing is shown of test. Which occurrences are kept is decided by a digest of where they are.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from labelwise.corpus.docbin_reader import StoredDoc, TokenSpan, read_stored_docs
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import find_partitions, partitions_of
from labelwise.corpus.places import Declared, read_declared
from labelwise.evaluate.familiarity import NOW_AND_THEN
from labelwise.evaluate.predictions import read_predictions
from labelwise.report.occurrences import Occurrence, Words, locate

MOST_FORMS = 200
MOST = 50  # occurrences of a form
SHOWN = (MOST, 30, 20, 12, 6)  # as many of them as fit


class VariousForm(msgspec.Struct):
    """A form that is marked with a label in some places, and not in others.

    mistakes (int): on test, about this form and label.
    marked, unmarked (int): times in train and dev.
    ways (tuple): occurrences that are marked, and that aren't, as a digest has chosen them.
    """

    form: str
    label: str
    mistakes: int
    marked: int
    unmarked: int
    ways: tuple[list[Occurrence], list[Occurrence]]

    def with_at_most(self, most: int) -> "VariousForm":
        """Keep so many occurrences, of both ways as many if they are there, sorted by what stands beside them."""
        marked, unmarked = map(len, self.ways)
        first = min(marked, max(most // 2, most - unmarked))
        ways = self.ways[0][:first], self.ways[1][: most - first]
        shown = [sorted(way, key=lambda one: (one.neighbours, one.key, one.offset)) for way in ways]
        return msgspec.structs.replace(self, ways=(shown[0], shown[1]))


def json_in_page(content: Any) -> bytes:
    """Write JSON without the character that could end the element of a page that it stands in."""
    return msgspec.json.encode(content).replace(b"<", b"\\u003c")


class Concordance(msgspec.Struct):
    """The forms that are marked variously, those with the most mistakes first.

    others (int): forms that aren't among them.
    declared (Declared): what each data set declares.
    """

    forms: list[VariousForm]
    others: int = 0
    declared: Declared = msgspec.field(default_factory=lambda: Declared({}))

    def fitting(self, size: int) -> "Concordance":
        """Leave out occurrences, then forms, until no more than `size` bytes of JSON are left."""
        for most in SHOWN:
            forms = [form.with_at_most(most) for form in self.forms]
            sizes = 1 + np.cumsum([len(json_in_page(form)) + 1 for form in forms])
            if sum(sizes[-1:]) <= size:
                break
        kept = int((sizes <= size).sum())
        return msgspec.structs.replace(self, forms=forms[:kept], others=self.others + len(forms) - kept)


def find_various(corpus: Path, predictions: Path, labels: Sequence[str]) -> Concordance:
    """Find the forms that are marked variously, with occurrences.

    labels (Sequence[str]): all labels.
    RAISES (InputError): a file isn't what it should be.
    """
    forms = Forms(labels)
    mistakes: Counter[int] = Counter()
    parts: dict[int, tuple[int, int]] = {}  # the digest of a form's words, and the number of its label
    for stored, spans in _read_wrong(forms, corpus / "test", predictions):
        forms.look_for(stored, spans)
        keys = _keys(forms, stored, spans)
        mistakes.update(keys)
        digests = forms.form_keys(stored, spans).tolist()
        parts |= zip(keys, zip(digests, [number for *_, number in spans], strict=True), strict=True)
    for stored in _read(corpus, "train"):
        forms.mark(stored)
        forms.release(stored)
    ranked = _rank(forms, mistakes)
    gathering = _Gathering(labels, {key: parts[key] for key in ranked[:MOST_FORMS]})
    for split in ("train", "dev"):
        for stored in _read(corpus, split):
            gathering.add(stored)
    found = gathering.found(mistakes)
    declared = read_declared(corpus)
    occurrences = ((form.label, one) for form in found for way in form.ways for one in way)
    locate(occurrences, declared.labels, corpus)
    return Concordance(found, len(ranked) - len(found), declared)


def _read(corpus: Path, split: str) -> Iterator[StoredDoc]:
    return (doc for file in partitions_of(corpus, split) for doc in read_stored_docs(file))


def _read_wrong(forms: Forms, split: Path, predictions: Path) -> Iterator[tuple[StoredDoc, list[TokenSpan]]]:
    """Yield the texts of a split, each with the spans that are predicted or gold, and not both."""
    stored_docs = (doc for file in find_partitions(split) for doc in read_stored_docs(file))
    for stored, doc in zip(stored_docs, read_predictions(predictions), strict=True):
        number_of = {label: number for number, label in enumerate(forms.labels)}
        wrong = sorted(doc.scored(doc.gold) ^ doc.scored(doc.predicted))
        places = zip(stored.in_tokens(wrong), wrong, strict=True)
        yield stored, [(*place, number_of[span[2]]) for place, span in places if place and span[2] in number_of]


def _keys(forms: Forms, stored: StoredDoc, spans: Sequence[TokenSpan]) -> list[int]:
    return forms.keys(forms.form_keys(stored, spans), np.array([number for *_, number in spans], int)).tolist()


def _rank(forms: Forms, mistakes: Mapping[int, int]) -> list[int]:
    """List the forms that train marks variously: those with the most mistakes first, then where most would change."""
    keys = np.fromiter(mistakes, np.uint64, len(mistakes))
    marked, free = forms.marked.of(keys), forms.free.of(keys)
    various = np.flatnonzero((marked > 0) & (free > NOW_AND_THEN * marked))
    rarer = np.minimum(marked, free)
    ranked = sorted((-mistakes[int(keys[at])], -int(rarer[at]), int(keys[at])) for at in various.tolist())
    return [key for *_, key in ranked]


class _Gathering:
    """Keeps some occurrences of forms, marked and free ones."""

    def __init__(self, labels: Sequence[str], keys: Mapping[int, tuple[int, int]]) -> None:
        self.forms = Forms(labels)
        for digest, number in keys.values():
            self.forms.look_for_keys(np.array([digest], np.uint64), np.array([number]))
        self._labels = {key: labels[number] for key, (_, number) in keys.items()}
        self._counts = {key: [0, 0] for key in keys}
        self._heaps: dict[int, tuple[list, list]] = {key: ([], []) for key in keys}

    def add(self, stored: StoredDoc) -> None:
        """Take the occurrences in a text."""
        spans = self.forms.spans(stored)
        free = self.forms.occurrences(stored)
        places = list(zip(free.starts.tolist(), free.ends.tolist(), free.labels.tolist(), strict=True))
        wanted = [
            (place, key, way)
            for way, (here, keys) in enumerate(
                [(spans, _keys(self.forms, stored, spans)), (places, free.keys.tolist())]
            )
            for place, key in zip(here, keys, strict=True)
            if key in self._counts
        ]
        if not wanted:
            return
        text = Words(stored)
        for place, key, way in wanted:
            label = self.forms.labels[place[2]]
            self._counts[key][way] += 1
            rank = -int.from_bytes(hashlib.blake2b(f"{text.key} {place}".encode(), digest_size=6).digest())
            heap = self._heaps[key][way]
            if len(heap) < MOST or rank > heap[0][0]:
                push = heapq.heappush if len(heap) < MOST else heapq.heapreplace
                push(heap, (rank, text.occurrence(*place[:2], label)))

    def found(self, mistakes: Mapping[int, int]) -> list[VariousForm]:
        """List the forms, in the order in which they were given, with their occurrences as chosen by digest."""
        various = []
        for key, heaps in self._heaps.items():
            marked, unmarked = ([one for _, one in sorted(heap, reverse=True)] for heap in heaps)
            one, counts = marked[0], self._counts[key]
            form = " ".join("".join(one.words[one.first : one.end]).split())
            ways = marked, unmarked
            various.append(VariousForm(form, self._labels[key], mistakes[key], counts[0], counts[1], ways))
        return various

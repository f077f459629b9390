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

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import StoredDoc, TokenSpan, read_stored_docs
from labelwise.corpus.forms import Forms
from labelwise.corpus.manifest import find_partitions, partitions_of
from labelwise.corpus.places import AnswerPlace, Declared, answer_digest, read_declared, read_places
from labelwise.evaluate.familiarity import NOW_AND_THEN
from labelwise.evaluate.predictions import read_predictions

MOST_FORMS = 200
MOST = 50  # occurrences of a form
SHOWN = (MOST, 30, 20, 12, 6)  # as many of them as fit
AROUND = 10  # words on either side
NOTHING = answer_digest(())
LONGEST_WORD = 200  # characters; the words around a form end before a longer one


class Occurrence(msgspec.Struct, array_like=True):
    """A place of a form, in the order in which the page's script takes it apart.

    key (str): of the text, in hexadecimal.
    answer (str): the digest of the data set's answer; see `places.answer_digest`; empty if none of its answers counts.
    file (str): with the line, if there is one.
    offset (int): where the words begin, in characters of the text.
    words (list[str]): the form and what is around it, each with the space that follows.
    first, end (int): the form, in words.
    other (str): labels of other spans there.
    """

    key: str
    doc: str
    dataset: str
    file: str
    answer: str
    offset: int
    words: list[str]
    first: int
    end: int
    other: str = ""

    @property
    def neighbours(self) -> tuple[str, str]:
        """What stands beside the form, by which occurrences are sorted."""
        before, after = self.words[: self.first][-1:], self.words[self.end : self.end + 1]
        return "".join(before).strip().lower(), "".join(after).strip().lower()

    @property
    def span(self) -> tuple[int, int]:
        """The form, in characters of the text."""
        start = self.offset + len("".join(self.words[: self.first]))
        return start, start + len("".join(self.words[self.first : self.end]).rstrip(" "))


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
    _locate(found, declared.labels, corpus)
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
        text = _Text(stored)
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


class _Text:
    """A text that has occurrences, taken apart once."""

    def __init__(self, stored: StoredDoc) -> None:
        self.annotation = stored.annotation
        self.words = [stored.strings[word] for word in stored.words.tolist()]
        self.spaces = stored.spaces.tolist()
        self.starts, self.ends = (array.tolist() for array in stored.offsets())
        self.key = text_key(stored.text.encode("utf8", "surrogatepass")).hex()

    def occurrence(self, start: int, end: int, label: str) -> Occurrence:
        """Take out the place of a form; its data set is known yet if it is marked."""
        first, last = _window(self.words, start, end)
        span = self.starts[start], self.ends[end - 1]
        here, other = "", set()
        for from_, to, marked_as, datasets in self.annotation.gold:
            if from_ < span[1] and span[0] < to:
                if marked_as != label:
                    other.add(marked_as)
                elif datasets and (from_, to) == span:
                    here = datasets[0]
        words = [self.words[at] + " " * self.spaces[at] for at in range(first, last)]
        place = start - first, end - first
        return Occurrence(
            self.key, self.annotation.doc, here, "", "", self.starts[first], words, *place, ", ".join(sorted(other))
        )


def _window(words: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Find the words around some; it ends before one that is too long to be shown."""
    first, last = start, end
    while first > max(0, start - AROUND) and len(words[first - 1]) <= LONGEST_WORD:
        first -= 1
    while last < min(len(words), end + AROUND) and len(words[last]) <= LONGEST_WORD:
        last += 1
    return first, last


def _locate(found: Sequence[VariousForm], declared: Mapping[str, Sequence[str]], corpus: Path) -> None:
    """Look up data set, file, line and answer of each occurrence."""
    wanted: dict[str, list[tuple[str, Occurrence]]] = {}
    for form in found:
        for one in (*form.ways[0], *form.ways[1]):
            wanted.setdefault(one.key, []).append((form.label, one))
    for text in read_places(corpus):
        for label, one in wanted.get(text.key, ()):
            for answer in text.answers:
                counts_for = answer.digests is not None and label in declared.get(answer.dataset, ())
                if counts_for and _is_about(answer, one):
                    one.dataset, one.file = answer.dataset, answer.of(one.span)
                    one.answer = (answer.digests or {}).get(label, NOTHING)
                    break


def _is_about(answer: AnswerPlace, one: Occurrence) -> bool:
    """Tell whether an answer is of the data set that a span is from, if it is from one, and about that place."""
    start, end = one.span
    of_it = not one.dataset or answer.dataset == one.dataset
    return of_it and (answer.judged is None or any(first < end and start < last for first, last in answer.judged))

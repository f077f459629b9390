"""Where a form occurs: its words, those around it, and the answer of a data set that is about it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.places import AnswerPlace, answer_digest, read_places

AROUND = 10  # words on either side
LONGEST_WORD = 200  # characters; the words around a form end before a longer one
NOTHING = answer_digest(())


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


class Words:
    """A text that has occurrences, taken apart once."""

    def __init__(self, stored: StoredDoc) -> None:
        """Take it apart."""
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


def locate(found: Iterable[tuple[str, Occurrence]], declared: Mapping[str, Sequence[str]], corpus: Path) -> None:
    """Look up data set, file, line and answer of each occurrence of a form that is about a label."""
    wanted: dict[str, list[tuple[str, Occurrence]]] = {}
    for label, one in found:
        wanted.setdefault(one.key, []).append((label, one))
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

"""Examples of mistakes with the text around them, a few for each kind and label, chosen in one pass over predictions.

Which ones is decided by a digest of where they are, so that the same predictions give the same examples, and a mistake
that stays in the next run is likely to stay an example.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import inf
from typing import NamedTuple
from unicodedata import category

from markupsafe import Markup
from spacy import displacy
from spacy.util import escape_html

from labelwise.common.spans import SpanKey
from labelwise.evaluate.mistakes import KINDS, Kind, SpanPair, Surface, pairs_of, surface_of
from labelwise.evaluate.predictions import PredictedDoc

MOST = 10  # examples for each kind and label
MOST_ALIKE = 3  # for each pattern, and for each frequent mistake
Pattern = tuple[Kind, str, str]  # what is alike of mistakes: the kind, the gold label and the predicted one
AROUND = 60  # characters shown on either side of a mistake
LONGEST = 600  # characters shown of a mistake itself
MARKS = ("Mn", "Mc", "Me")  # Unicode's categories of characters that combine with the one before
BYTES, MARK_BYTES = 900, 80  # of HTML for an example, and for a span in it, besides text and labels
MARK = '<mark class="{mark}">{text}<span class="label">{label}</span></mark>'


class Window(NamedTuple):
    """The text around a mistake, one line, and the spans in it; their offsets are those in the window.

    gold, predicted (list): spans that don't overlap, because they are shown in one line of text.
    hidden (int): spans that aren't shown, because they overlap one that is.
    doc (str): the document that the text is; empty if it has no name.
    """

    key: str
    kind: Kind
    text: str
    pair: SpanPair
    gold: list[SpanKey]
    predicted: list[SpanKey]
    hidden: int
    doc: str = ""

    @property
    def pattern(self) -> Pattern:
        """Its pattern."""
        return self.kind, *self.pair.labels

    @property
    def form(self) -> str:
        """The words that the mistake is about."""
        start, end, _ = self.pair.gold or self.pair.predicted or (0, 0, "")
        return " ".join(self.text[start:end].split())


class MistakeExample(NamedTuple):
    """A mistake to be shown.

    alike (int): all mistakes of its pattern.
    first (bool): of those of its pattern, it is the first.
    """

    window: Window
    alike: int
    first: bool


class MistakeExamples:
    """Keeps the examples with the smallest digests, and counts all mistakes by pattern.

    Besides those of each kind and label, there are some of each pattern, and of mistakes that are listed as frequent.
    """

    def __init__(self, most: int = MOST, frequent: Iterable[Surface] = ()) -> None:
        """Take how many examples to keep for each kind and label, and the mistakes that must have one."""
        self.most = most
        self.frequent = set(frequent)
        self.patterns: Counter[Pattern] = Counter()
        self._heaps: dict[tuple[str, ...], list[tuple[int, Window]]] = {}

    def add(self, doc: PredictedDoc) -> None:
        """Take the mistakes of a doc."""
        for pair in pairs_of(doc):
            if not (kind := pair.kind):
                continue
            pattern, surface = (kind, *pair.labels), surface_of(doc, pair)
            self.patterns[pattern] += 1
            groups: dict[tuple[str, ...], int] = {(kind, label): self.most for label in pair.labels if label}
            groups[pattern] = MOST_ALIKE
            if surface in self.frequent:
                groups[surface] = MOST_ALIKE
            self._keep(groups, doc, pair, kind)

    def _keep(self, groups: Mapping[tuple[str, ...], int], doc: PredictedDoc, pair: SpanPair, kind: Kind) -> None:
        """Keep an example of each group of which its digest is among the smallest, as many as the group may have."""
        rank = -digest(doc.key, pair)
        for group, most in groups.items():
            heap = self._heaps.setdefault(group, [])
            if len(heap) < most:
                heapq.heappush(heap, (rank, window_of(doc, pair, kind)))
            elif rank > heap[0][0]:
                heapq.heapreplace(heap, (rank, window_of(doc, pair, kind)))

    def chosen(self, size: float = inf) -> list[MistakeExample]:
        """List an example of each pattern, the most frequent first, and then the others by kind and digest.

        size (float): bytes of HTML that they take, about; what comes last is left out.
        """
        windows = {(KINDS.index(one.kind), -rank): one for heap in self._heaps.values() for rank, one in heap}
        firsts: dict[Pattern, Window] = {}
        for place in sorted(windows):
            firsts.setdefault(windows[place].pattern, windows[place])
        examples = [
            MistakeExample(one, self.patterns[one.pattern], firsts[one.pattern] is one)
            for _, one in sorted(windows.items())
        ]
        ranked = sorted(examples, key=lambda example: -example.alike if example.first else 0)
        total = accumulate(_size(example.window) for example in ranked)
        return [example for example, bytes_ in zip(ranked, total, strict=True) if bytes_ <= size]


def _size(window: Window) -> int:
    """Estimate the bytes of HTML that an example takes."""
    labels = sum(MARK_BYTES + len(label) for *_, label in (*window.gold, *window.predicted))
    return BYTES + labels + 2 * len(escape_html(window.text).encode("utf8"))


def digest(key: str, pair: SpanPair) -> int:
    """Compute the digest of a mistake's place, 16 bytes as a number."""
    place = "\n".join([key, *(f"{span[0]} {span[1]} {span[2]}" if span else "" for span in pair)])
    return int.from_bytes(hashlib.blake2b(place.encode("utf8"), digest_size=16).digest(), "big")


def window_of(doc: PredictedDoc, pair: SpanPair, kind: Kind) -> Window:
    """Cut the window around a mistake, with the spans in it that can be judged."""
    start, end = window_bounds(doc.text, pair)
    text = "".join(" " if char.isspace() else char for char in doc.text[start:end])  # as long as before
    gold, hidden = _shown(doc.scored(doc.gold), pair.gold, start, end)
    predicted, more = _shown(doc.scored(doc.predicted), pair.predicted, start, end)
    moved = SpanPair(*(_move(span, start, end) if span else None for span in pair))
    return Window(doc.key, kind, text, moved, gold, predicted, hidden + more, doc.doc)


def window_bounds(text: str, pair: SpanPair) -> tuple[int, int]:
    """Return the start and the end of the window around a mistake; it begins and ends between words, if it can."""
    spans = [span for span in pair if span]
    first = min(span[0] for span in spans)
    last = min(max(span[1] for span in spans), first + LONGEST)
    start, end = max(first - AROUND, 0), min(last + AROUND, len(text))
    if start > 0:
        start += max(text[start - 1 : first].find(" "), 0)
    if end < len(text):
        space = text[last : end + 1].rfind(" ")
        end = last + space if space >= 0 else end
    while start < first and category(text[start]) in MARKS:  # of a letter that would stay outside
        start += 1
    while end < len(text) and category(text[end]) in MARKS:
        end += 1
    return start, end


def _shown(spans: Iterable[SpanKey], focus: SpanKey | None, start: int, end: int) -> tuple[list[SpanKey], int]:
    """Choose the spans of a window that don't overlap, the mistake's own first, then the longest."""
    inside = [span for span in spans if span[0] < end and span[1] > start]
    inside.sort(key=lambda span: (span != focus, span[0] - span[1], span))
    shown: list[SpanKey] = []
    for span in inside:
        if all(span[1] <= other[0] or span[0] >= other[1] for other in shown):
            shown.append(span)
    return sorted(_move(span, start, end) for span in shown), len(inside) - len(shown)


def _move(span: SpanKey, start: int, end: int) -> SpanKey:
    return max(span[0], start) - start, min(span[1], end) - start, span[2]


def mark_up(text: str, spans: list[SpanKey], focus: SpanKey | None) -> Markup:
    """Make HTML from a text with its spans marked; displaCy escapes the text, but not the labels.

    focus (SpanKey | None): the span that the mistake is about, which is marked differently.
    """
    ents = []
    for start, end, label in spans:
        mark = "ent focus" if (start, end, label) == focus else "ent"
        ents.append({"start": start, "end": end, "label": escape_html(label), "params": {"mark": mark}})
    doc = {"text": text, "ents": ents, "title": None}
    html = displacy.render(doc, style="ent", manual=True, page=False, jupyter=False, options={"template": MARK})
    return Markup(html)  # noqa: S704  text and labels have just been escaped

"""Examples of mistakes with the text around them, a few for each kind and label, chosen in one pass over predictions.

Which ones is decided by a digest of where they are, so that the same predictions give the same examples, and a mistake
that stays in the next run is likely to stay an example.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup
from spacy import displacy
from spacy.util import escape_html

from labelwise.common.spans import SpanKey
from labelwise.evaluate.mistakes import KINDS, Kind, SpanPair, pairs_of
from labelwise.evaluate.predictions import PredictedDoc

MOST = 10  # examples for each kind and label
MOST_ALIKE = 3  # for each pattern, and for each frequent mistake
Pattern = tuple[Kind, str, str]
Surface = tuple[str, str, str, str]
AROUND = 60  # characters shown on either side of a mistake
LONGEST = 600  # characters shown of a mistake itself
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


class MistakeExample(NamedTuple):
    """A mistake to be shown.

    labels (list[str]): those that it is an example of: the gold label, the predicted label, or both.
    alike (int): all mistakes of its pattern: of the same kind, with the same gold and predicted labels.
    first (bool): of those of its pattern, it is the first.
    """

    window: Window
    labels: list[str]
    alike: int = 1
    first: bool = True


class MistakeExamples:
    """Keeps the examples with the smallest digests, and counts all.

    Besides those of each kind and label, there are some of each pattern, and of mistakes that are listed as frequent.

    totals (Counter): mistakes by (kind, label). One with two labels counts for each.
    kinds (Counter): mistakes by kind.
    patterns (Counter): mistakes by `pattern_of`.
    """

    def __init__(self, most: int = MOST, frequent: Iterable[Surface] = ()) -> None:
        """Take how many examples to keep for each kind and label, and the mistakes that must have one."""
        self.most = most
        self.frequent = set(frequent)
        self.totals: Counter[tuple[Kind, str]] = Counter()
        self.kinds: Counter[Kind] = Counter()
        self.patterns: Counter[Pattern] = Counter()
        self._heaps: dict[tuple[str, ...], list[tuple[int, Window]]] = {}

    def add(self, doc: PredictedDoc) -> None:
        """Take the mistakes of a doc."""
        for pair in pairs_of(doc):
            kind = pair.kind
            if kind is None:
                continue
            self.kinds[kind] += 1
            pattern = pattern_of(kind, pair)
            self.patterns[pattern] += 1
            rank = -digest(doc.key, pair)
            for label in {span[2] for span in pair if span}:
                self.totals[kind, label] += 1
                self._keep((kind, label), self.most, rank, doc, pair, kind)
            self._keep(pattern, MOST_ALIKE, rank, doc, pair, kind)
            if (surface := surface_of(doc, pair)) in self.frequent:
                self._keep(surface, MOST_ALIKE, rank, doc, pair, kind)

    def _keep(
        self, group: tuple[str, ...], most: int, rank: int, doc: PredictedDoc, pair: SpanPair, kind: Kind
    ) -> None:
        """Keep an example of a group, if its rank is among the best."""
        heap = self._heaps.setdefault(group, [])
        if len(heap) < most:
            heapq.heappush(heap, (rank, window_of(doc, pair, kind)))
        elif rank > heap[0][0]:
            heapq.heapreplace(heap, (rank, window_of(doc, pair, kind)))

    def chosen(self) -> list[MistakeExample]:
        """List an example of each pattern, the most frequent first, and then the others by kind and digest."""
        windows = {(KINDS.index(one.kind), -rank): one for heap in self._heaps.values() for rank, one in heap}
        firsts: dict[Pattern, MistakeExample] = {}
        others = []
        for place in sorted(windows):
            window = windows[place]
            pattern = pattern_of(window.kind, window.pair)
            labels = sorted({span[2] for span in window.pair if span})
            example = MistakeExample(window, labels, self.patterns[pattern], pattern not in firsts)
            if example.first:
                firsts[pattern] = example
            else:
                others.append(example)
        return sorted(firsts.values(), key=lambda example: -example.alike) + others


def surface_of(doc: PredictedDoc, pair: SpanPair) -> Surface:
    """Tell a mistake by its words: the gold form and its label, and the predicted ones."""
    gold, predicted = ((" ".join(doc.text[s[0] : s[1]].split()), s[2]) if s else ("", "") for s in pair)
    return *gold, *predicted


def pattern_of(kind: Kind, pair: SpanPair) -> Pattern:
    """Tell what is alike of mistakes: their kind, the gold label and the predicted one."""
    gold, predicted = (span[2] if span else "" for span in pair)
    return kind, gold, predicted


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
    ents = [
        {"start": span[0], "end": span[1], "label": escape_html(span[2]), "params": {"mark": _class(span == focus)}}
        for span in spans
    ]
    doc = {"text": text, "ents": ents, "title": None}
    html = displacy.render(doc, style="ent", manual=True, page=False, jupyter=False, options={"template": MARK})
    return Markup(html)  # noqa: S704  text and labels have just been escaped


def _class(is_focus: bool) -> str:
    return "ent focus" if is_focus else "ent"

"""The best findings of each label, as characters of their texts."""

import heapq
from collections.abc import Sequence
from itertools import count
from typing import Any

from labelwise.check.findings import Correction, Place, find_corrections
from labelwise.check.folds import CheckedDoc
from labelwise.check.worklists import Finding
from labelwise.common.keys import text_key
from labelwise.corpus.forms import Forms

AROUND = 40  # characters of context on either side


class Kept:
    """Keeps the best findings of each label, and counts all.

    counts (dict): by label and kind.
    """

    def __init__(self, labels: Sequence[str], most: int) -> None:
        """Take all labels, and how many findings to keep of each."""
        self.labels = list(labels)
        self.most = most
        self.counts: dict[str, dict[str, int]] = {}
        self._heaps: dict[str, list[tuple[float, int, Finding]]] = {}
        self._numbers = count()

    def add(self, doc: CheckedDoc, forms: Forms) -> None:
        """Find what seems wrong in a text."""
        unknown = {self.labels.index(label) for label in doc.stored.annotation.uncovered}
        for correction in find_corrections(doc.stored, forms, doc.opinion, unknown):
            about: Any = correction.current or correction.proposed
            label = self.labels[about[2]]
            kinds = self.counts.setdefault(label, {})
            kinds[correction.kind] = kinds.get(correction.kind, 0) + 1
            heap = self._heaps.setdefault(label, [])
            if len(heap) < self.most or correction.score > heap[0][0]:
                item = (correction.score, -next(self._numbers), finding_of(doc, correction, self.labels))
                (heapq.heappush if len(heap) < self.most else heapq.heapreplace)(heap, item)

    def best(self) -> list[Finding]:
        """List those kept, best first."""
        found = [item for heap in self._heaps.values() for item in heap]
        return [finding for _, _, finding in sorted(found, key=lambda item: (-item[0], -item[1]))]


def finding_of(doc: CheckedDoc, correction: Correction, labels: Sequence[str], *, why: str = "") -> Finding:
    """Put what seems wrong in a text into characters, with the text around it.

    why (str): what speaks for it, in words.
    """
    text = doc.stored.text
    starts, ends = (array.tolist() for array in doc.stored.offsets())

    def in_characters(place: Place | None) -> tuple[int, int, str] | None:
        """Turn a place in tokens into one in characters."""
        return (starts[place[0]], ends[place[1] - 1], labels[place[2]]) if place else None

    current, proposed = in_characters(correction.current), in_characters(correction.proposed)
    start, end, label = current or proposed or (0, 0, "")
    return Finding(
        score=round(correction.score, 4),
        kind=correction.kind,
        label=label,
        form=" ".join(text[start:end].split()),
        current=current,
        proposed=proposed,
        split=doc.split,
        doc=doc.stored.annotation.doc,
        key=text_key(text.encode("utf8")).hex(),
        context=" ".join(text[max(0, start - AROUND) : end + AROUND].split()),
        why=why,
    )

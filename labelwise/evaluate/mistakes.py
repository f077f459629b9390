"""What went wrong: which gold span was taken for what, and which mistakes are frequent.

Gold and predicted spans of a doc are paired, each with at most one, in this order:

1. the same span with the same label, which is right;
2. the same span with another label: "wrong label";
3. spans that overlap, with the same label: "wrong boundaries";
4. spans that overlap, with two labels: "wrong label and boundaries".

Of spans that overlap, those that share the most characters come first. What is left of gold is "missed", what is left
of the predictions "spurious". Only spans that can be judged take part; see PredictedDoc.scored.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from labelwise.common.spans import SpanKey, overlapping_groups
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import FrequentMistake

Kind = Literal["missed", "spurious", "wrong boundaries", "wrong label", "wrong label and boundaries"]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]
NOTHING = "(nothing)"  # in place of a label, where a span has no partner
Surface = tuple[str, str, str, str]  # the gold form and its label, the predicted ones; empty where there is no span


class SpanPair(NamedTuple):
    """A gold span and what was predicted for it; one of them is None if the other has no partner."""

    gold: SpanKey | None
    predicted: SpanKey | None

    @property
    def labels(self) -> tuple[str, str]:
        """The gold label and the predicted one; empty where there is no span."""
        return self.gold[2] if self.gold else "", self.predicted[2] if self.predicted else ""

    @property
    def kind(self) -> Kind | None:
        """The kind of mistake that it is; None if it is right."""
        if self.gold is None:
            return "spurious"
        if self.predicted is None:
            return "missed"
        if self.gold[:2] == self.predicted[:2]:
            return None if self.gold == self.predicted else "wrong label"
        return "wrong boundaries" if self.gold[2] == self.predicted[2] else "wrong label and boundaries"


def pair_spans(gold: Iterable[SpanKey], predicted: Iterable[SpanKey]) -> list[SpanPair]:
    """Pair the spans of a doc, in the order of the text."""
    gold, predicted = set(gold), set(predicted)
    pairs = [SpanPair(span, span) for span in gold & predicted]
    free, unused = gold - predicted, predicted - gold
    candidates = [(_rank(one, other), one, other) for one, other in overlapping(free, unused)]
    for _, one, other in sorted(candidates):
        if one in free and other in unused:
            pairs.append(SpanPair(one, other))
            free.remove(one)
            unused.remove(other)
    pairs += [SpanPair(span, None) for span in free]
    pairs += [SpanPair(None, span) for span in unused]
    return sorted(pairs, key=lambda pair: (pair.gold or pair.predicted, pair.predicted or pair.gold))


def overlapping(gold: Iterable[SpanKey], predicted: Iterable[SpanKey]) -> Iterator[tuple[SpanKey, SpanKey]]:
    """Yield the pairs of spans that share a character."""
    for ones, others in overlapping_groups(gold, predicted):
        yield from ((one, other) for one in ones for other in others if one[0] < other[1] and other[0] < one[1])


def _rank(gold: SpanKey, predicted: SpanKey) -> tuple[int, int]:
    same_span, same_label = gold[:2] == predicted[:2], gold[2] == predicted[2]
    shared = min(gold[1], predicted[1]) - max(gold[0], predicted[0])
    return 0 if same_span else 1 if same_label else 2, -shared


def pairs_of(doc: PredictedDoc) -> list[SpanPair]:
    """Pair the gold spans of a doc with the predicted ones, as far as they can be judged."""
    return pair_spans(doc.scored(doc.gold), doc.scored(doc.predicted))


class Mistakes:
    """Counts mistakes by labels and by surface form; the forms, which may be many, in a temporary file (SQLite).

    confusion (dict): for each gold label, or NOTHING, the predicted labels, or NOTHING; what is right is in it, too.
    boundaries (Counter): by label, pairs with wrong boundaries.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.confusion: dict[str, Counter[str]] = {}
        self.boundaries: Counter[str] = Counter()
        self._forms = sqlite3.connect("")  # no name: a temporary file, of which SQLite holds some pages in memory
        self._forms.execute(
            "CREATE TABLE forms (kind, gold, gold_label, predicted, predicted_label, n,"
            " PRIMARY KEY (kind, gold, gold_label, predicted, predicted_label)) WITHOUT ROWID"
        )

    def add(self, doc: PredictedDoc) -> None:
        """Count the mistakes of a doc."""
        pairs = pairs_of(doc)
        for gold, predicted in (pair.labels for pair in pairs):
            self.confusion.setdefault(gold or NOTHING, Counter())[predicted or NOTHING] += 1
        self.boundaries.update(pair.labels[0] for pair in pairs if pair.kind == "wrong boundaries")
        forms = ((pair.kind, *surface_of(doc, pair)) for pair in pairs if pair.kind)
        self._forms.executemany("INSERT INTO forms VALUES (?,?,?,?,?,1) ON CONFLICT DO UPDATE SET n = n + 1", forms)

    def frequent(self, most: int) -> dict[str, list[FrequentMistake]]:
        """List the most frequent mistakes of each kind; there may be none."""
        query = (
            "SELECT gold, gold_label, predicted, predicted_label, n FROM forms WHERE kind = ?"
            " ORDER BY n DESC, gold, predicted, gold_label, predicted_label LIMIT ?"
        )
        return {kind: [FrequentMistake(*row) for row in self._forms.execute(query, (kind, most))] for kind in KINDS}

    def wrong_boundaries(self, most: int) -> dict[str, list[FrequentMistake]]:
        """List the most frequent wrong boundaries of each label."""
        query = (
            "SELECT gold, gold_label, predicted, predicted_label, n FROM (SELECT *, row_number() OVER"
            " (PARTITION BY gold_label ORDER BY n DESC, gold, predicted) AS place FROM forms"
            " WHERE kind = 'wrong boundaries') WHERE place <= ? ORDER BY gold_label, place"
        )
        found: dict[str, list[FrequentMistake]] = {}
        for row in self._forms.execute(query, (most,)):
            found.setdefault(row[1], []).append(FrequentMistake(*row))
        return found


def surface_of(doc: PredictedDoc, pair: SpanPair) -> Surface:
    """Tell a mistake by its words."""
    (gold, predicted), labels = (doc.form(span) if span else "" for span in pair), pair.labels
    return gold, labels[0], predicted, labels[1]

"""What an example teaches: the tags of each label, where they are known.

What a text is complete for is in `doc.user_data["labelwise"]["uncovered"]` of a reference Doc, its gold in
`doc.spans["gold"]`. Docs without them are read as spaCy does: `doc.ents` is gold, and tokens with the missing value are
unknown for all labels.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import ENT_IOB, IDX, LENGTH
from spacy.tokens import Doc, Span
from spacy.training import Example

OUT, BEGIN, IN, LAST, UNIT = range(5)
TAGS = 5
UNKNOWN = -1
GOLD, REJECTED, MERGED = "gold", "incorrect_spans", "labelwise"  # where a merge puts what a Doc carries


def gold_spans(doc: Doc) -> list[Span]:
    """List the accepted spans of a reference Doc that have token boundaries: a merge's, or else the entities."""
    return list(doc.spans[GOLD]) if GOLD in doc.spans else list(doc.ents)


class Targets(NamedTuple):
    """What is known of a text.

    tags (np.ndarray): of the shape (tokens, labels), UNKNOWN where nobody knows.
    rejected (list): spans that aren't entities, of labels that aren't complete, as (start, end, label's number).
    """

    tags: np.ndarray
    rejected: list[tuple[int, int, int]]


def targets_of(eg: Example, place: dict[str, int]) -> Targets:
    """Tell what an example teaches.

    place (dict[str, int]): the numbers of the labels.
    """
    reference, size = eg.reference, len(eg.predicted)
    merged = reference.user_data.get(MERGED)
    tags = np.full((size, len(place)), OUT, np.int8)
    states = dict(merged["uncovered"]) if merged else {}
    for label in states:
        if label in place:
            tags[:, place[label]] = UNKNOWN
    same = _same_tokens(eg)
    if merged is None:
        missing = reference.to_array(ENT_IOB) == 0
        if missing.any():
            tags[missing if same else [value in (None, 0) for value in eg.get_aligned("ENT_IOB")]] = UNKNOWN
    else:
        for start, end, label in lost_gold(reference, merged["gold"]):
            if label in place:
                tags[_touched(eg.predicted, start, end), place[label]] = UNKNOWN
    for start, end, label in sorted(
        _aligned(eg, gold_spans(reference), same), key=lambda span: (span[0] - span[1], span)
    ):
        if label in place and states.get(label) != "none":
            inside = tags[start:end, place[label]]
            # Of spans of one label that overlap, the longest counts.
            if not (inside > OUT).any():
                inside[:] = tags_of(end - start)
    rejected = [
        (start, end, place[label])
        for start, end, label in _aligned(eg, reference.spans.get(REJECTED, ()), same)
        if label in place and (states.get(label) == "partial" or merged is None)
    ]
    return Targets(tags, rejected)


def tags_of(length: int) -> np.ndarray:
    """List the tags of a span of so many tokens."""
    return np.array([UNIT] if length == 1 else [BEGIN, *[IN] * (length - 2), LAST], np.int8)


def lost_gold(doc: Doc, gold: Iterable[Sequence[Any]]) -> Iterator[tuple[int, int, str]]:
    """Yield the accepted spans, in characters, that don't fall on the Doc's tokens."""
    starts = doc.to_array(IDX)
    ends = set((starts + doc.to_array(LENGTH)).tolist())
    begins = set(starts.tolist())
    for start, end, label, *_ in gold:
        if start not in begins or end not in ends:
            yield start, end, label


def _touched(doc: Doc, start: int, end: int) -> slice:
    """Find the tokens that a span of characters touches."""
    starts = doc.to_array(IDX)
    ends = starts + doc.to_array(LENGTH)
    return slice(int(np.searchsorted(ends, start, side="right")), int(np.searchsorted(starts, end, side="left")))


def _same_tokens(eg: Example) -> bool:
    """Tell whether both docs of an example have the same tokens."""
    one, other = (doc.to_array([IDX, LENGTH]) for doc in (eg.predicted, eg.reference))
    return one.shape == other.shape and bool((one == other).all())


def _aligned(eg: Example, spans: Iterable[Span], same: bool) -> list[tuple[int, int, str]]:
    if not same:
        spans = eg.get_aligned_spans_y2x(list(spans), allow_overlap=True)
    return [(span.start, span.end, span.label_) for span in spans]

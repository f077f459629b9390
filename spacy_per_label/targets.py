"""The training targets of an example: tags of each label, where they are known; see `known`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_per_label.known import GOLD, get_known, missing_tokens
from spacy_per_label.windows import Window

OUT, BEGIN, IN, LAST, UNIT = range(5)
TAGS = 5
UNKNOWN = -1


class Targets(NamedTuple):
    """The training targets of a text.

    tags (np.ndarray): shape (tokens, labels), UNKNOWN where the label wasn't annotated.
    rejected (list): non-entities of incomplete labels, as (start, end, label's number).
    """

    tags: np.ndarray
    rejected: list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class PreparedText:
    """Picklable arrays of an example for an update; words are the reference's."""

    text: str
    words: int
    windows: list[Window]
    targets: Targets

    def __len__(self) -> int:
        return self.words


Learnable = Example | PreparedText


def prepare_text(find: Callable[[Doc], list[Window]], numbers: Mapping[str, int], eg: Example) -> PreparedText:
    """Make arrays of an example; see `window_finder` and `targets_of`."""
    return PreparedText(eg.predicted.text, len(eg.reference), find(eg.predicted), targets_of(eg, numbers))


def targets_of(eg: Example, numbers: Mapping[str, int]) -> Targets:
    """Return an example's training targets, by the labels' numbers."""
    reference, known = eg.reference, get_known(eg.reference)
    tags = np.full((len(eg.predicted), len(numbers)), OUT, np.int8)  # (tokens, labels)
    # Unknown are labels that the text isn't complete for, tokens without a value, and tokens of a misaligned entity.
    for label in known.coverage:
        if label in numbers:
            tags[:, numbers[label]] = UNKNOWN
    same, from_spacy = _same_tokens(eg), GOLD not in reference.spans
    if from_spacy:
        tags[missing_tokens(reference) if same else [tag is None for tag in eg.get_aligned_ner()]] = UNKNOWN
    for start, end, label in known.unaligned:
        if label in numbers:
            tags[_touched(eg.predicted, start, end), numbers[label]] = UNKNOWN
    gold = _aligned(eg, known.gold, same)
    # Accepted spans of partially annotated labels are known, too.
    for start, end, label in sorted(gold, key=lambda span: (span[0] - span[1], span)):
        if label in numbers and known.coverage.get(label) != "none":
            inside = tags[start:end, numbers[label]]
            # The longest of overlapping spans of a label counts.
            if not (inside > OUT).any():
                inside[:] = tags_of(end - start)
    # Rejected spans teach labels that aren't complete; the tags of complete labels exclude them already.
    partial = {label for label in numbers if known.coverage.get(label, "partial" if from_spacy else "") == "partial"}
    rejected = [
        (start, end, numbers[label]) for start, end, label in _aligned(eg, known.rejected, same) if label in partial
    ]
    return Targets(tags, rejected)


def tags_of(length: int) -> np.ndarray:
    """List the tags of a span of `length` tokens."""
    return np.array([UNIT] if length == 1 else [BEGIN, *[IN] * (length - 2), LAST], np.int8)


def _touched(doc: Doc, start: int, end: int) -> slice:
    starts = doc.to_array(IDX)  # (tokens,)
    ends = starts + doc.to_array(LENGTH)
    return slice(int(np.searchsorted(ends, start, side="right")), int(np.searchsorted(starts, end)))


def _same_tokens(eg: Example) -> bool:
    predicted, reference = (doc.to_array([IDX, LENGTH]) for doc in (eg.predicted, eg.reference))
    return predicted.shape == reference.shape and bool((predicted == reference).all())


def _aligned(eg: Example, spans: Iterable[Span], same: bool) -> list[tuple[int, int, str]]:
    if not same:
        spans = eg.get_aligned_spans_y2x(list(spans), allow_overlap=True)
    return [(span.start, span.end, span.label_) for span in spans]

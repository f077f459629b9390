"""Make a Doc of a merged annotation, by the policies `alignment` and `overlap`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH, SPACY
from spacy.tokens import Doc

from labelwise.annotations import Reason
from labelwise.base.text import SpanKey, State
from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import BEGIN, INSIDE, MISSING, OUTSIDE, StoredDoc
from labelwise.merge.rules.claims import SpanOutcome, SpanRef, names_of
from labelwise.merge.rules.one_text import Merged
from labelwise.merge.rules.policies import ALIGNMENT, Policies, Tokens, Unmarked, flatten

Aligned = Mapping[SpanKey, Tokens]  # by annotated offsets
AN_ENTITY, MISALIGNED = SpanOutcome(Reason.ENTITY), SpanOutcome(Reason.MISALIGNED)


class Projection(NamedTuple):
    """A stored Doc, and the outcomes of its spans.

    first, last (dict): tokens by their start, next tokens by their end, in characters.
    spans (dict): outcomes of the first claims of accepted and rejected spans.
    """

    doc: StoredDoc
    first: dict[int, int]
    last: dict[int, int]
    spans: dict[SpanRef, SpanOutcome]


def to_doc(
    tokenize: Callable[[str], Doc], merged: Merged, labels: Sequence[str], policies: Policies, unmarked: Unmarked
) -> Projection:
    """Make a Doc of a merged annotation, with the outcomes of accepted and rejected spans.

    labels (Sequence[str]): all labels, in the order that breaks ties.
    RAISES (InputError): if the tokenizer fails.
    """
    doc = tokenize(merged.text)
    tokens = doc.to_array([ORTH, SPACY, IDX, LENGTH])
    starts, ends = tokens[:, 2].tolist(), (tokens[:, 2] + tokens[:, 3]).tolist()
    first = dict(zip(starts, range(len(doc)), strict=True))
    last = dict(zip(ends, range(1, len(doc) + 1), strict=True))
    aligned: dict[SpanKey, Tokens] = {}
    moved: set[SpanKey] = set()
    for key in merged.gold:
        start, end = first.get(key[0]), last.get(key[1])
        if start is not None and end is not None:
            aligned[key] = start, end
        elif span := ALIGNMENT[policies.alignment](doc, key):
            aligned[key] = span.start, span.end
            moved.add(key)
    rejected = {key: (first[key[0]], last[key[1]]) for key in merged.rejected if key[0] in first and key[1] in last}
    flat = flatten(aligned, labels, policies.overlap)

    strings: Any = doc.vocab.strings
    names = {label: strings.add(label) for label in labels}
    iob = np.full(len(doc), OUTSIDE if unmarked == "outside" else MISSING, np.uint64)
    types = np.zeros(len(doc), np.uint64)
    for key in merged.gold.keys() - aligned.keys():  # the tokens that it touches may be in an entity
        for token in doc.char_span(*key, alignment_mode="expand") or ():
            iob[token.i] = MISSING
    for key in flat.kept:
        start, end = aligned[key]
        iob[start:end] = INSIDE
        iob[start] = BEGIN
        types[start:end] = names[key[2]]
    uncovered = missing_labels(merged.coverage, labels)
    stored = StoredDoc(
        words=tokens[:, 0],
        spaces=tokens[:, 1].astype(bool),
        iob=iob,
        labels=types,
        gold=[(*where, names[key[2]]) for key, where in aligned.items()],
        rejected=[(*where, names[key[2]]) for key, where in rejected.items()],
        strings=strings,
        merged=Annotation(
            gold=[(*key, names_of(claims)) for key, claims in merged.gold.items()],
            rejected=list(merged.rejected),
            uncovered=dict(sorted(uncovered.items())),
            datasets=merged.datasets if uncovered else [],
            doc=merged.doc,
            unit=merged.unit,
            groups=merged.groups,
        ),
    )
    return Projection(stored, first, last, _outcomes(merged, aligned, dict(flat.lost), moved, rejected))


def _outcomes(
    merged: Merged,
    aligned: Aligned,
    winners: Mapping[SpanKey, SpanKey],
    moved: Collection[SpanKey],
    rejected: Collection[SpanKey],
) -> dict[SpanRef, SpanOutcome]:
    learned = learned_by_heads(aligned, winners) if winners else set()
    outcomes: dict[SpanRef, SpanOutcome] = {}
    for key, claims in merged.gold.items():
        outcome = AN_ENTITY if key in aligned else MISALIGNED
        if by := winners.get(key):
            outcome = SpanOutcome(overlap_kind(key, by), "", merged.gold[by][0].span, learned=key in learned)
        outcomes[claims[0].span] = outcome._replace(realigned=True) if key in moved else outcome
    for key, claims in merged.rejected.items():
        reason = Reason.REJECTED if key in rejected else Reason.REJECTED_MISALIGNED
        outcomes[claims[0].span] = SpanOutcome(reason)
    return outcomes


def learned_by_heads(spans: Aligned, losers: Collection[SpanKey]) -> set[SpanKey]:
    """Return the spans that per-label heads learn: of spans of a label that share a token, one.

    It is the longest in tokens; of equal ones the first, and on the same tokens the entity.
    """

    def order(key: SpanKey) -> tuple[int, int, bool, SpanKey]:
        start, end = spans[key]
        return start - end, start, key in losers, key

    used: set[tuple[str, int]] = set()
    learned = set()
    for key in sorted(spans, key=order):
        tokens = {(key[2], token) for token in range(*spans[key])}
        if used.isdisjoint(tokens):
            used |= tokens
            learned.add(key)
    return learned


def overlap_kind(one: SpanKey, other: SpanKey) -> Reason:
    """Classify an overlap: same span (with two labels), nested, or crossing."""
    if one[:2] == other[:2]:
        return Reason.SAME_SPAN
    (start, end, _), (other_start, other_end, _) = one, other
    inside = start >= other_start and end <= other_end
    return Reason.NESTED if inside or (start <= other_start and end >= other_end) else Reason.CROSSING


def missing_labels(coverage: Mapping[str, str], labels: Iterable[str]) -> dict[str, State]:
    """Return "partial" or "none" for labels that a text isn't complete for."""
    return {label: "partial" if label in coverage else "none" for label in labels if coverage.get(label) != "complete"}

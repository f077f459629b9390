"""Turn a merged annotation into a Doc: the only place where token boundaries and overlaps are decided, by policies.

See `annotation` for the content of the Doc.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH, SPACY
from spacy.tokens import Doc

from labelwise.base.errors import InputError
from labelwise.base.text import SpanKey
from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import BEGIN, INSIDE, MISSING, OUTSIDE, StoredDoc
from labelwise.merge.rules.lost_spans import Claim, LostSpan
from labelwise.merge.rules.one_text import Merged, missing_labels, names_of
from labelwise.merge.rules.policies import ALIGNMENT, OVERLAP, Policies, Unmarked

Tokens = tuple[int, int]  # the first of a span, and the one behind it
Aligned = Mapping[SpanKey, Tokens]  # by the offsets that were annotated


class Projection(NamedTuple):
    """A Doc as it is stored, and the spans that aren't among its entities.

    starts, ends (list[int]): of its tokens, in characters.
    lost (list[LostSpan]): accepted spans that aren't entities.
    realigned (list[str]): the labels of the spans that were expanded or contracted.
    """

    doc: StoredDoc
    starts: list[int]
    ends: list[int]
    lost: list[LostSpan]
    realigned: list[str]


def to_doc(
    tokenize: Callable[[str], Doc], merged: Merged, labels: Sequence[str], policies: Policies, unmarked: Unmarked
) -> Projection:
    """Make a Doc from a merged annotation, and give each accepted and each rejected span its outcome.

    tokenize (Callable[[str], Doc]): the project's tokenizer.
    labels (Sequence[str]): all labels, in the order that breaks ties.
    unmarked (str): what the tokens are that are in no span.
    RAISES (InputError): a policy is "error" and there is something to decide.
    """
    doc = tokenize(merged.text)
    tokens = doc.to_array([ORTH, SPACY, IDX, LENGTH])
    starts, ends = tokens[:, 2].tolist(), (tokens[:, 2] + tokens[:, 3]).tolist()
    first = dict(zip(starts, range(len(doc)), strict=True))
    last = dict(zip(ends, range(1, len(doc) + 1), strict=True))
    aligned: dict[SpanKey, Tokens] = {}
    for key in merged.accepted:
        start, end = first.get(key[0]), last.get(key[1])
        if start is not None and end is not None:
            aligned[key] = start, end
        elif span := ALIGNMENT[policies.alignment](doc, key):
            aligned[key] = span.start, span.end
    rejected = {key: (first[key[0]], last[key[1]]) for key in merged.rejected if key[0] in first and key[1] in last}
    kept, losers = flatten(aligned, OVERLAP[policies.overlap](labels))
    if losers and policies.overlap == "error":
        loser, winner = losers[0]
        raise InputError(f"{winner} and {loser} overlap in {merged.text[:60]!r}...; set overlap to longest or first")
    lost = _lost_spans(merged, aligned, losers)
    for said in merged.accepted.values():
        said[0][1].outcome = "entity"
    for one in lost:
        merged.accepted[one.lost.span][0][1].outcome = one.reason
    for key, said in merged.rejected.items():
        said[0][1].outcome = "rejected" if key in rejected else "rejected, no token boundary"

    strings: Any = doc.vocab.strings
    names = {label: strings.add(label) for label in labels}
    iob = np.full(len(doc), OUTSIDE if unmarked == "outside" else MISSING, np.uint64)
    types = np.zeros(len(doc), np.uint64)
    for key in merged.accepted.keys() - aligned.keys():  # tokens that it touches aren't known to be outside
        for token in doc.char_span(*key, alignment_mode="expand") or ():
            iob[token.i] = MISSING
    for key in kept:
        start, end = aligned[key]
        iob[start:end] = INSIDE
        iob[start] = BEGIN
        types[start:end] = names[key[2]]
    stored = StoredDoc(
        words=tokens[:, 0],
        spaces=tokens[:, 1].astype(bool),
        iob=iob,
        labels=types,
        gold=[(*where, names[key[2]]) for key, where in aligned.items()],
        rejected=[(*where, names[key[2]]) for key, where in rejected.items()],
        strings=strings,
        merged=_annotation(merged, labels),
    )
    realigned = [key[2] for key, (start, end) in aligned.items() if (starts[start], ends[end - 1]) != key[:2]]
    return Projection(stored, starts, ends, lost, realigned)


def _lost_spans(merged: Merged, aligned: Aligned, losers: Sequence[tuple[SpanKey, SpanKey]]) -> list[LostSpan]:
    """List the accepted spans that aren't entities: those without token boundaries, and those that overlap others."""
    claims = {key: Claim(key, "accept", names_of(merged.accepted[key])) for pair in losers for key in pair}
    learnt = learnt_by_heads(aligned, dict(losers)) if losers else set()
    unaligned = [key for key in merged.accepted if key not in aligned]
    return [
        *(
            LostSpan("no token boundary", Claim(key, "accept", names_of(merged.accepted[key])), None)
            for key in unaligned
        ),
        *(LostSpan(overlap_kind(one, by), claims[one], claims[by], one in learnt) for one, by in losers),
    ]


def _annotation(merged: Merged, labels: Sequence[str]) -> Annotation:
    """Put down what the Doc's tokens and spans can't say."""
    uncovered = missing_labels(merged.coverage, labels)
    return Annotation(
        gold=[(*key, names_of(said)) for key, said in merged.accepted.items()],
        rejected=list(merged.rejected),
        uncovered=dict(sorted(uncovered.items())),
        datasets=merged.datasets if uncovered else [],
        doc=merged.name,
    )


def flatten(
    spans: Aligned, rank: Callable[[SpanKey], tuple[int, ...]]
) -> tuple[list[SpanKey], list[tuple[SpanKey, SpanKey]]]:
    """Keep, in order of rank, the spans that share no token with a span kept before.

    RETURNS (tuple): the kept spans, and each other one with a kept span that it overlaps.
    """
    owner: dict[int, SpanKey] = {}
    kept, lost = [], []
    for key in sorted(spans, key=rank):
        tokens = range(*spans[key])
        if owner.keys().isdisjoint(tokens):
            owner.update(dict.fromkeys(tokens, key))
            kept.append(key)
        else:
            lost.append((key, next(owner[token] for token in tokens if token in owner)))
    return kept, sorted(lost)


def learnt_by_heads(spans: Aligned, losers: Collection[SpanKey]) -> set[SpanKey]:
    """Find the spans that a head for each label learns: where those of one label share a token, it learns one of them.

    That is the longest in tokens, of equally long ones the first, and of two in the same tokens the entity.

    losers (Collection): those that aren't entities.
    """

    def order(key: SpanKey) -> tuple[int, int, bool, SpanKey]:
        """Put first what is learnt."""
        start, end = spans[key]
        return start - end, start, key in losers, key

    taken: set[tuple[str, int]] = set()
    learnt = set()
    for key in sorted(spans, key=order):
        tokens = {(key[2], token) for token in range(*spans[key])}
        if taken.isdisjoint(tokens):
            taken |= tokens
            learnt.add(key)
    return learnt


def overlap_kind(one: SpanKey, other: SpanKey) -> str:
    """Name the way two spans overlap: "same span" (two labels), "nested" or "crossing"."""
    if one[:2] == other[:2]:
        return "same span"
    (start, end, _), (other_start, other_end, _) = one, other
    inside = start >= other_start and end <= other_end
    return "nested" if inside or (start <= other_start and end >= other_end) else "crossing"

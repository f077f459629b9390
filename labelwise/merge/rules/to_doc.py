"""Turn a merged annotation into a Doc: the only place where token boundaries and overlaps are decided, by policies.

See `annotation` for the content of the Doc.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, Span

from labelwise.common.errors import InputError
from labelwise.common.spans import SpanKey
from labelwise.corpus.annotation import GOLD, INCORRECT, Annotation, annotate
from labelwise.merge.rules.lost_spans import Claim, LostSpan
from labelwise.merge.rules.one_text import Merged, missing_labels, names_of
from labelwise.merge.rules.policies import ALIGNMENT, OVERLAP, Policies, Unmarked


class Projection(NamedTuple):
    """A Doc, and the spans that aren't among its entities.

    lost (list[LostSpan]): accepted spans that aren't entities.
    realigned (list[str]): the labels of the spans that were expanded or contracted.
    """

    doc: Doc
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
    align = ALIGNMENT[policies.alignment]
    exact = exact_spans(doc)
    accepted = {key: names_of(said) for key, said in merged.accepted.items()}
    aligned: list[tuple[SpanKey, Span]] = []
    lost = []
    unknown: set[int] = set()
    for key, names in accepted.items():
        span = exact(key) or align(doc, key)
        if span is None:
            lost.append(LostSpan("no token boundary", Claim(key, "accept", names), None))
            unknown.update(token.i for token in doc.char_span(*key, alignment_mode="expand") or ())
        else:
            aligned.append((key, span))
    kept, losers = flatten(aligned, OVERLAP[policies.overlap](labels), error=policies.overlap == "error")
    # Tokens that touch gold without boundaries aren't known to be outside.
    if unknown:
        unknown -= {token.i for span in kept for token in span}
    missing = [doc[i : i + 1] for i in sorted(unknown)]
    doc.set_ents(kept, missing=missing, default=unmarked)
    rejected = {key: span for key in merged.rejected if (span := exact(key)) is not None}
    doc.spans[GOLD] = [span for _, span in aligned]
    doc.spans[INCORRECT] = list(rejected.values())
    uncovered = missing_labels(merged.coverage, labels)
    annotation = Annotation(
        gold=[(*key, names) for key, names in accepted.items()],
        rejected=list(merged.rejected),
        uncovered=dict(sorted(uncovered.items())),
        datasets=merged.datasets if uncovered else [],
        doc=merged.name,
    )
    annotate(doc, annotation)
    learnt = learnt_by_heads(aligned, dict(losers)) if losers else set()
    for loser, winner in losers:
        claims = Claim(loser, "accept", accepted[loser]), Claim(winner, "accept", accepted[winner])
        lost.append(LostSpan(overlap_kind(loser, winner), *claims, loser in learnt))
    for said in merged.accepted.values():
        said[0][1].outcome = "entity"
    for one in lost:
        merged.accepted[one.lost.span][0][1].outcome = one.reason
    for key, said in merged.rejected.items():
        said[0][1].outcome = "rejected" if key in rejected else "rejected, no token boundary"
    realigned = [key[2] for key, span in aligned if (span.start_char, span.end_char) != key[:2]]
    return Projection(doc, lost, realigned)


def exact_spans(doc: Doc) -> Callable[[SpanKey], Span | None]:
    """Make a function that returns a span if it falls on token boundaries: Doc.char_span for many spans of one Doc."""
    starts = doc.to_array(IDX)
    ends = starts + doc.to_array(LENGTH)
    first = {start: token for token, start in enumerate(starts.tolist())}
    last = {end: token for token, end in enumerate(ends.tolist(), 1)}

    def span(key: SpanKey) -> Span | None:
        """Find the tokens of a span; None if it does not fall on any."""
        start, end = first.get(key[0]), last.get(key[1])
        return None if start is None or end is None else Span(doc, start, end, label=key[2])

    return span


def flatten(
    spans: Sequence[tuple[SpanKey, Span]], rank: Callable[[SpanKey], tuple[int, ...]], *, error: bool = False
) -> tuple[list[Span], list[tuple[SpanKey, SpanKey]]]:
    """Keep, in order of rank, the spans that share no token with a span kept before.

    spans (Sequence): each with the offsets that were annotated, which tell how two overlap.
    RETURNS (tuple): the kept spans in text order, and each other one with a kept span that it overlaps.
    RAISES (InputError): with `error`, on the first overlap.
    """
    owner: dict[int, SpanKey] = {}
    kept, lost = [], []
    for key, span in sorted(spans, key=lambda item: rank(item[0])):
        tokens = range(span.start, span.end)
        if owner.keys().isdisjoint(tokens):
            owner.update(dict.fromkeys(tokens, key))
            kept.append(span)
            continue
        winner = next(owner[token] for token in tokens if token in owner)
        if error:
            raise InputError(f"{winner} and {key} overlap in {span.doc.text[:60]!r}...; choose longest or first")
        lost.append((key, winner))
    return sorted(kept, key=lambda span: span.start), sorted(lost)


def learnt_by_heads(spans: Iterable[tuple[SpanKey, Span]], losers: Collection[SpanKey]) -> set[SpanKey]:
    """Find the spans that a head for each label learns: where those of one label share a token, it learns one of them.

    That is the longest in tokens, of equally long ones the first, and of two in the same tokens the entity.

    spans (Iterable): each with the offsets that were annotated.
    losers (Collection): those that aren't entities.
    """

    def order(item: tuple[SpanKey, Span]) -> tuple[int, int, bool, SpanKey]:
        """Put first what is learnt."""
        key, span = item
        return span.start - span.end, span.start, key in losers, key

    taken: set[tuple[str, int]] = set()
    learnt = set()
    for key, span in sorted(spans, key=order):
        tokens = {(key[2], token) for token in range(span.start, span.end)}
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

"""Claims (asserted or rejected spans), and the outcomes of rows and spans."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from labelwise.annotations import Reason, Span
from labelwise.base.text import SpanKey
from labelwise.merge.rules.answers import Answer, Number

SpanRef = tuple[Number, int]  # the answer, or the decision, and the position of the span in it


class Claim(NamedTuple):
    """An answer that asserts a span, or rejects it."""

    answer: Answer
    span: SpanRef
    verdict: str


Claims = Sequence[Claim]  # of one span: the first carries the outcome, the others are duplicates
Spans = dict[SpanKey, Claims]


class SpanOutcome(NamedTuple):
    """A span's outcome.

    kept (SpanRef | None): span that counts instead.
    realigned (bool): expanded or contracted to whole tokens.
    learned (bool): not an entity, but learned by a per-label head, because it overlaps only other labels.
    """

    reason: Reason
    detail: str = ""
    kept: SpanRef | None = None
    realigned: bool = False
    learned: bool = False


class RowOutcome(NamedTuple):
    """A row's outcome.

    kept (Number | None): answer that counts instead.
    covered (Sequence[str]): labels for which it counts.
    superseded (dict): labels for which another answer counts, with that answer; None for several.
    """

    reason: Reason
    kept: Number | None = None
    covered: Sequence[str] = ()
    superseded: dict[str, Number | None] = {}


Rows = dict[Number, RowOutcome]
Outcomes = dict[SpanRef, SpanOutcome]
# The outcomes of spans in dropped rows.
INSIDE = {reason: Reason(f"in {reason} task") for reason in Reason if f"in {reason} task" in {*Reason}}


def sort_spans(answer: Answer, row: RowOutcome) -> tuple[Outcomes, list[tuple[SpanKey, Claim]]]:
    """Return the outcomes of an answer's unusable spans, and the claims of the others."""
    number, task = answer.number, answer.task
    lost: Outcomes = {}
    if row.reason != Reason.MERGED:
        return {(number, place): SpanOutcome(INSIDE[row.reason]) for place in range(len(task.all_spans))}, []
    usable = {*(row.covered if answer.kind == "complete" else answer.dataset.labels)}
    if task.uncovered:
        usable -= {label for label, state in task.uncovered.items() if state == "none"}
    claims = []
    for place, span in enumerate(task.all_spans):
        verdict = answer.verdict(span)
        if span.label in usable and verdict in ("accept", "reject") and not span.problem:
            claims.append(((span.start, span.end, span.label), Claim(answer, (number, place), verdict)))
        else:
            lost[number, place] = _why_unusable(answer, span, usable)
    return lost, claims


def _why_unusable(answer: Answer, span: Span, usable: Collection[str]) -> SpanOutcome:
    label = span.label
    if span.problem:
        return SpanOutcome(Reason.INVALID, span.problem)
    if label not in answer.dataset.labels:
        return SpanOutcome(Reason.UNDECLARED, label)
    if answer.task.uncovered.get(label) == "none":
        detail = f"{label} {span.start} {span.end}: the text isn't annotated for {label}, by its `uncovered`"
        return SpanOutcome(Reason.INVALID, detail)
    return SpanOutcome(Reason.IGNORED if label in usable else Reason.SUPERSEDED)


def outcomes_of(claims: Claims, first: SpanOutcome) -> dict[SpanRef, SpanOutcome]:
    """Return the outcomes of a span's claims: `first`, then duplicates."""
    return {claims[0].span: first} | duplicates_of(claims)


def duplicates_of(claims: Claims) -> dict[SpanRef, SpanOutcome]:
    """Return the outcomes of a span's claims but the first."""
    return {claim.span: SpanOutcome(Reason.DUPLICATE, "", claims[0].span) for claim in claims[1:]}


def names_of(claims: Claims) -> list[str]:
    """Return the datasets that assert a span."""
    if len(claims) == 1:  # as nearly all are
        return [claims[0].answer.dataset.name]
    return sorted({claim.answer.dataset.name for claim in claims})

"""Apply decisions on whether gold is wrong at a span. They override all answers.

1. A decision is based on a dataset's answer about a text, for one label: it is stale if no counting answer of the
   dataset has the same spans.
2. A decision is about the span that it removes, or else adds. Of several about one span of an answer, the last counts.
3. If gold is wrong, the decisions of all datasets apply in order: a removed span isn't gold in any dataset, and an
   added one is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from labelwise.annotations import Reason, answer_digest
from labelwise.base.text import SpanKey, trim
from labelwise.datasets.decisions import Decision, DecisionRow
from labelwise.merge.rules.answers import Answer, accepted_offsets

REASONS = {"gold is wrong": Reason.CORRECTED, "gold is right": Reason.CONFIRMED, "policy": Reason.POLICY_QUESTION}

Chain = tuple[str, str, str]


class DecisionOutcome(NamedTuple):
    """A decision, and its outcome."""

    row: DecisionRow
    decision: Decision
    reason: Reason
    detail: str = ""


class Change(NamedTuple):
    """A decision's change of a span: the answer that gets it, or None if it is removed."""

    row: int
    answer: Answer | None
    place: str


def resolve_decisions(
    rows: Sequence[DecisionRow], text: str, answers: Iterable[Answer]
) -> tuple[list[DecisionOutcome], Mapping[SpanKey, Change]]:
    """Check decisions about a text; return their outcomes, and the changes of spans."""
    if not rows:
        return [], {}
    empty = answer_digest(())
    answer_of: dict[Chain, Answer] = {}
    for answer in answers:
        spans = accepted_offsets(answer.task)
        for label in answer.dataset.labels:
            digest = answer_digest(spans[label]) if label in spans else empty
            answer_of[answer.dataset.name, label, digest] = answer
    checked = [(row, row.decision, _why_not(row.decision, text, answer_of)) for row in rows if row.decision]
    last = {decision.about: row for row, decision, why_not in checked if not why_not}
    outcomes = []
    changes: dict[SpanKey, Change] = {}
    for number, (row, decision, why_not) in enumerate(checked):
        reason, detail = why_not or (REASONS[decision.verdict], "")
        if not why_not and last[decision.about] is not row:
            reason = Reason.REPLACED_DECISION
        if reason == Reason.POLICY_QUESTION:
            start, end = decision.spans[0]
            detail = ": ".join(filter(None, (f"{decision.label} {text[start:end]!r}", decision.note)))
        outcomes.append(DecisionOutcome(row, decision, reason, detail))
        if reason == Reason.CORRECTED:
            for span, by in ((decision.removed, None), (decision.added, answer_of[_chain(decision)])):
                if span:
                    changes[(*trim(text, *span), decision.label)] = Change(number, by, f"{row.file}:{row.line}")
    return outcomes, changes


def _chain(decision: Decision) -> Chain:
    return decision.dataset, decision.label, decision.answer


def _why_not(decision: Decision, text: str, answer_of: Mapping[Chain, Answer]) -> tuple[Reason, str] | None:
    """Return the outcome of an inapplicable decision, with a remedy; or None."""
    if _chain(decision) not in answer_of:
        detail = f"{decision.dataset!r} has changed its annotation of the text since; decide again"
        return Reason.STALE_DECISION, detail
    for start, end in decision.spans:
        if end > len(text) or not text[start:end].strip():
            detail = f"[{start}, {end}] isn't a span of the text of {len(text)} characters; correct or delete it"
            return Reason.MALFORMED, detail
    return None

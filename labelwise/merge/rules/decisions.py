"""Apply decisions on whether gold is wrong at a span. They override all answers.

1. A decision is based on a dataset's answer about a text, for one label: if none of the dataset's counting answers has
   the same spans, the decision is stale.
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
    """The change of a span by a decision: the answer that gets it, None if it is removed."""

    row: int
    answer: Answer | None
    place: str


def judge(
    rows: Sequence[DecisionRow], text: str, answers: Iterable[Answer]
) -> tuple[list[DecisionOutcome], Mapping[SpanKey, Change]]:
    """Check which decisions about a text apply; return each with its outcome, and the changes of spans."""
    if not rows:
        return [], {}
    none = answer_digest(())
    found: dict[Chain, Answer] = {}
    for answer in answers:
        spans = accepted_offsets(answer.task)
        for label in answer.dataset.labels:
            made_of = answer_digest(spans[label]) if label in spans else none
            found[answer.dataset.name, label, made_of] = answer
    made = [(row, row.decision, _why_not(row.decision, text, found)) for row in rows if row.decision]
    last = {decision.about: row for row, decision, why_not in made if not why_not}
    judged = []
    decided: dict[SpanKey, Change] = {}
    for number, (row, decision, why_not) in enumerate(made):
        reason, detail = why_not or (REASONS[decision.verdict], "")
        if not why_not and last[decision.about] is not row:
            reason = Reason.REPLACED_DECISION
        if reason == Reason.POLICY_QUESTION:
            start, end = decision.spans[0]
            detail = ": ".join(filter(None, (f"{decision.label} {text[start:end]!r}", decision.note)))
        judged.append(DecisionOutcome(row, decision, reason, detail))
        if reason == Reason.CORRECTED:
            for span, by in ((decision.removed, None), (decision.added, found[_chain(decision)])):
                if span:
                    decided[(*trim(text, *span), decision.label)] = Change(number, by, f"{row.file}:{row.line}")
    return judged, decided


def _chain(decision: Decision) -> Chain:
    return decision.dataset, decision.label, decision.answer


def _why_not(decision: Decision, text: str, found: Mapping[Chain, Answer]) -> tuple[Reason, str] | None:
    """Return the outcome of a decision that can't be applied, with a remedy; or None."""
    if _chain(decision) not in found:
        detail = f"no answer of {decision.dataset!r} about the text is as it was; decide again"
        return Reason.STALE_DECISION, detail
    for start, end in decision.spans:
        if end > len(text) or not text[start:end].strip():
            detail = f"[{start}, {end}] is no span of the text's {len(text)} characters; correct or delete it"
            return Reason.MALFORMED, detail
    return None

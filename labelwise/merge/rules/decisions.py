"""Decisions: somebody looked at a span, and said whether gold is wrong there. They win over all answers.

1. A decision is made from a data set's answer about a text, for one label, as it was then: if no answer of it that
   counts has the same spans any more, the decision is superseded.
2. A decision is about the span that it removes, or else about the one that it adds. Of several about the same span of
   the same answer the last counts.
3. Where gold is wrong, the decisions of all data sets are followed in their order: what one removes isn't gold, whoever
   marked it, what it adds is gold, and all else stays as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from labelwise.base.text import SpanKey, trim
from labelwise.corpus.ledger import Problem
from labelwise.corpus.places import answer_digest
from labelwise.datasets.decisions import Decision, DecisionRow
from labelwise.merge.rules.answers import Answer, digests

SUPERSEDED, QUESTION = "superseded decision", "policy question"
OUTCOMES = {"gold is wrong": "corrected", "gold is right": "confirmed", "policy": QUESTION}

Decided = Mapping[SpanKey, Answer | None]  # the answer by which a span is gold; None if it isn't
Chain = tuple[str, str, str]


class Judged(NamedTuple):
    """A decision, and what became of it; details may follow after a colon."""

    row: DecisionRow
    decision: Decision
    outcome: str

    def problem(self) -> Problem:
        """Say where it is, and what became of it."""
        return Problem(self.decision.dataset, self.row.file, self.row.line, self.outcome)


def judge(rows: Sequence[DecisionRow], text: str, answers: Iterable[Answer]) -> tuple[list[Judged], Decided]:
    """Find out what becomes of the decisions about a text.

    rows (Sequence[DecisionRow]): those that have a decision, in order.
    answers (Iterable[Answer]): those that count.
    RETURNS (tuple): each decision with its outcome, and the spans that are decided.
    """
    if not rows:
        return [], {}
    none = answer_digest(())
    found: dict[Chain, Answer] = {}
    for answer in answers:
        made_of = digests(answer)
        for label in answer.dataset.labels:
            found[answer.dataset.name, label, made_of.get(label, none)] = answer
    made = [(row, row.decision, _why_not(row.decision, text, found)) for row in rows if row.decision]
    last = {decision.about: row for row, decision, why_not in made if not why_not}
    judged = []
    decided: dict[SpanKey, Answer | None] = {}
    for row, decision, why_not in made:
        replaced = not why_not and last[decision.about] is not row
        outcome = why_not or ("decided again" if replaced else OUTCOMES[decision.verdict])
        if outcome == QUESTION:
            start, end = decision.spans[0]
            outcome = f"{QUESTION}: {decision.label} {text[start:end]!r}: {decision.note}"
        judged.append(Judged(row, decision, outcome))
        if outcome == "corrected":
            for span, by in ((decision.removed, None), (decision.added, found[_chain(decision)])):
                if span:
                    decided[(*trim(text, *span), decision.label)] = by
    return judged, decided


def _chain(decision: Decision) -> Chain:
    return decision.dataset, decision.label, decision.answer


def _why_not(decision: Decision, text: str, found: Mapping[Chain, Answer]) -> str:
    """Return the outcome of a decision that can't be followed, and a remedy; empty if it can."""
    if _chain(decision) not in found:
        return f"{SUPERSEDED}: no answer of {decision.dataset!r} about the text is as it was; decide again"
    for start, end in decision.spans:
        if end > len(text) or not text[start:end].strip():
            return f"malformed: [{start}, {end}] is no span of the text's {len(text)} characters; correct or delete it"
    return ""

"""Decide which spans of a text count, by votes, decisions and conflicts."""

from collections.abc import Mapping, Sequence

from labelwise.annotations import Reason
from labelwise.base.text import SpanKey
from labelwise.merge.rules.answers import Answer, by_time
from labelwise.merge.rules.claims import Claim, Claims, Outcomes, Rows, SpanOutcome, Spans, names_of, outcomes_of
from labelwise.merge.rules.decisions import Change
from labelwise.merge.rules.policies import CONFLICTS, Policies
from labelwise.merge.rules.votes import outvoted


def vote(
    complete: Sequence[Answer],
    rows: Rows,
    accepted: Spans,
    policies: Policies,
    decided: Mapping[SpanKey, Change],
) -> tuple[Spans, Outcomes]:
    """Remove accepted spans that too few annotators chose, unless a decision is about them."""
    voting: dict[str, list[Answer]] = {}
    for answer in complete:
        for label in rows[answer.number].covered:
            if label not in answer.task.uncovered:
                voting.setdefault(label, []).append(answer)
    out = {key for key in outvoted(voting, accepted, policies.annotators) if key not in decided}
    kept = {key: claims for key, claims in accepted.items() if key not in out}
    lost: Outcomes = {}
    for start, end, label in out:
        others = (one for one in sorted(kept) if one[2] == label and one[0] < end and start < one[1])
        winner = next((kept[one][0].span for one in others), None)
        lost |= outcomes_of(accepted[start, end, label], SpanOutcome(Reason.OUTVOTED, "", winner))
    return kept, lost


def decide(
    coverage: Mapping[str, str],
    accepted: Spans,
    rejected: Spans,
    decided: Mapping[SpanKey, Change],
    answers: int,
) -> tuple[Spans, Spans, Outcomes]:
    """Add and remove the spans of decisions, which are numbered from `answers`; some become rejected."""
    accepted, rejected = dict(accepted), dict(rejected)
    lost: Outcomes = {}
    for key, change in decided.items():
        if change.answer is not None:
            accepted.setdefault(key, [Claim(change.answer, (answers + change.row, 0), "accept")])
        elif claims := accepted.pop(key, None):
            if coverage[key[2]] == "complete":
                lost |= outcomes_of(claims, SpanOutcome(Reason.REMOVED, change.place))
            else:
                rejected[key] = [*rejected.get(key, ()), *claims]
    return accepted, rejected, lost


def settle(
    accepted: Spans, rejected: Spans, policies: Policies, decided: Mapping[SpanKey, Change]
) -> tuple[Spans, Spans, Outcomes]:
    """Decide between accepted and rejected spans: within each dataset, then between datasets."""
    accepted, rejected = dict(accepted), dict(rejected)
    lost: Outcomes = {}
    for key in sorted(accepted.keys() & rejected.keys()):
        yes, no = accepted.pop(key), rejected.pop(key)
        if key not in decided:
            yes, no, taken_back = _settle_within(yes, no, policies)
            lost |= taken_back
        if yes and no:
            if key in decided or CONFLICTS[policies.conflicts]:
                lost |= outcomes_of(no, SpanOutcome(Reason.CONFLICT, "", yes[0].span))
                no = []
            else:
                lost |= outcomes_of(yes, SpanOutcome(Reason.CONFLICT, "", no[0].span))
                yes = []
        accepted |= {key: yes} if yes else {}
        rejected |= {key: no} if no else {}
    return accepted, rejected, lost


def _settle_within(yes: Claims, no: Claims, policies: Policies) -> tuple[Claims, Claims, Outcomes]:
    """Remove verdicts superseded by a later, opposite verdict of the same dataset on the span."""
    lost: Outcomes = {}
    for name in sorted({*names_of(yes)} & {*names_of(no)}):
        given = [claim for claim in (*yes, *no) if claim.answer.dataset.name == name]
        policy = given[0].answer.dataset.duplicates or policies.duplicates
        if policy == "union":
            continue
        last = by_time(claim.answer for claim in given)[-1]
        latest = next(claim.span for claim in given if claim.answer is last)
        sides = []
        for claims in (yes, no):
            has_last = any(claim.answer is last for claim in claims)
            sides.append(claims if has_last else [one for one in claims if one.answer.dataset.name != name])
        yes, no = sides
        kept = {claim.span for claim in (*yes, *no)}
        lost |= {c.span: SpanOutcome(Reason.SUPERSEDED, "", latest) for c in given if c.span not in kept}
    return yes, no, lost

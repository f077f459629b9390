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
    changes: Mapping[SpanKey, Change],
) -> tuple[Spans, Outcomes]:
    """Remove accepted spans that too few annotators chose, unless a decision is about them."""
    voting: dict[str, list[Answer]] = {}
    for answer in complete:
        for label in rows[answer.number].covered:
            if label not in answer.task.uncovered:
                voting.setdefault(label, []).append(answer)
    outvoted_keys = {key for key in outvoted(voting, accepted, policies.annotators) if key not in changes}
    kept = {key: claims for key, claims in accepted.items() if key not in outvoted_keys}
    lost: Outcomes = {}
    for start, end, label in outvoted_keys:
        others = (key for key in sorted(kept) if key[2] == label and key[0] < end and start < key[1])
        winner = next((kept[key][0].span for key in others), None)
        lost |= outcomes_of(accepted[start, end, label], SpanOutcome(Reason.OUTVOTED, "", winner))
    return kept, lost


def decide(
    coverage: Mapping[str, str],
    accepted: Spans,
    rejected: Spans,
    changes: Mapping[SpanKey, Change],
    answers: int,
) -> tuple[Spans, Spans, Outcomes]:
    """Add and remove the spans of decisions (numbered from `answers`); some become rejected."""
    accepted, rejected = dict(accepted), dict(rejected)
    lost: Outcomes = {}
    for key, change in changes.items():
        if change.answer is not None:
            accepted.setdefault(key, [Claim(change.answer, (answers + change.row, 0), "accept")])
        elif claims := accepted.pop(key, None):
            if coverage[key[2]] == "complete":
                lost |= outcomes_of(claims, SpanOutcome(Reason.REMOVED, change.place))
            else:
                rejected[key] = [*rejected.get(key, ()), *claims]
    return accepted, rejected, lost


def settle(
    accepted: Spans, rejected: Spans, policies: Policies, changes: Mapping[SpanKey, Change]
) -> tuple[Spans, Spans, Outcomes]:
    """Resolve conflicts of accepted and rejected spans within each dataset, then between datasets."""
    accepted, rejected = dict(accepted), dict(rejected)
    lost: Outcomes = {}
    for key in sorted(accepted.keys() & rejected.keys()):
        yes, no = accepted.pop(key), rejected.pop(key)
        if key not in changes:
            yes, no, taken_back = _settle_within(yes, no, policies)
            lost |= taken_back
        if yes and no:
            if key in changes or CONFLICTS[policies.conflicts]:
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
        of_dataset = [claim for claim in (*yes, *no) if claim.answer.dataset.name == name]
        policy = of_dataset[0].answer.dataset.duplicates or policies.duplicates
        if policy == "union":
            continue
        last = by_time(claim.answer for claim in of_dataset)[-1]
        latest = next(claim.span for claim in of_dataset if claim.answer is last)
        sides = []
        for claims in (yes, no):
            has_last = any(claim.answer is last for claim in claims)
            sides.append(claims if has_last else [claim for claim in claims if claim.answer.dataset.name != name])
        yes, no = sides
        kept = {claim.span for claim in (*yes, *no)}
        lost |= {c.span: SpanOutcome(Reason.SUPERSEDED, "", latest) for c in of_dataset if c.span not in kept}
    return yes, no, lost

"""Choose the spans that count if several annotators answered for a label on a text.

1. Each annotator who accepted a complete task that covers the label has a vote, in any dataset. Unnamed answers are one
   annotator's in each dataset. Rejects and binary answers aren't votes.
2. If there are adjudications (Prodigy's `review`, Label Studio's ground truth), the latest one decides alone.
3. Spans that overlap, directly or through others, are one *candidate*: annotators with other boundaries agree that the
   entity exists. It counts if the policy's number of them chose any of its spans.
4. A candidate that counts has all boundaries that more than half of the annotators chose; else the most frequent ones;
   in a tie the longest, then the first, and others that don't overlap these.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from labelwise.base.text import SpanKey, overlapping_groups
from labelwise.merge.rules.answers import Answer, Offsets, by_time
from labelwise.merge.rules.claims import Claims
from labelwise.merge.rules.policies import ANNOTATORS, names_in


def outvoted(voting: Mapping[str, Sequence[Answer]], accepted: Mapping[SpanKey, Claims], policy: str) -> list[SpanKey]:
    """Return the accepted spans that too few voters, and no other answers, accepted."""
    lost: list[SpanKey] = []
    for label, answers in voting.items():
        deciding = _ballots(answers, policy) if len(answers) > 1 else ()
        if not deciding:
            continue
        spans = {key: {claim.answer.number for claim in claims} for key, claims in accepted.items() if key[2] == label}
        ballots = [{answer.number for answer in ballot} for ballot in deciding]
        chosen = [{key[:2] for key, numbers in spans.items() if numbers & ballot} for ballot in ballots]
        kept = standing(chosen, ANNOTATORS.get(policy, 0.5) * len(chosen))
        everybody = {answer.number for answer in answers}
        lost += [key for key, numbers in spans.items() if key[:2] not in kept and numbers <= everybody]
    return sorted(lost)


def standing(marked: Sequence[Collection[Offsets]], needed: float) -> set[Offsets]:
    """Choose the spans of a label that `needed` annotators marked; 0 keeps all."""
    times = Counter(offsets for spans in marked for offsets in spans)
    if not needed:
        return set(times)
    kept: set[Offsets] = set()
    for candidate, _ in overlapping_groups(times, ()):
        if sum(any(offsets in spans for offsets in candidate) for spans in marked) >= needed:
            sure = {offsets for offsets in candidate if times[offsets] > len(marked) / 2}
            kept |= sure or _most_chosen({offsets: times[offsets] for offsets in candidate})
    return kept


def _most_chosen(times: Mapping[Offsets, int]) -> set[Offsets]:
    most = max(times.values())
    chosen: set[Offsets] = set()
    for start, end in sorted(
        (offsets for offsets in times if times[offsets] == most), key=lambda offsets: (offsets[0] - offsets[1], offsets)
    ):
        if all(end <= first or last <= start for first, last in chosen):
            chosen.add((start, end))
    return chosen


def _ballots(voting: Sequence[Answer], policy: str) -> Sequence[list[Answer]]:
    """Return several annotators' ballots: the adjudication alone, else the first listed, else everyone's."""
    voters: dict[tuple[str, str], list[Answer]] = {}
    for answer in voting:
        voters.setdefault(answer.who, []).append(answer)
    if len(voters) < 2:
        return ()
    if reviews := [answer for answer in voting if answer.task.review]:
        return (by_time(reviews)[-1:],)
    for name in names_in(policy):
        for (who, _), answers in voters.items():
            if who == name:
                return (answers,)
    return list(voters.values())

"""Merge the answers about one text into one annotation, by pure functions.

1. A row is only counted if its answer is `ignore` or unknown, its interface isn't for spans, its dataset declares
   another split than the text's, another file of its dataset has a later answer of the annotator (`duplicates:
   latest`), or it copies another row.
2. Complete tasks: the `duplicates` policy decides between one person's answers for a label, in any datasets. A `reject`
   says nothing about the text. An `accept` accepts its spans, and makes the text complete for its dataset's labels and
   those declared `absent`. The `annotators` policy decides between several annotators' spans of a label.
3. Binary tasks accept or reject single spans, which makes the text `partial` for their label, unless it is complete.
4. The `duplicates` policy decides between a dataset's verdicts on a span; the `conflicts` policy between datasets.
5. Decisions change single spans of the result: see `decisions`.
6. Every row and span gets one outcome here; accepted and rejected spans in `to_doc`.

`to_doc` decides about overlaps and token boundaries; `corpus.agreement` counts the annotators' agreement.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from labelwise.annotations import Reason
from labelwise.base.text import SpanKey
from labelwise.corpus.manifest import Split
from labelwise.datasets.decisions import DecisionRow
from labelwise.merge.rules.answers import (
    Answer,
    Number,
    are_apart,
    asked_labels,
    by_time,
    fits_split,
    latest_works,
    left_out,
    repeated_answers,
    superseded_exports,
)
from labelwise.merge.rules.claims import (
    Claim,
    Outcomes,
    RowOutcome,
    Rows,
    SpanOutcome,
    Spans,
    duplicates_of,
    sort_spans,
)
from labelwise.merge.rules.decisions import DecisionOutcome, resolve_decisions
from labelwise.merge.rules.policies import Policies, choose_duplicates
from labelwise.merge.rules.settle import decide, settle, vote


class Merged(NamedTuple):
    """The merged annotation of one text, with the outcomes of its rows and spans.

    doc (str): name of the document; "" if no answer has one.
    coverage (dict[str, str]): "complete" or "partial", by label; others are missing.
    gold, rejected (dict): the spans that count, sorted, each with its claims.
    spans (dict): outcomes of spans, except first claims in gold and rejected: see `to_doc`.
    versions (dict): labels for which an answer is its annotator's latest work, if others annotated them, too.
    out_of_order (set): latest answers by time, though another file is declared as a later export.
    unit, groups: see `annotation.Annotation`; the caller sets both.
    """

    text: str
    doc: str
    coverage: dict[str, str]
    gold: Spans
    rejected: Spans
    datasets: list[str]
    rows: Rows
    spans: Outcomes
    decisions: list[DecisionOutcome]
    versions: dict[Number, list[str]]
    out_of_order: set[Number]
    unit: str = ""
    groups: dict[str, list[str]] = {}


def merge_text(
    text: str,
    answers: Sequence[Answer],
    policies: Policies,
    split: Split | None = None,
    decisions: Sequence[DecisionRow] = (),
) -> Merged:
    """Merge all answers about one text, in order of the datasets; answers of another declared split don't count."""
    apart = not decisions and are_apart(answers, split)
    rows, out_of_order = ({}, set()) if apart else _leave_out(answers, split, policies)
    rows |= {answer.number: RowOutcome(Reason.MERGED, None, answer.dataset.labels) for answer in answers if apart}
    people: dict[tuple[str, str], list[Answer]] = {}
    binary_answers: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.number not in rows and answer.kind == "complete":
            people.setdefault(answer.who, []).append(answer)
        elif answer.number not in rows:
            binary_answers.setdefault(answer.dataset.name, []).append(answer)
    for group in people.values():
        rows |= _choose(group, policies)
    rows |= {answer.number: RowOutcome(Reason.MERGED) for group in binary_answers.values() for answer in group}

    spans: Outcomes = {}
    accepted: Spans = {}
    rejected: Spans = {}
    binary_claims: list[tuple[SpanKey, Claim]] = []  # of answers to binary tasks
    for answer in answers:
        lost, claims = sort_spans(answer, rows[answer.number])
        spans |= lost
        if answer.kind == "binary":
            binary_claims += claims
        else:
            for key, claim in claims:
                side = accepted if claim.verdict == "accept" else rejected
                side[key] = [*side.get(key, ()), claim]
    complete = [
        answer for answer in answers if answer.kind == "complete" and rows[answer.number].reason == Reason.MERGED
    ]
    verdicts: list[tuple[SpanKey, Claim]] = []
    for group in binary_answers.values():
        kept, lost = _choose_verdicts(group, binary_claims, policies)
        verdicts, spans = verdicts + kept, spans | lost
    deciding = [claim.answer for _, claim in verdicts]
    decision_outcomes, changes = resolve_decisions(decisions, text, [*complete, *deciding])

    if not apart:
        accepted, lost = vote(complete, rows, accepted, policies, changes)
        spans |= lost
    for key, claim in verdicts:
        side = accepted if claim.verdict == "accept" else rejected
        side[key] = [*side.get(key, ()), claim]
        labels = {*rows[claim.answer.number].covered, key[2]}
        rows[claim.answer.number] = RowOutcome(Reason.MERGED, covered=sorted(labels))
    coverage = _cover(complete, verdicts, rows)
    for key in changes:
        coverage.setdefault(key[2], "partial")
    accepted, rejected, lost = decide(coverage, accepted, rejected, changes, len(answers))
    spans |= lost
    accepted, rejected, lost = settle(accepted, rejected, policies, changes)
    spans |= lost
    for side in (accepted, rejected):
        several = (claims for claims in side.values() if len(claims) > 1)
        spans |= {ref: outcome for claims in several for ref, outcome in duplicates_of(claims).items()}
    return Merged(
        text,
        min((answer.task.doc for answer in answers if answer.task.doc and fits_split(answer, split)), default=""),
        coverage,
        {key: accepted[key] for key in sorted(accepted)},
        {key: rejected[key] for key in sorted(rejected)},
        list(dict.fromkeys(answer.dataset.name for answer in (*complete, *deciding))),
        rows,
        spans,
        decision_outcomes,
        latest_works([answer for group in people.values() for answer in group]),
        out_of_order,
    )


def _leave_out(answers: Sequence[Answer], split: Split | None, policies: Policies) -> tuple[Rows, set[Number]]:
    """Return the outcomes of dropped answers, and answers whose times contradict the order of files."""
    usable = [answer for answer in answers if not left_out(answer)]
    fitting = {answer.number: answer for answer in usable if fits_split(answer, split)}
    repeated = repeated_answers(fitting.values())
    earlier: dict[Number, Number] = {}
    out_of_order: set[Number] = set()
    latest = [answer for answer in answers if (answer.dataset.duplicates or policies.duplicates) == "latest"]
    if latest:
        earlier, out_of_order = superseded_exports([answer for answer in latest if answer.number not in repeated])
    owner = next((answer.number for answer in usable if answer.dataset.split == split), None)
    rows = {}
    for answer in answers:
        if (number := answer.number) in repeated:
            rows[number] = RowOutcome(Reason.SAME_ANSWER, repeated[number])
        elif number in earlier:
            rows[number] = RowOutcome(Reason.SUPERSEDED, earlier[number])
        elif reason := left_out(answer):
            rows[number] = RowOutcome(reason)
        elif number not in fitting:
            rows[number] = RowOutcome(Reason.SPLIT_CONFLICT, owner)
    return rows, out_of_order


def _choose(group: Sequence[Answer], policies: Policies) -> Rows:
    """Apply `duplicates` to one annotator's complete answers, per label."""
    counting: dict[Number, list[str]] = {answer.number: [] for answer in group if not asked_labels(answer)}
    superseded: dict[Number, dict[str, Number | None]] = {answer.number: {} for answer in group}
    by_label: dict[str, list[Answer]] = {}
    for answer in group:
        for label in asked_labels(answer):
            by_label.setdefault(label, []).append(answer)
    for label, answers in by_label.items():
        kept = answers if len(answers) == 1 else choose_duplicates(answers, policies.duplicates)
        winner = kept[0].number if len(kept) == 1 else None
        numbers = {answer.number for answer in kept}
        for answer in answers:
            if answer.number in numbers:
                counting.setdefault(answer.number, []).append(label)
            else:
                superseded[answer.number][label] = winner
    rows = {}
    for answer in group:
        lost = superseded[answer.number]
        if answer.number not in counting:
            rows[answer.number] = RowOutcome(Reason.SUPERSEDED, next(iter(lost.values())), (), lost)
        elif answer.task.answer == "reject":
            rows[answer.number] = RowOutcome(Reason.REJECTED, None, (), lost)
        else:
            rows[answer.number] = RowOutcome(Reason.MERGED, None, counting[answer.number], lost)
    return rows


def _choose_verdicts(
    group: Sequence[Answer], claims: Iterable[tuple[SpanKey, Claim]], policies: Policies
) -> tuple[list[tuple[SpanKey, Claim]], Outcomes]:
    """Apply `duplicates` to a dataset's verdicts on each span; `union` can keep an accept and a reject."""
    numbers = {answer.number for answer in group}
    by_span: dict[SpanKey, list[Claim]] = {}
    for key, claim in claims:
        if claim.answer.number in numbers:
            by_span.setdefault(key, []).append(claim)
    kept: list[tuple[SpanKey, Claim]] = []
    lost: Outcomes = {}
    for key, of_span in by_span.items():
        policy = of_span[0].answer.dataset.duplicates or policies.duplicates
        in_order = by_time({claim.answer.number: claim.answer for claim in of_span}.values())
        place = {answer.number: number for number, answer in enumerate(in_order)}
        latest = sorted(of_span, key=lambda claim: -place[claim.answer.number])
        counting = {claim.verdict: claim for claim in reversed(latest)}
        if policy != "union":
            counting = {"": latest[0]}
        kept += [(key, claim) for claim in counting.values()]
        refs = {claim.span for claim in counting.values()}
        lost |= {c.span: SpanOutcome(Reason.SUPERSEDED, "", latest[0].span) for c in of_span if c.span not in refs}
    return kept, lost


def _cover(complete: Sequence[Answer], verdicts: Iterable[tuple[SpanKey, Claim]], rows: Rows) -> dict[str, str]:
    """Return each label's state, complete or partial; labels declared absent are complete."""
    states = [
        (label, answer.task.uncovered.get(label, "complete"))
        for answer in complete
        for label in rows[answer.number].covered
    ]
    states += [(key[2], "partial") for key, _ in verdicts]
    counting = (*complete, *(claim.answer for _, claim in verdicts))
    states += [(label, "complete") for answer in counting for label in answer.dataset.absent]
    return {label: state for label, state in states if state == "partial"} | {
        label: state for label, state in states if state == "complete"
    }

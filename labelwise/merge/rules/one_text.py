"""Merge the tasks of one text into one annotation: pure functions, nothing is read or written here.

1. A row leaves no trace but its count if its answer is `ignore` or unknown, or if it comes from an interface that isn't
   for spans, or from a data set that declares another split than the text's; or if another file of its data set has a
   later answer of the annotator's (with `duplicates: latest`), or another row has the same answer.
2. Complete tasks: where one person answered for a label more than once, in whichever data sets, the `duplicates` policy
   decides. If the answer that counts is a `reject`, it says nothing about the text. If it is an `accept`, the text is
   complete for the labels of the data set, and its spans are accepted.
   So it is for the labels that the data set declares `absent` from its texts.
   Where several annotators answered for a label, the `annotators` policy decides which of their spans stand.
3. Binary tasks judge single spans; where a data set judged the same span twice, the `duplicates` policy decides.
   A text judged for a label is `partial` for it, unless it is complete.
4. Of a data set's verdicts on a span, accepted and rejected, the `duplicates` policy decides, too; a span accepted by
   one data set and rejected by another is for the `conflicts` policy.
5. Decisions change single spans of all that: see `decisions`.
6. Every row and every span is given one outcome, or is among the accepted or rejected ones that `to_doc` gives one.

How far annotators agree is counted by `agreement`. Overlaps and token boundaries aren't decided here: see `to_doc`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from labelwise.base.text import SpanKey, State
from labelwise.corpus.manifest import Split
from labelwise.datasets.decisions import DecisionRow
from labelwise.merge.rules.agreement import Version, find_versions
from labelwise.merge.rules.answers import Answer, by_time, said_labels, same_answers, superseded, why_not
from labelwise.merge.rules.decisions import Decided, Judged, judge
from labelwise.merge.rules.lost_spans import Claim, LostSpan
from labelwise.merge.rules.policies import CONFLICTS, DUPLICATES, Policies, only
from labelwise.merge.rules.splits import value_of_meta
from labelwise.merge.rules.votes import outvoted
from labelwise.sources.prodigy import DOCUMENT, TaskSpan

# Those who say so, each with their span; the first span has the outcome of all, the others are duplicates.
Said = list[tuple[Answer, TaskSpan]]
Spans = dict[SpanKey, Said]


class Merged(msgspec.Struct):
    """The merged annotation of one text.

    answers (Sequence[Answer]): all of them; they and their spans have their outcomes.
    name (str): the document that the text is, as its tasks' `meta.doc` says; empty if none does.
    coverage (dict[str, str]): "complete" or "partial" by label; neither for a label that isn't in it.
    places (dict): data set, file and line of each answer that counts.
    accepted, rejected (dict): the spans that count, sorted, each with those who say so.
    lost (list[LostSpan]): accepted spans that were rejected elsewhere, or the other way round.
    versions (dict[str, list[Version]]): the spans of each of several annotators, by label.
    other_split (list): of each row left out its data set, and the one that declares the text's split.
    replaced (list): of each answer for a label its data set, and that of the same person's later answer.
    out_of_order (list[str]): the data set of each question on whose latest answer times and order of files disagree.
    judged (list[Judged]): the decisions about it.
    added (list[TaskSpan]): spans that no source has, but a decision.
    """

    text: str
    answers: Sequence[Answer]
    name: str = ""
    coverage: dict[str, str] = {}
    places: dict[tuple[str, str, int], None] = {}
    accepted: Spans = {}
    rejected: Spans = {}
    lost: list[LostSpan] = []
    versions: dict[str, list[Version]] = {}
    other_split: list[tuple[str, str]] = []
    replaced: list[tuple[str, str]] = []
    out_of_order: list[str] = []
    judged: list[Judged] = []
    added: list[TaskSpan] = []

    @property
    def datasets(self) -> list[str]:
        """The data sets with an answer that counts."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.places))


def merge_text(
    text: str,
    answers: Sequence[Answer],
    policies: Policies,
    split: Split | None = None,
    decisions: Sequence[DecisionRow] = (),
) -> Merged:
    """Merge all answers about one text, in the order of the data sets.

    split (str | None): the split that a data set declares for the text; answers of data sets that declare another one
        don't count.
    decisions (Sequence[DecisionRow]): those about the text, in order.
    RAISES (InputError): a policy is "error" and there is something to decide.
    """
    merged = Merged(text, answers, value_of_meta(answers, DOCUMENT) or "")
    complete, binary = _sort_answers(merged, split, policies)
    chosen: dict[int, list[str]] = {}
    for group in complete.values():
        chosen |= _choose(merged, group, policies)
    counting = [(answer, chosen[id(answer)]) for answer in answers if id(answer) in chosen]
    judgements = [one for group in binary.values() for one in _judgements(group, policies).items()]
    counted = [*(answer for answer, _ in counting), *(answer for _, (answer, _) in judgements)]
    merged.judged, decided = judge(decisions, text, counted)

    accepted, rejected = _collect_spans(merged, counting)
    _vote(merged, counting, accepted, policies, decided)
    for (key, accept), (answer, span) in judgements:
        _cover(merged, answer, {key[2]: "partial"})
        _note(accepted if accept else rejected, key, answer, span)
    _decide(merged, accepted, rejected, decided)
    _settle(merged, accepted, rejected, policies, decided)
    merged.accepted = {key: accepted[key] for key in sorted(accepted)}
    merged.rejected = {key: rejected[key] for key in sorted(rejected)}
    merged.versions = find_versions([answer for group in complete.values() for answer in group])
    return merged


def _sort_answers(
    merged: Merged, split: Split | None, policies: Policies
) -> tuple[dict[tuple[str, str], list[Answer]], dict[str, list[Answer]]]:
    """Drop the answers that leave no trace, and group the others: complete ones by person, binary ones by data set."""
    complete: dict[tuple[str, str], list[Answer]] = {}
    binary: dict[str, list[Answer]] = {}
    able = [answer for answer in merged.answers if not why_not(answer) and _is_for(answer, split)]
    same = same_answers(able)
    earlier: set[int] = set()
    if policies.duplicates == "latest":
        earlier, merged.out_of_order = superseded([answer for answer in merged.answers if id(answer) not in same])
    for answer in merged.answers:
        if id(answer) in same:
            _drop(answer, "same answer")
        elif id(answer) in earlier:
            _drop(answer, "superseded")
        elif reason := why_not(answer):
            _drop(answer, reason)
        elif not _is_for(answer, split):
            owner = next(other for other in merged.answers if other.dataset.split == split and not why_not(other))
            merged.other_split.append((answer.dataset.name, owner.dataset.name))
            _drop(answer, "other split")
        elif answer.kind == "complete":
            complete.setdefault(answer.who, []).append(answer)
        else:
            binary.setdefault(answer.dataset.name, []).append(answer)
    return complete, binary


def _is_for(answer: Answer, split: Split | None) -> bool:
    """Tell whether the data set of an answer lets its text be in the split that one declares."""
    return split is None or answer.dataset.split in ("auto", split)


def _collect_spans(merged: Merged, counting: Sequence[tuple[Answer, Sequence[str]]]) -> tuple[Spans, Spans]:
    """Collect the accepted and the rejected spans of complete answers, each of which counts for some labels."""
    accepted: Spans = {}
    rejected: Spans = {}
    for answer, labels in counting:
        answer.outcome = "merged"
        uncovered = answer.task.uncovered or {}
        _cover(merged, answer, {label: uncovered.get(label, "complete") for label in labels})
        for key, span in _usable_spans(answer):
            if key[2] not in labels:
                span.outcome = "superseded"
            elif span.answer in (None, "accept"):
                _note(accepted, key, answer, span)
            elif span.answer == "reject":
                _note(rejected, key, answer, span)
            else:
                span.outcome = "ignored"
    return accepted, rejected


def _drop(answer: Answer, outcome: str) -> None:
    """Leave out an answer with its spans."""
    answer.outcome = outcome
    for span in answer.spans:
        span.outcome = f"in {outcome} task"


def _choose(merged: Merged, group: Sequence[Answer], policies: Policies) -> dict[int, list[str]]:
    """Choose among one person's complete answers, label by label: drop the others, and the rejected.

    RETURNS (dict): of each answer that counts, by its `id`, the labels for which it does.
    """
    chosen: dict[int, list[str]] = {id(answer): [] for answer in group if not said_labels(answer)}
    given: dict[str, list[Answer]] = {}
    for answer in group:
        for label in said_labels(answer):
            given.setdefault(label, []).append(answer)
    for label, answers in given.items():
        kept = answers if len(answers) == 1 else DUPLICATES[policies.duplicates](answers)
        for answer in kept:
            chosen.setdefault(id(answer), []).append(label)
        if policies.duplicates == "latest":
            names = [answer.dataset.name for answer in answers]
            merged.replaced += [(name, kept[0].dataset.name) for name in names if name != kept[0].dataset.name]
    for answer in group:
        if answer.task.answer == "reject":
            _drop(answer, "rejected" if chosen.pop(id(answer), None) is not None else "superseded")
        elif id(answer) not in chosen:
            _drop(answer, "superseded")
    return chosen


def _cover(merged: Merged, answer: Answer, states: Mapping[str, str]) -> None:
    """Note for which labels an answer that counts covers the text, and its place; absent labels are complete."""
    for label, state in (*states.items(), *((label, "complete") for label in answer.dataset.absent)):
        if state == "complete":
            merged.coverage[label] = state
        elif state == "partial":
            merged.coverage.setdefault(label, state)
    merged.places[(answer.dataset.name, *answer.name)] = None


def _judgements(group: Sequence[Answer], policies: Policies) -> dict[tuple[SpanKey, bool], tuple[Answer, TaskSpan]]:
    """Collect the verdicts of a data set's binary answers on each span; with `union`, that can be both."""
    by_span: dict[SpanKey, list[tuple[bool, Answer, TaskSpan]]] = {}
    for answer in group:
        answer.outcome = "merged"
        for key, span in _usable_spans(answer):
            verdict = span.answer or answer.task.answer
            if verdict in ("accept", "reject"):
                by_span.setdefault(key, []).append((verdict == "accept", answer, span))
            else:
                span.outcome = "ignored"
    judged: dict[tuple[SpanKey, bool], tuple[Answer, TaskSpan]] = {}
    for key, verdicts in by_span.items():
        if policies.duplicates == "error":
            only([answer for _, answer, _ in verdicts])
        place = {id(answer): number for number, answer in enumerate(by_time(answer for _, answer, _ in verdicts))}
        verdicts.sort(key=lambda verdict: place[id(verdict[1])], reverse=True)
        # Of equal verdicts, the latest is kept.
        kept = {
            accept: (answer, span)
            for accept, answer, span in (reversed(verdicts) if policies.duplicates == "union" else verdicts[:1])
        }
        for accept, _, span in verdicts:
            if accept not in kept or kept[accept][1] is not span:
                span.outcome = "superseded"
        judged |= {(key, accept): said for accept, said in kept.items()}
    return judged


def _usable_spans(answer: Answer) -> Iterator[tuple[SpanKey, TaskSpan]]:
    """Yield the spans of a task that can be used; the others have an outcome."""
    uncovered = answer.task.uncovered
    labels = answer.dataset.labels
    for span in answer.spans:
        if span.outcome:
            continue
        label = span.label
        if label not in labels:
            span.outcome = f"undeclared label: {label}"
        elif uncovered and uncovered.get(label) == "none":
            span.outcome = f"invalid: {label} {span.start} {span.end}: nobody looked for {label}, says `uncovered`"
        else:
            yield (span.start, span.end, label), span


def _note(spans: Spans, key: SpanKey, answer: Answer, span: TaskSpan) -> None:
    if said := spans.get(key):
        span.outcome = "duplicate"
        said.append((answer, span))
    else:
        spans[key] = [(answer, span)]


def _vote(
    merged: Merged,
    counting: Sequence[tuple[Answer, Sequence[str]]],
    accepted: Spans,
    policies: Policies,
    decided: Decided,
) -> None:
    """Take out the accepted spans that too few of several annotators agree on, unless they are decided."""
    voting: dict[str, list[Answer]] = {}
    for answer, labels in counting:
        for label in labels:
            if label not in (answer.task.uncovered or ()):
                voting.setdefault(label, []).append(answer)
    lost = {key: accepted.pop(key) for key in outvoted(voting, accepted, policies.annotators) if key not in decided}
    for key, said in lost.items():
        start, end, label = key
        winner = next((one for one in sorted(accepted) if one[2] == label and one[0] < end and start < one[1]), None)
        kept = Claim(winner, "accept", names_of(accepted[winner])) if winner else None
        said[0][1].outcome = "outvoted"
        merged.lost.append(LostSpan("outvoted", Claim(key, "accept", names_of(said)), kept))


def _decide(merged: Merged, accepted: Spans, rejected: Spans, decided: Decided) -> None:
    """Add and remove the spans that are decided; where single spans are judged, one that is removed is rejected."""
    for key, answer in decided.items():
        merged.coverage.setdefault(key[2], "partial")
        if answer is not None:
            if key not in accepted:
                merged.added.append(TaskSpan(*key))
                accepted[key] = [(answer, merged.added[-1])]
        elif said := accepted.pop(key, None):
            if merged.coverage[key[2]] == "complete":
                said[0][1].outcome = "removed by a decision"
            elif key in rejected:
                said[0][1].outcome = "duplicate"
            else:
                rejected[key] = said


def _settle(merged: Merged, accepted: Spans, rejected: Spans, policies: Policies, decided: Decided) -> None:
    """Decide between spans that are both accepted and rejected: first within each data set, then between them."""
    for key in sorted(accepted.keys() & rejected.keys()):
        if key not in decided:
            _settle_within(key, accepted, rejected, policies)
        if key not in accepted or key not in rejected:
            continue
        yes, no = ([answer for answer, _ in spans[key]] for spans in (accepted, rejected))
        accept = key in decided or CONFLICTS[policies.conflicts](yes, no)
        claims = Claim(key, "accept", names_of(accepted[key])), Claim(key, "reject", names_of(rejected[key]))
        said = (rejected if accept else accepted).pop(key)
        said[0][1].outcome = "accept/reject"
        kept, lost = claims if accept else reversed(claims)
        merged.lost.append(LostSpan("accept/reject", lost, kept))


def _settle_within(key: SpanKey, accepted: Spans, rejected: Spans, policies: Policies) -> None:
    """Withdraw the verdicts on a span that a later, opposite one of the same data set supersedes.

    With `duplicates: union`, both stand.

    RAISES (InputError): the policy is "error".
    """
    if policies.duplicates == "union":
        return
    sides = accepted, rejected
    names = [{answer.dataset.name for answer, _ in spans[key]} for spans in sides]
    for name in sorted(names[0] & names[1]):
        given = [[answer for answer, _ in spans[key] if answer.dataset.name == name] for spans in sides]
        if policies.duplicates == "error":
            only([*given[0], *given[1]])
        last = by_time([*given[0], *given[1]])[-1]
        lost = [spans for spans, answers in zip(sides, given, strict=True) if not any(last is one for one in answers)]
        for spans in lost:  # none if one answer has both
            _withdraw(key, spans, name)


def _withdraw(key: SpanKey, spans: Spans, name: str) -> None:
    """Take a data set from those who assert a span; the first that is left has the outcome of all."""
    said = spans.pop(key)
    for answer, span in said:
        span.outcome = "superseded" if answer.dataset.name == name else "duplicate"
    if left := [(answer, span) for answer, span in said if answer.dataset.name != name]:
        left[0][1].outcome = ""
        spans[key] = left


def names_of(said: Said) -> list[str]:
    """Name the data sets that say so."""
    return [said[0][0].dataset.name] if len(said) == 1 else sorted({answer.dataset.name for answer, _ in said})


def missing_labels(coverage: Mapping[str, str], labels: Iterable[str]) -> dict[str, State]:
    """List the labels that a text isn't complete for, each "partial" or "none"."""
    return {label: "partial" if label in coverage else "none" for label in labels if coverage.get(label) != "complete"}

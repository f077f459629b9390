"""Merge the tasks of one text into one annotation: pure functions, nothing is read or written here.

1. A row leaves no trace but its count if its answer is `ignore` or unknown, or if it comes from an interface that isn't
   for spans, or from a data set that declares another split than the text's; or if a file that its data set lists
   later has the annotator's answer, too.
2. Complete tasks: where an annotator answered a text of a data set more than once, the `duplicates` policy decides. If
   the answer that counts is a `reject`, it says nothing about the text. If it is an `accept`, the text is complete for
   the labels of the data set, and its spans are accepted.
   So it is for the labels that the data set declares `absent` from its texts.
   Where several annotators answered for a label, the `annotators` policy decides which of their spans stand.
3. Binary tasks judge single spans; where a data set judged the same span twice, the `duplicates` policy decides.
   A text judged for a label is `partial` for it, unless it is complete.
4. A span accepted by one data set and rejected by another is for the `conflicts` policy.
5. Decisions change single spans of all that: see `decisions`.
6. Every row and every span read has one outcome, counted in `Merged.rows` and `Merged.spans`.

How far annotators agree is counted by `agreement`. Overlaps and token boundaries aren't decided here: see `to_doc`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from labelwise.common.spans import SpanKey, State, trim_usable
from labelwise.corpus.manifest import Split
from labelwise.merge.rules.agreement import Version, find_versions
from labelwise.merge.rules.answers import Answer, annotator, superseded, why_not
from labelwise.merge.rules.decisions import Decided, Judged, judge
from labelwise.merge.rules.ledger import Problem, outcome_of
from labelwise.merge.rules.lost_spans import Claim, LostSpan
from labelwise.merge.rules.policies import CONFLICTS, DUPLICATES, Policies, only
from labelwise.merge.rules.splits import value_of_meta
from labelwise.merge.rules.votes import outvoted
from labelwise.sources.decisions import DecisionRow
from labelwise.sources.prodigy import DOCUMENT, TaskSpan


class Merged(NamedTuple):
    """The merged annotation of one text.

    places (list): the answers that count: data set, file and line of each; a brat document has no line, which is 0.
    name (str): the document that the text is, as its tasks' `meta.doc` says; empty if none does.
    coverage (dict[str, str]): "complete" or "partial" by label; neither for a label that isn't in it.
    covered (dict[tuple[str, str], str]): the same by data set and label, of its own answers.
    accepted, rejected (dict): the spans that count, sorted, each with the names of the data sets that say so.
    lost (list[LostSpan]): accepted spans that were rejected elsewhere, or the other way round.
    problems (list[Problem]): the spans that can't be used.
    rows, spans (Counter): everything read, by outcome, except for what is in `accepted` and `rejected`.
    versions (dict[str, list[Version]]): the spans of each of several annotators, by label.
    other_split (Counter): rows left out, by their data set, and the one that declares the text's split.
    trimmed (Counter): by data set, usable spans that had white space at their edges.
    judged (list[Judged]): the decisions about it.
    added (list[SpanKey]): spans that no source has, but a decision.
    """

    text: str
    places: list[tuple[str, str, int]]
    name: str
    coverage: dict[str, str]
    covered: dict[tuple[str, str], str]
    accepted: dict[SpanKey, list[str]]
    rejected: dict[SpanKey, list[str]]
    lost: list[LostSpan]
    problems: list[Problem]
    rows: Counter[str]
    spans: Counter[str]
    versions: dict[str, list[Version]]
    other_split: Counter[tuple[str, str]]
    trimmed: Counter[str]
    judged: list[Judged]
    added: list[SpanKey]

    @property
    def datasets(self) -> list[str]:
        """The data sets with an answer that counts."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.places))


def merge_text(
    text: str,
    answers: Iterable[Answer],
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
    answers = list(answers)
    name = value_of_meta(answers, DOCUMENT) or ""
    counters = (Counter[tuple[str, str]](), Counter[str]())
    merged = Merged(text, [], name, {}, {}, {}, {}, [], [], Counter(), Counter(), {}, *counters, [], [])
    complete: dict[tuple[str, tuple[str, str]], list[Answer]] = {}
    binary: dict[str, list[Answer]] = {}
    earlier = superseded(answers)
    for answer in answers:
        if id(answer) in earlier:
            _drop(merged, answer, "superseded")
        elif reason := why_not(answer):
            _drop(merged, answer, reason)
        elif split is not None and answer.dataset.split not in ("auto", split):
            owner = next(other for other in answers if other.dataset.split == split and not why_not(other))
            merged.other_split[answer.dataset.name, owner.dataset.name] += 1
            _drop(merged, answer, "other split")
        elif answer.kind == "complete":
            complete.setdefault((answer.dataset.name, annotator(answer)), []).append(answer)
        else:
            binary.setdefault(answer.dataset.name, []).append(answer)
    accepted: dict[SpanKey, list[Answer]] = {}
    rejected: dict[SpanKey, list[Answer]] = {}
    chosen = [answer for group in complete.values() for answer in _choose(merged, group, policies)]
    for answer in chosen:
        merged.rows["merged"] += 1
        uncovered = answer.task.uncovered or {}
        _cover(merged, answer, {label: uncovered.get(label, "complete") for label in answer.dataset.labels})
        for key, span in _usable_spans(merged, answer):
            if span.answer in (None, "accept"):
                _note(merged, accepted, key, answer)
            elif span.answer == "reject":
                _note(merged, rejected, key, answer)
            else:
                merged.spans["ignored"] += 1
    judgements = [one for group in binary.values() for one in _judgements(merged, group, policies).items()]
    judged, decided = judge(decisions, text, [*chosen, *(answer for _, answer in judgements)])
    _vote(merged, chosen, accepted, policies, decided)
    for (key, accept), answer in judgements:
        _cover(merged, answer, {key[2]: "partial"})
        _note(merged, accepted if accept else rejected, key, answer)
    merged.judged.extend(judged)
    _decide(merged, accepted, rejected, decided)
    _settle(merged, accepted, rejected, policies, decided)
    merged.accepted.update((key, _names(accepted[key])) for key in sorted(accepted))
    merged.rejected.update((key, _names(rejected[key])) for key in sorted(rejected))
    merged.rows.update(outcome_of(one.outcome) for one in judged)
    merged.problems.extend(one.problem() for one in judged if ":" in one.outcome)
    merged.versions.update(find_versions(text, list(chain.from_iterable(complete.values()))))
    return merged


def _cover(merged: Merged, answer: Answer, states: Mapping[str, str]) -> None:
    """Note for which labels an answer that counts covers the text, and its place; absent labels are complete."""
    for label, state in (*states.items(), *((label, "complete") for label in answer.dataset.absent)):
        if state == "complete":
            merged.coverage[label] = merged.covered[answer.dataset.name, label] = state
        elif state == "partial":
            merged.coverage.setdefault(label, state)
            merged.covered.setdefault((answer.dataset.name, label), state)
    place = (answer.dataset.name, *answer.name)
    if place not in merged.places:
        merged.places.append(place)


def _choose(merged: Merged, group: list[Answer], policies: Policies) -> list[Answer]:
    """Choose among an annotator's complete answers, count the others, and leave out the rejected."""
    chosen = DUPLICATES[policies.duplicates](group)
    counting = {id(answer) for answer in chosen}  # two may be equal: annotations of one task that have no ids
    for answer in group:
        if answer.task.answer == "reject":
            _drop(merged, answer, "rejected" if id(answer) in counting else "superseded")
        elif id(answer) not in counting:
            _drop(merged, answer, "superseded")
    return [answer for answer in chosen if answer.task.answer != "reject"]


def _judgements(merged: Merged, group: list[Answer], policies: Policies) -> dict[tuple[SpanKey, bool], Answer]:
    """Collect the verdicts of a data set's binary answers on each span; with `union`, that can be both."""
    by_span: dict[SpanKey, list[tuple[bool, Answer]]] = {}
    for answer in group:
        merged.rows["merged"] += 1
        for key, span in _usable_spans(merged, answer):
            verdict = span.answer or answer.task.answer
            if verdict not in ("accept", "reject"):
                merged.spans["ignored"] += 1
            else:
                by_span.setdefault(key, []).append((verdict == "accept", answer))
    judged: dict[tuple[SpanKey, bool], Answer] = {}
    for key, verdicts in by_span.items():
        if policies.duplicates == "error":
            only([answer for _, answer in verdicts])
        verdicts.sort(key=lambda verdict: verdict[1].order, reverse=True)
        # Of equal verdicts, the latest is kept.
        kept = dict(reversed(verdicts) if policies.duplicates == "union" else verdicts[:1])
        merged.spans["superseded"] += len(verdicts) - len(kept)
        judged.update(((key, accept), answer) for accept, answer in kept.items())
    return judged


def _usable_spans(merged: Merged, answer: Answer) -> Iterable[tuple[SpanKey, TaskSpan]]:
    """Yield the spans of a task that can be used, white space at their edges trimmed; count and report the others."""
    uncovered = answer.task.uncovered or {}
    for span in answer.task.spans or ():
        start, end = trim_usable(merged.text, span.start, span.end)
        if start == end or not isinstance(span.label, str):
            problem, what = "invalid", f"{span.label} {span.start} {span.end}"
        elif span.label not in answer.dataset.labels:
            problem, what = "undeclared label", span.label
        elif uncovered.get(span.label) == "none":
            problem, what = (
                "invalid",
                f"{span.label} {start} {end}: nobody looked for {span.label}, says `uncovered`",
            )
        else:
            if (start, end) != (span.start, span.end):
                merged.trimmed[answer.dataset.name] += 1
            yield (start, end, span.label), span
            continue
        merged.spans[problem] += 1
        merged.problems.append(Problem(answer.dataset.name, *(span.place or answer.name), f"{problem}: {what}"))


def _note(merged: Merged, spans: dict[SpanKey, list[Answer]], key: SpanKey, answer: Answer) -> None:
    merged.spans["duplicate"] += key in spans
    spans.setdefault(key, []).append(answer)


def _vote(
    merged: Merged,
    chosen: Sequence[Answer],
    accepted: dict[SpanKey, list[Answer]],
    policies: Policies,
    decided: Decided,
) -> None:
    """Take out the accepted spans that too few of several annotators agree on, unless they are decided."""
    keys = [key for key in outvoted(chosen, accepted, policies.annotators) if key not in decided]
    lost = {key: accepted.pop(key) for key in keys}
    for key, answers in lost.items():
        start, end, label = key
        winner = next((one for one in sorted(accepted) if one[2] == label and one[0] < end and start < one[1]), None)
        kept = Claim(winner, "accept", _names(accepted[winner])) if winner else None
        merged.spans["outvoted"] += 1
        merged.lost.append(LostSpan("outvoted", Claim(key, "accept", _names(answers)), kept))


def _decide(
    merged: Merged, accepted: dict[SpanKey, list[Answer]], rejected: dict[SpanKey, list[Answer]], decided: Decided
) -> None:
    """Add and remove the spans that are decided; where single spans are judged, one that is removed is rejected."""
    for key, answer in decided.items():
        merged.coverage.setdefault(key[2], "partial")
        if answer is not None:
            if key not in accepted:
                merged.added.append(key)
                accepted[key] = [answer]
        elif answers := accepted.pop(key, None):
            if merged.coverage[key[2]] == "complete":
                merged.spans["removed by a decision"] += 1
            else:
                merged.spans["duplicate"] += key in rejected
                rejected.setdefault(key, answers)


def _settle(
    merged: Merged,
    accepted: dict[SpanKey, list[Answer]],
    rejected: dict[SpanKey, list[Answer]],
    policies: Policies,
    decided: Decided,
) -> None:
    """Decide between spans that are both accepted and rejected."""
    for key in sorted(accepted.keys() & rejected.keys()):
        claims = [Claim(key, "accept", _names(accepted[key])), Claim(key, "reject", _names(rejected[key]))]
        accept = key in decided or CONFLICTS[policies.conflicts](accepted[key], rejected[key])
        del (rejected if accept else accepted)[key]
        kept, lost = claims if accept else reversed(claims)
        merged.spans["accept/reject"] += 1
        merged.lost.append(LostSpan("accept/reject", lost, kept))


def _names(answers: Iterable[Answer]) -> list[str]:
    return sorted({answer.dataset.name for answer in answers})


def _drop(merged: Merged, answer: Answer, outcome: str) -> None:
    merged.rows[outcome] += 1
    merged.spans[f"in {outcome} task"] += len(answer.task.spans or ())


def missing_labels(coverage: Mapping[str, str], labels: Iterable[str]) -> dict[str, State]:
    """List the labels that a text isn't complete for, each "partial" or "none"."""
    return {label: "partial" if label in coverage else "none" for label in labels if coverage.get(label) != "complete"}

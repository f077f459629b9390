"""One text: its answers are merged (`one_text`), it is put into a split (`splits`), and made into a Doc (`to_doc`)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from labelwise.base.errors import InputError
from labelwise.corpus.ledger import Ledger, Problem, outcome_of
from labelwise.corpus.manifest import Split
from labelwise.corpus.tokenizer import LearningTokenizer
from labelwise.merge.plan import MergeJob
from labelwise.merge.rules.agreement import count_pairs
from labelwise.merge.rules.answers import Answer, why_not
from labelwise.merge.rules.decisions import Judged
from labelwise.merge.rules.one_text import Merged, merge_text, missing_labels
from labelwise.merge.rules.policies import COVERAGE
from labelwise.merge.rules.splits import SplitGroup, declared_split, hashed_split, value_of_meta
from labelwise.merge.rules.to_doc import Projection, to_doc


class TextResult(NamedTuple):
    """The outcome of one text.

    made (Projection | None): its Doc; None if the text is left out of the corpus.
    merged (Merged): its annotation; `lost` has all of its spans that aren't entities.
    """

    split: Split
    made: Projection | None
    merged: Merged


def merge_one(
    key: bytes, text: str, answers: Sequence[Answer], job: MergeJob, tokenizer: LearningTokenizer, ledger: Ledger
) -> TextResult:
    """Merge all answers about one text, choose its split, and make its Doc; every outcome is counted.

    key (bytes): the text's.
    answers (Sequence[Answer]): in the order of sources and lines.
    ledger (Ledger): the counts are added to it.
    RAISES (InputError): an "error" policy met its case.
    RAISES (RuntimeError): a row or a span has no outcome, which is a bug in this program.
    """
    declared = declared_split(answers)
    merged = merge_text(text, answers, job.settings, declared, job.decisions.get(key, ()))
    split = declared or _other_split(key, answers, job, ledger)
    uncovered = missing_labels(merged.coverage, job.labels)
    unmarked = COVERAGE[job.settings.coverage](split) if uncovered else "outside"
    made = None
    if not merged.coverage:
        ledger.texts["no usable answer"] += 1
    elif unmarked is None:
        ledger.texts["not covered"] += 1
        for said in (*merged.accepted.values(), *merged.rejected.values()):
            said[0][1].outcome = "text not covered"
    else:
        try:
            made = to_doc(tokenizer, merged, job.labels, job.settings, unmarked)
        except InputError as error:
            first = next(answer for answer in answers if not why_not(answer))
            raise InputError(f"{first.place}: {error}") from error
        merged.lost.extend(made.lost)
        _count_doc(ledger, split, merged, made)
        if uncovered:
            ledger.partly[split] += 1
    _count_rows(ledger, merged)
    _count_labels(ledger, merged, job.labels)
    if merged.versions:
        for pair, counts in count_pairs(merged.versions):
            ledger.pairs[pair].update(counts)
            ledger.agreement[pair[0]].update(both=counts["both"], spans=counts["spans"])
        for label in merged.versions:
            ledger.agreement[label]["texts"] += 1
    return TextResult(split, made, merged)


def _other_split(key: bytes, answers: Sequence[Answer], job: MergeJob, ledger: Ledger) -> Split:
    """Choose the split of a text for which no data set declares one; count those without a value of `split_by`."""
    group = job.groups.get(key, SplitGroup(key, None))
    if group.declared:
        return group.declared
    unit = group.unit.hex()
    if job.settings.split_by:
        value = value_of_meta(answers, job.settings.split_by)
        if value is None:
            ledger.without_split_by += 1
        unit = unit if value is None else value
    return hashed_split(unit, job.settings)


def count_decisions(judged: Sequence[Judged], ledger: Ledger) -> None:
    """Count decisions, which are rows."""
    ledger.rows_read += len(judged)
    ledger.rows.update(outcome_of(one.outcome) for one in judged)


def find_problems(answers: Iterable[Answer], judged: Iterable[Judged]) -> Iterator[Problem]:
    """Yield the spans that can't be used, and the decisions."""
    for answer in answers:
        for span in answer.spans:
            if ":" in span.outcome:
                yield Problem(answer.dataset.name, *(span.place or answer.name), span.outcome)
    yield from (one.problem() for one in judged if ":" in one.outcome)


def _count_rows(ledger: Ledger, merged: Merged) -> None:
    """Count the outcome of each row and of each span, and what else became of them.

    RAISES (RuntimeError): one has none.
    """
    ledger.spans_read += len(merged.added)
    ledger.spans.update(span.outcome for span in merged.added)
    count_decisions(merged.judged, ledger)
    for answer in merged.answers:
        if not answer.outcome or not all(span.outcome for span in answer.spans):
            raise RuntimeError(f"{answer.place}: a row or a span of it has no outcome; please report this")
        ledger.rows[answer.outcome] += 1
        for span in answer.spans:
            outcome = outcome_of(span.outcome)
            ledger.spans[outcome] += 1
            if outcome == "undeclared label":
                ledger.undeclared[f"{answer.dataset.name}: {span.label}"] += 1
    for names in merged.other_split:
        ledger.other_split[msgspec.json.encode(names).decode()] += 1
    ledger.out_of_order.update(merged.out_of_order)
    for dataset, by in merged.replaced:
        ledger.replaced[f"{dataset} by {by}"] += 1


def _count_labels(ledger: Ledger, merged: Merged, labels: Sequence[str]) -> None:
    """Count the text's coverage, agreement, and lost spans by reason and labels."""
    for label in labels:
        ledger.labels[label][merged.coverage.get(label, "none")] += 1
    for one in merged.lost:
        names = [claim.span[2] for claim in (one.lost, one.kept) if claim]
        ledger.lost_spans[one.reason][", ".join(names)] += 1
        if one.reason == "outvoted":
            ledger.labels[names[0]]["outvoted"] += 1


def _count_doc(ledger: Ledger, split: Split, merged: Merged, made: Projection) -> None:
    """Count a Doc and where its spans are."""
    ledger.texts[split] += 1
    ledger.words[split] += len(made.doc)
    gold = Counter(label for _, _, label in merged.accepted)
    for label, n in gold.items():
        ledger.labels[label]["gold"] += n
        ledger.gold[split][label] += n
    for (_, _, label), said in merged.accepted.items():
        ledger.labels[label][said[0][1].outcome] += 1
    for _, _, label in merged.rejected:
        ledger.labels[label]["rejected"] += 1
    for label in made.realigned:
        ledger.labels[label]["realigned"] += 1
    for one in merged.lost:
        if one.learnt:
            ledger.labels[one.lost.span[2]]["learnt as well"] += 1

"""One text: its answers are merged (`one_text`), it is put into a split (`splits`), and made into a Doc (`to_doc`)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc

from labelwise.common.errors import InputError
from labelwise.corpus.manifest import Split
from labelwise.corpus.tasks import input_hash
from labelwise.corpus.tokenizing import LearningTokenizer
from labelwise.merge.jobs import MergeJob, SplitGroup
from labelwise.merge.rules.agreement import count_agreement, count_pairs
from labelwise.merge.rules.answers import Answer, why_not
from labelwise.merge.rules.ledger import Ledger, outcome_of
from labelwise.merge.rules.lost_spans import LostSpan
from labelwise.merge.rules.one_text import Merged, merge_text, missing_labels
from labelwise.merge.rules.policies import COVERAGE
from labelwise.merge.rules.splits import declared_split, hashed_split, value_of_meta
from labelwise.merge.rules.to_doc import Projection, to_doc


class TextResult(NamedTuple):
    """The outcome of one text.

    doc (Doc | None): None if the text is left out of the corpus.
    merged (Merged): its annotation; `lost` has all of its spans that aren't entities.
    """

    split: Split
    doc: Doc | None
    merged: Merged


def merge_one(
    key: bytes, text: str, answers: Sequence[Answer], job: MergeJob, tokenizer: LearningTokenizer, ledger: Ledger
) -> TextResult:
    """Merge all answers about one text, choose its split, and make its Doc; every outcome is counted.

    key (bytes): the text's.
    answers (Sequence[Answer]): in the order of sources and lines.
    ledger (Ledger): the counts are added to it.
    RAISES (InputError): an "error" policy met its case.
    """
    _count_read(ledger, text, answers)
    declared = declared_split(answers)
    merged = merge_text(text, answers, job.settings.policies, declared, job.decisions.get(key, ()))
    ledger.rows_read += len(merged.judged)
    ledger.spans_read += len(merged.added)
    _count_merged(ledger, merged, job.labels)
    split = declared or _other_split(key, answers, job, ledger)
    uncovered = missing_labels(merged.coverage, job.labels)
    unmarked = COVERAGE[job.settings.policies.coverage](split) if uncovered else "outside"
    doc = None
    if not merged.coverage:
        ledger.texts["no usable answer"] += 1
    elif unmarked is None:
        ledger.texts["not covered"] += 1
        ledger.spans["text not covered"] += len(merged.accepted) + len(merged.rejected)
    else:
        try:
            projection = to_doc(tokenizer, merged, job.labels, job.settings.policies, unmarked)
        except InputError as error:
            first = next(answer for answer in answers if not why_not(answer))
            raise InputError(f"{first.place}: {error}") from error
        doc = projection.doc
        ledger.partly[split] += bool(uncovered)
        _count_doc(ledger, split, merged, projection)
        merged.lost.extend(projection.lost)
    _count_lost(ledger, merged.lost)
    if merged.versions:
        tokens = doc if doc is not None else tokenizer(text)
        starts = tokens.to_array(IDX).astype(np.int64)
        for pair, counts in count_pairs(merged.versions, starts, starts + tokens.to_array(LENGTH).astype(np.int64)):
            ledger.pairs.setdefault(pair, Counter()).update(counts)
    return TextResult(split, doc, merged)


def _other_split(key: bytes, answers: Sequence[Answer], job: MergeJob, ledger: Ledger) -> Split:
    """Choose the split of a text for which no data set declares one; count those without a value of `split_by`."""
    group = job.groups.get(key, SplitGroup(key, None))
    if group.declared:
        return group.declared
    unit = group.unit.hex()
    if job.settings.split_by:
        value = value_of_meta(answers, job.settings.split_by)
        ledger.without_split_by += value is None
        unit = unit if value is None else value
    return hashed_split(unit, job.settings)


def _count_read(ledger: Ledger, text: str, answers: Sequence[Answer]) -> None:
    """Count rows and spans read, and the hashes that aren't the text's."""
    stored = [answer.task.input_hash for answer in answers if answer.task.input_hash is not None]
    right = input_hash(text) if stored else None
    ledger.stored_hash_differs += sum(value != right for value in stored)
    ledger.rows_read += len(answers)
    for answer in answers:
        ledger.datasets[answer.dataset.name] += 1
        ledger.spans_read += len(answer.task.spans or ())


def _count_merged(ledger: Ledger, merged: Merged, labels: Sequence[str]) -> None:
    """Count the outcomes of rows and spans, the text's coverage, and agreement."""
    ledger.rows.update(merged.rows)
    ledger.spans.update(merged.spans)
    ledger.trimmed.update(merged.trimmed)
    for names, rows in merged.other_split.items():
        ledger.other_split[msgspec.json.encode(names).decode()] += rows
    for label in labels:
        ledger.labels[label][merged.coverage.get(label, "none")] += 1
    for (dataset, label), state in merged.covered.items():
        texts = ledger.complete if state == "complete" else ledger.partial
        texts.setdefault(dataset, Counter())[label] += 1
    for problem in merged.problems:
        if outcome_of(problem.reason) == "undeclared label":
            ledger.undeclared[f"{problem.dataset}: {problem.reason.partition(': ')[2]}"] += 1
    for one in merged.lost:
        ledger.labels[one.lost.span[2]]["outvoted"] += one.reason == "outvoted"
    for label, counts in count_agreement(merged.versions).items():
        ledger.agreement.setdefault(label, Counter()).update(counts)


def _count_doc(ledger: Ledger, split: Split, merged: Merged, projection: Projection) -> None:
    """Count a Doc and where its spans are."""
    ledger.texts[split] += 1
    ledger.words[split] += len(projection.doc)
    ledger.spans["entity"] += len(projection.entities)
    ledger.spans["rejected"] += projection.rejected
    ledger.spans["rejected, no token boundary"] += len(merged.rejected) - projection.rejected
    for _, _, label in merged.accepted:
        ledger.labels[label]["gold"] += 1
        ledger.gold.setdefault(split, Counter())[label] += 1
    ledger.marked.update({label for _, _, label in merged.accepted})
    for _, _, label in merged.rejected:
        ledger.labels[label]["rejected"] += 1
    for label in projection.realigned:
        ledger.labels[label]["realigned"] += 1
    for label in projection.entities:
        ledger.labels[label]["entity"] += 1
    for one in projection.lost:
        counts = ledger.labels[one.lost.span[2]]
        ledger.spans[one.reason] += 1
        counts[one.reason] += 1
        if one.learnt:
            counts["learnt as well"] += 1


def _count_lost(ledger: Ledger, lost: Sequence[LostSpan]) -> None:
    """Count lost spans by reason and labels."""
    for one in lost:
        labels = [claim.span[2] for claim in (one.lost, one.kept) if claim]
        ledger.lost_spans.setdefault(one.reason, Counter())[", ".join(labels)] += 1

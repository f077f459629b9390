"""Merge the texts of a range of keys, one bucket in memory."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from labelwise.base.errors import InputError
from labelwise.corpus.annotation import DATASET
from labelwise.corpus.docbin_writer import DocWriter
from labelwise.corpus.manifest import Split
from labelwise.corpus.pipeline import bounded_vocab
from labelwise.corpus.tokenizer import LearningTokenizer
from labelwise.datasets.decisions import DecisionRow
from labelwise.merge.account import AccountWriter, TextResult, add_decision, add_text
from labelwise.merge.buckets import Buckets, Text, range_of
from labelwise.merge.read import Source
from labelwise.merge.readings import Trials, try_readings
from labelwise.merge.rules.answers import Answer, fits_split, left_out, make_answer
from labelwise.merge.rules.decisions import resolve_decisions
from labelwise.merge.rules.one_text import merge_text
from labelwise.merge.rules.policies import COVERAGE
from labelwise.merge.rules.settings import Settings, load_tokenizer
from labelwise.merge.rules.splits import SplitGroup, declared_split, excluded_splits, hashed_split, min_values, unit_of
from labelwise.merge.rules.to_doc import missing_labels, to_doc
from labelwise.merge.same_texts import move_decisions


class MergeJob(msgspec.Struct, frozen=True):
    """A range of keys to merge: partitions of a bucket, or buckets of a partition.

    number, bits (int): number of the range, of 2**bits.
    read_bits (int): bits of the ranges held at once.
    partition_bits (int): number of key bits that select a partition.
    groups (Mapping[bytes, SplitGroup]): of texts that stay in one split with others, by key.
    decisions (Mapping[bytes, list[DecisionRow]]): by text key, in order.
    """

    number: int
    bits: int
    read_bits: int
    buckets: Buckets
    partition_bits: int
    sources: Sequence[Source]
    labels: list[str]
    settings: Settings
    groups: Mapping[bytes, SplitGroup] = {}
    decisions: Mapping[bytes, list[DecisionRow]] = {}

    def __str__(self) -> str:
        return f"texts, part {self.number + 1} of {1 << self.bits}"

    def texts(self, scratch: Path) -> Iterator[Text]:
        """Yield the texts, sorted by key."""
        bits = self.read_bits - self.bits
        for number in range(self.number << bits, (self.number + 1) << bits):
            yield from self.buckets.texts(number, self.read_bits, scratch)

    def answers(self, text: Text) -> list[Answer]:
        """Make the answers about a text."""
        return [
            make_answer(number, task, self.sources[source].dataset, self.sources[source].file, source)
            for number, (source, task) in enumerate(text.tasks())
        ]


class MergedRange(msgspec.Struct):
    """A job's results, except the provenance tables: SHA-256 of each `.spacy` file, and trials of offsets."""

    partitions: dict[str, str]
    trials: Trials


def merge_range(job: MergeJob, folder: Path) -> MergedRange:
    """Merge the texts of a range of keys, and write their Docs and tables."""
    tokenizer = load_tokenizer(job.settings)
    result = MergedRange({}, Counter())
    pending = dict(job.decisions)
    with AccountWriter(folder / f"account-{job.number}") as account, bounded_vocab(tokenizer.nlp):
        for number, texts in groupby(job.texts(folder), lambda text: range_of(text.key, job.partition_bits)):
            docs: dict[Split, DocWriter] = {}
            for text in texts:
                decisions = move_decisions(pending.pop(text.key, []), text)
                text_result = merge_one(text, decisions, job, tokenizer)
                if text_result.projection:
                    try_readings(text_result, text_result.projection, result.trials)
                    writer = docs.setdefault(text_result.split, DocWriter())
                    writer.add(
                        text_result.projection.doc, [*text_result.projection.first], [*text_result.projection.last]
                    )
                add_text(account, text, text_result)
                account.end_text()
            account.flush()  # batches follow from partitions
            for split, writer in docs.items():
                name = f"{split}/part-{number:05d}.spacy"
                (folder / split).mkdir(exist_ok=True)
                result.partitions[name] = writer.write(folder / name)
    with AccountWriter(folder / f"rest-{job.number}") as account:
        for key, rows in sorted(pending.items()):
            for outcome in resolve_decisions(rows, "", ())[0]:
                add_decision(account, outcome, key.hex(), None)
    return result


def merge_one(text: Text, decisions: Sequence[DecisionRow], job: MergeJob, tokenizer: LearningTokenizer) -> TextResult:
    """Merge a text's answers, choose its split, and make its Doc."""
    answers = job.answers(text)
    declared = declared_split(answers)
    merged = merge_text(text.text, answers, job.settings, declared, decisions)
    fitting = [one for one in answers if fits_split(one, declared)]  # others don't count, nor name a group
    values = min_values(fitting, job.settings)
    split, chosen_by = (declared, "declared") if declared else _other_split(text.key, answers, job, values)
    result = TextResult(answers, merged, split, chosen_by)
    if not merged.coverage:
        return result._replace(why_not="no usable answer")
    uncovered = missing_labels(merged.coverage, job.labels)
    in_train, elsewhere = COVERAGE[job.settings.coverage] if uncovered else ("outside", "outside")
    unmarked = in_train if split == "train" else elsewhere
    if unmarked is None:
        return result._replace(why_not="not fully annotated")
    groups = {key: [values[key]] for key in job.settings.by if key in values}
    if DATASET in job.settings.by:
        groups[DATASET] = merged.datasets
    merged = merged._replace(unit=unit_of(fitting, values, job.settings), groups=groups)
    try:
        projection = to_doc(tokenizer, merged, job.labels, job.settings, unmarked)
    except InputError as error:
        first = next(answer for answer in answers if not left_out(answer))
        raise InputError(f"{first.place}: {text.text[:60]!r}: {error}") from error
    return result._replace(projection=projection)


def _other_split(key: bytes, answers: Sequence[Answer], job: MergeJob, values: Mapping[str, str]) -> tuple[Split, str]:
    group = job.groups.get(key, SplitGroup(key))
    if group.declared:
        return group.declared, "group"
    without = {*group.without, *excluded_splits(answers)}
    if (value := values.get(job.settings.split_by)) is not None:
        return hashed_split(value, job.settings, without), "split_by"
    return hashed_split(group.unit.hex(), job.settings, without), "hash"

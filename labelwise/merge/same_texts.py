"""Join texts that differ only in white space or Unicode composition, as that of the first source.

1. A text's form is composed, with single spaces (`base.text.form_of`). While sources are read, keys of forms are
   written to buckets.
2. Each range of forms shows which ones have several texts. The key of the first one becomes the key of all.
3. The tasks of the others are written to the bucket of the first, and skipped where they were.

So a text without such variants keeps its key, its split and its bytes.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from labelwise.annotations import answer_digest
from labelwise.base.jobs import DoJobs
from labelwise.base.text import KEY_BYTES, trim
from labelwise.datasets.decisions import Decision, DecisionRow, Offsets
from labelwise.merge.buckets import FORM, Buckets, BucketWriter, Text, range_of, split_tasks
from labelwise.merge.rules.answers import accepted_offsets
from labelwise.sources.normalize import Move

MAX_FORMS = 2**15  # held by a job


class SameJob(msgspec.Struct, frozen=True):
    """A range of buckets; see `Buckets`."""

    buckets: Buckets
    number: int
    bits: int

    def __str__(self) -> str:
        return f"texts, part {self.number + 1} of {1 << self.bits}"


class SameCounts(msgspec.Struct):
    """Counts of a range of forms: distinct ones, bytes of their first texts, and pairs of keys."""

    texts: int = 0
    text_bytes: int = 0
    pairs: int = 0


def join_texts(buckets: Buckets, tasks: int, do: DoJobs) -> tuple[int, int]:
    """Give the first text's key to tasks of texts that differ only in white space or Unicode composition.

    RETURNS (tuple): distinct texts then, and their bytes.
    """
    bits = buckets.bits_for(tasks // MAX_FORMS)
    jobs = [SameJob(buckets, number, bits) for number in range(1 << bits)]
    counts = do(find_same, jobs, "join")
    if any(one.pairs for one in counts):
        do(move_tasks, jobs, "join")
    return sum(one.texts for one in counts), sum(one.text_bytes for one in counts)


def find_same(job: SameJob, folder: Path) -> SameCounts:
    """Write pairs of keys of texts whose normal forms are in a range."""
    counts = SameCounts()
    forms = sorted(job.buckets.read("forms", FORM.size, job.number, job.bits))  # a form's first task first
    with BucketWriter(folder / "same" / f"{job.number:03d}", job.buckets.bits) as writer:
        for _, same in groupby(forms, lambda form: form[:KEY_BYTES]):
            *_, first, size = FORM.unpack(next(same))
            others = {key for *_, key, _ in map(FORM.unpack, same)} - {first}
            for key in others:
                writer.add(key, key + first)
            counts.texts += 1
            counts.text_bytes += size
            counts.pairs += len(others)
    return counts


def move_tasks(job: SameJob, folder: Path) -> None:
    """Write a range's tasks with another key now to that key's bucket."""
    same = job.buckets.same(job.number, job.bits)
    with BucketWriter(folder / "moved" / f"{job.number:03d}", job.buckets.bits) as moved:
        for number in {range_of(key, job.buckets.bits) for key in same}:
            for record in split_tasks(job.buckets.blocks("tasks", number, job.buckets.bits)):
                if first := same.get(record[:KEY_BYTES]):
                    moved.add(first, first + record[KEY_BYTES:])


def move_decisions(decisions: Sequence[DecisionRow], text: Text) -> list[DecisionRow]:
    """Move decisions to a text from others that differ only in white space or Unicode composition."""
    if all(row.decision is None or row.decision.text == text.key.hex() for row in decisions):
        return [*decisions]
    variants = {key.hex(): words for key, words in text.variants.items()}
    return [
        row._replace(decision=_move_decision(row.decision, variants[row.decision.text], text))
        if row.decision and row.decision.text in variants
        else row
        for row in decisions
    ]


def _move_decision(decision: Decision, words: str, text: Text) -> Decision:
    move = Move(words, text.text)
    answers = {}
    for _, own, task in text.read():
        if own == words:
            before, after = accepted_offsets(task).get(decision.label, ()), accepted_offsets(move.task(task))
            answers[answer_digest(before)] = answer_digest(after.get(decision.label, ()))

    def moved(span: Offsets | None) -> Offsets | None:
        """Move a span; one outside the text goes past the end, and so stays invalid."""
        if not span:
            return None
        if span[1] > len(words) or not words[slice(*span)].strip():
            return len(text.text), len(text.text) + 1
        return move.offsets(*trim(words, *span))[0]

    removed, added = moved(decision.removed), moved(decision.added)
    answer = answers.get(decision.answer, decision.answer)
    return msgspec.structs.replace(decision, text=text.key.hex(), answer=answer, removed=removed, added=added)

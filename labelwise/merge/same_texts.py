"""Join texts that differ only in white space or Unicode composition, as that of the first source.

1. A text's form is composed, with single spaces (`base.text.form_of`). While sources are read, keys of forms are
   written to buckets.
2. The key of a form's first text becomes the key of all.
3. The others' tasks are written to the bucket of the first, and skipped where they were.

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
    """A range of buckets."""

    buckets: Buckets
    number: int
    bits: int

    def __str__(self) -> str:
        return f"texts, part {self.number + 1} of {1 << self.bits}"


def join_texts(buckets: Buckets, tasks: int, do: DoJobs) -> tuple[int, int]:
    """Give equal texts the key of the first.

    RETURNS (tuple): distinct texts then, and their bytes.
    """
    bits = buckets.bits_for(tasks // MAX_FORMS)
    jobs = [SameJob(buckets, number, bits) for number in range(1 << bits)]
    sizes = do(find_same, jobs, "join")
    if buckets.files("same"):
        do(move_tasks, jobs, "join")
    return sum(texts for texts, _ in sizes), sum(text_bytes for _, text_bytes in sizes)


def find_same(job: SameJob, folder: Path) -> tuple[int, int]:
    """Write pairs of keys with equal forms in a range; return the number of forms, and their texts' bytes."""
    texts = text_bytes = 0
    forms = sorted(job.buckets.read("forms", FORM.size, job.number, job.bits))  # a form's first task first
    with BucketWriter(folder / "same" / f"{job.number:03d}", job.buckets.bits) as writer:
        for _, same in groupby(forms, lambda form: form[:KEY_BYTES]):
            *_, first, size = FORM.unpack(next(same))
            texts, text_bytes = texts + 1, text_bytes + size
            for key in {key for *_, key, _ in map(FORM.unpack, same)} - {first}:
                writer.add(key, key + first)
    return texts, text_bytes


def move_tasks(job: SameJob, folder: Path) -> None:
    """Write a range's tasks that have a new key to its bucket."""
    same = job.buckets.same(job.number, job.bits)
    with BucketWriter(folder / "moved" / f"{job.number:03d}", job.buckets.bits) as moved:
        for number in {range_of(key, job.buckets.bits) for key in same}:
            for record in split_tasks(job.buckets.blocks("tasks", number, job.buckets.bits)):
                if first := same.get(record[:KEY_BYTES]):
                    moved.add(first, first + record[KEY_BYTES:])


def move_decisions(decisions: Sequence[DecisionRow], text: Text) -> list[DecisionRow]:
    """Move decisions to a text from equal ones."""
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

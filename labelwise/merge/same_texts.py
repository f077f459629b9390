"""Join texts that differ only in white space or Unicode composition, as that of the first source.

1. A text's form is composed, with single spaces (`base.text.form_of`). While sources are read, keys of forms that
   differ from their texts are written to buckets. Any other text's key is its form's.
2. Each bucket shows which forms have several texts. The key of the first one becomes the key of all.
3. The tasks of the others are written to the bucket of the first, and skipped where they were.

So a text without such variants keeps its key, its split and its bytes.
"""

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from labelwise.annotations import answer_digest
from labelwise.base.jobs import DoJobs
from labelwise.base.text import KEY_BYTES, trim
from labelwise.datasets.decisions import Decision, DecisionRow, Offsets
from labelwise.merge.buckets import FORM, HEAD, SAME, TEXT, Buckets, BucketWriter, Text
from labelwise.merge.rules.answers import accepted_offsets
from labelwise.sources.normalize import Move


class SameJob(msgspec.Struct, frozen=True):
    """A bucket, by its number."""

    buckets: Buckets
    number: int

    def __str__(self) -> str:
        return f"texts, part {self.number + 1} of {1 << self.buckets.bits}"


def join_texts(buckets: Buckets, do: DoJobs) -> None:
    """Give the first text's key to tasks of texts that differ only in white space or Unicode composition."""
    for kind, work in (("forms", find_same), ("same", move_tasks)):
        if jobs := [SameJob(buckets, number) for number in buckets.numbers(kind)]:
            do(work, jobs, "join")


def find_same(job: SameJob, folder: Path) -> None:
    """Write pairs of keys of texts whose normal forms are in a bucket."""
    by_form: dict[bytes, dict[bytes, tuple[int, int]]] = {}  # the texts of each form, each with its first place
    for form, key, source, number in job.buckets.read("forms", job.number, FORM):
        texts = by_form.setdefault(form, {})
        texts[key] = min((source, number), texts.get(key, (source, number)))
    for record in job.buckets.tasks(job.number, moved=False):
        key, source, number, *_ = HEAD.unpack_from(record)
        if source != TEXT and (texts := by_form.get(key, {})):
            place = (source - 1, number)
            texts[key] = min(place, texts.get(key, place))
    with BucketWriter(folder / "same" / f"{job.number:03d}", job.buckets.bits) as writer:
        for places in by_form.values():
            first = min(places, key=places.__getitem__)
            for key in places:
                if key != first:
                    writer.add(key, SAME.pack(key, first))


def move_tasks(job: SameJob, folder: Path) -> None:
    """Write a bucket's tasks with another key now to that key's bucket."""
    same = dict(job.buckets.read("same", job.number, SAME))
    with BucketWriter(folder / "moved" / f"{job.number:03d}", job.buckets.bits) as moved:
        for record in job.buckets.tasks(job.number, moved=False):
            if first := same.get(record[:KEY_BYTES]):
                moved.add(first, first + record[KEY_BYTES:])


def read_same(buckets: Buckets, keys: Collection[bytes]) -> dict[bytes, bytes]:
    """Map keys of texts to the keys of the first texts with the same forms."""
    pairs = chain.from_iterable(buckets.read("same", number, SAME) for number in buckets.numbers("same"))
    return {key: first for key, first in pairs if key in keys}


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

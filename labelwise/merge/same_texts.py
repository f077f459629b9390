"""Join texts that differ only in white space or Unicode composition: they become that of the first source.

1. A text's form is composed, with single spaces (`base.text.form_of`). While sources are read, the keys of the forms
   that differ from their texts are written to buckets. The key of any other text is that of its form.
2. Each bucket shows which forms have several texts. The key of the first one becomes the key of all.
3. The tasks of the others move to the bucket of the first.

So a text that no source has with other white space keeps its key, its split and its bytes.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from labelwise.annotations import answer_digest
from labelwise.base.jobs import MapJobs, map_apart, map_in_place
from labelwise.base.parallel import Progress
from labelwise.base.text import KEY_BYTES, form_of, text_key, trim
from labelwise.datasets.decisions import Decision, DecisionRow, Offsets
from labelwise.merge.buckets import BucketWriter, Text, read_heads, read_records, source_of
from labelwise.merge.rules.answers import accepted_offsets
from labelwise.sources.normalize import Move

FORM = struct.Struct(f"<{KEY_BYTES}s{KEY_BYTES}sI")  # the key of the form, that of the text, the number of the task
SAME = struct.Struct(f"<{KEY_BYTES}s{KEY_BYTES}s")  # the key of a text, and that of the first one with its form
KNOWN = 2**15  # texts in the cache
_known: dict[bytes, bytes] = {}  # a cache: the keys of forms, by the keys of their texts


class FormWriter(BucketWriter):
    """Writes the forms of the texts of one source that differ from their texts."""

    def add_text(self, key: bytes, text: str, number: int) -> None:
        """Add the form of a text, with the text's key and the number of its task in its source."""
        if (form := _known.get(key)) is None:
            if len(_known) >= KNOWN:
                _known.clear()
            form = _known[key] = text_key(form_of(text))
        if form != key:
            self.add(form, FORM.pack(form, key, number))


class SameJob(msgspec.Struct, frozen=True):
    """A bucket of forms or of tasks, by its number.

    folder (Path): that of the buckets of tasks ("buckets"), of forms ("forms"), and of pairs of keys ("same").
    bits (int): how many bits of a key number a bucket.
    """

    folder: Path
    number: int
    bits: int

    def __str__(self) -> str:
        """Name the bucket."""
        return f"texts, part {self.number + 1} of {1 << self.bits}"

    def files(self, kind: str) -> list[Path]:
        """List the files of the bucket, of one of these kinds."""
        bucket = self.folder / kind / f"{self.number:03d}"
        return sorted(bucket.iterdir()) if bucket.is_dir() else []


def join_texts(folder: Path, bits: int, map_jobs: MapJobs, progress: Progress) -> None:
    """Give the key of the first text to the tasks of texts that differ only in white space or Unicode composition.

    folder, bits: see `SameJob`.
    """
    jobs = [SameJob(folder, number, bits) for number in range(1 << bits)]
    # A job that moves tasks rewrites files that others read.
    for kind, map_files, work in (("forms", map_in_place, find_same), ("same", map_apart, move_tasks)):
        some = [job for job in jobs if job.files(kind)]
        if some:
            list(progress(map_files(map_jobs, work, some, folder), "join", len(some)))


def find_same(job: SameJob, folder: Path) -> None:
    """Write the pairs of keys of texts whose forms are in a bucket.

    folder (Path): that for "same".
    """
    found: dict[bytes, dict[bytes, tuple[int, int]]] = {}  # the texts of each form, each with its first place
    for file in job.files("forms"):
        for form, key, number in _read(file, FORM):
            found.setdefault(form, {}).setdefault(key, (source_of(file), number))
    for file in job.files("buckets"):
        for key, number, _ in read_heads(file):
            if texts := found.get(key):
                texts.setdefault(key, (source_of(file), number))
    writer = BucketWriter(folder / "same", f"{job.number:03d}", job.bits)
    for same in found.values():
        first = min(same, key=same.__getitem__)
        for key in same:
            if key != first:
                writer.add(key, SAME.pack(key, first))
    writer.flush()


def move_tasks(job: SameJob, folder: Path) -> None:
    """Move the tasks of a bucket that get another key to the bucket of that key.

    folder (Path): that for "buckets", with new files, and the new content of others.
    """
    same = {key: first for file in job.files("same") for key, first in _read(file, SAME)}
    for file in job.files("buckets"):
        if "-" in file.name or not any(key in same for key, _, _ in read_heads(file)):
            continue  # another job moved it here, or it stays
        kept = folder / file.relative_to(job.folder)
        kept.parent.mkdir(parents=True, exist_ok=True)
        moved = BucketWriter(folder / "buckets", f"{file.name}-{job.number:03d}", job.bits)
        with kept.open("wb") as records:
            for key, record in read_records(file):
                first = same.get(key)
                if first is None:
                    records.write(record)
                else:
                    moved.add(first, first + record[KEY_BYTES:])
        moved.flush()


def read_same(folder: Path, bits: int, keys: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the keys of the first texts with the same forms as some others.

    folder, bits: see `SameJob`.
    keys (Collection[bytes]): those of the others.
    """
    jobs = (SameJob(folder, number, bits) for number in range(1 << bits))
    pairs = (pair for job in jobs for file in job.files("same") for pair in _read(file, SAME))
    return {key: first for key, first in pairs if key in keys}


def move_decisions(decisions: Sequence[DecisionRow], text: Text) -> list[DecisionRow]:
    """Move decisions to a text from others that differ only in white space or Unicode composition."""
    if all(row.decision is None or row.decision.text == text.key.hex() for row in decisions):
        return [*decisions]
    variants = {key.hex(): words for key, words in text.variants().items()}
    return [
        row._replace(decision=_move_decision(row.decision, variants[row.decision.text], text))
        if row.decision and row.decision.text in variants
        else row
        for row in decisions
    ]


def _move_decision(decision: Decision, words: str, text: Text) -> Decision:
    """Move a decision to a text.

    words (str): the text that it was made about.
    """
    move = Move(words, text.text)
    answers = {}
    for _, own, task in text.read():
        if own == words:
            before, after = accepted_offsets(task).get(decision.label, ()), accepted_offsets(move.task(task))
            answers[answer_digest(before)] = answer_digest(after.get(decision.label, ()))

    def moved(span: Offsets | None) -> Offsets | None:
        """Move a span; one outside the words goes behind the text, so that it stays invalid."""
        if not span:
            return None
        if span[1] > len(words) or not words[slice(*span)].strip():
            return len(text.text), len(text.text) + 1
        return move.offsets(*trim(words, *span))[0]

    removed, added = moved(decision.removed), moved(decision.added)
    answer = answers.get(decision.answer, decision.answer)
    return msgspec.structs.replace(decision, text=text.key.hex(), answer=answer, removed=removed, added=added)


def _read(file: Path, record: struct.Struct) -> Iterator[tuple[Any, ...]]:
    return record.iter_unpack(file.read_bytes())

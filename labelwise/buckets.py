"""Merge the texts of one bucket, a small part of a partition; one text's tasks are held at a time.

The tasks of a text are read from the chunks, merged (`merge`), made a Doc (`docs`), and put into its split.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
from spacy.tokens import Doc

from labelwise.answers import Answer, why_not
from labelwise.books import Books, bucket_of, problem_line
from labelwise.chunks import TaskReader
from labelwise.datasets import SPLITS, Split
from labelwise.docbins import PackedDocs, pack
from labelwise.docs import Projection, to_doc
from labelwise.errors import InputError
from labelwise.jobs import Group, Job, Texts, read_answer, read_text
from labelwise.merge import Conflict, Merged, merge_text, missing_labels
from labelwise.policies import COVERAGE
from labelwise.prodigy import input_hash, task_hash
from labelwise.settings import Settings
from labelwise.tokenizer import LearningTokenizer, forgetting, make_nlp


class Bucket(msgspec.Struct):
    """What the texts of a bucket gave.

    fingerprint (bytes): digest of all that this follows from.
    docs (dict[str, PackedDocs]): by split.
    keys (dict[str, bytes]): by split, the keys of the Docs' texts.
    conflicts, problems (bytes): lines of JSON.
    """

    fingerprint: bytes
    books: Books
    docs: dict[str, PackedDocs]
    keys: dict[str, bytes]
    conflicts: bytes
    problems: bytes


def merge_bucket(job: Job, fingerprint: bytes, texts: Texts, reader: TaskReader) -> Bucket:
    """Merge the texts of one bucket.

    RAISES (InputError): an "error" policy met its case.
    """
    books = Books(labels={label: Counter() for label in job.labels})
    docs: dict[Split, list[Doc]] = {split: [] for split in SPLITS}
    keys: dict[str, bytes] = dict.fromkeys(SPLITS, b"")
    conflicts: list[bytes] = []
    problems: list[bytes] = []
    tokenizer = load_tokenizer(job.settings)
    with forgetting(tokenizer.nlp):
        for key, rows in texts:
            text = read_text(key, rows[0], job, reader)
            answers = [read_answer(row, job, reader) for row in rows]
            _count_read(books, text, answers)
            declared = declared_split(answers)
            merged = merge_text(text, answers, job.settings.policies, declared)
            _count_merged(books, merged, job.labels)
            group = job.groups.get(key, Group(key, None))
            split = declared or group.declared or hashed_split(group.unit, answers, job.settings, books)
            uncovered = missing_labels(merged.coverage, job.labels)
            unmarked = COVERAGE[job.settings.policies.coverage](split) if uncovered else "outside"
            if not merged.coverage:
                books.texts["nothing stands"] += 1
            elif unmarked is None:
                books.texts["not covered"] += 1
                books.spans["text not covered"] += len(merged.accepted) + len(merged.rejected)
            else:
                try:
                    projection = to_doc(tokenizer, merged, job.labels, job.settings.policies, unmarked)
                except InputError as error:
                    first = next(answer for answer in answers if not why_not(answer))
                    raise InputError(f"{first.place}: {error}") from error
                docs[split].append(projection.doc)
                keys[split] += key
                books.partly[split] += bool(uncovered)
                _count_doc(books, split, merged, projection)
                merged.conflicts.extend(projection.conflicts)
            for conflict in merged.conflicts:
                _count_conflict(books, conflict)
            conflicts += conflict_tasks(text, merged.conflicts)
            problems += map(problem_line, merged.problems)
        packed: dict[str, PackedDocs] = {split: pack(docs[split]) for split in SPLITS}
    return Bucket(fingerprint, books, packed, keys, b"".join(conflicts), b"".join(problems))


@lru_cache(maxsize=1)
def load_tokenizer(settings: Settings) -> LearningTokenizer:
    """Make the settings' tokenizer, once a process."""
    return LearningTokenizer(make_nlp(settings.lang, settings.tokenizer))


def declared_split(answers: Sequence[Answer]) -> Split | None:
    """Give the split that a text's data sets declare, test before dev before train; some answers leave no trace."""
    declared = {answer.dataset.split for answer in answers if not why_not(answer)}
    return next((split for split in reversed(SPLITS) if split in declared), None)


def hashed_split(key: bytes, answers: Sequence[Answer], settings: Settings, books: Books) -> Split:
    """Choose a text's split by a hash of the salt and its key, or of the salt and its value of `split_by`.

    A text never moves when others are added. Where a text has several values, the least decides; where it has none, its
    key does, and it is counted.
    """
    unit = key.hex()
    if settings.split_by:
        metas = [answer.task.meta for answer in answers if isinstance(answer.task.meta, dict)]
        values = [str(meta[settings.split_by]) for meta in metas if settings.split_by in meta]
        unit = min(values, default=unit)
        books.without_split_by += not values
    digest = hashlib.blake2b(f"{settings.split_salt}/{unit}".encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    if share < settings.test_ratio:
        return "test"
    return "dev" if share < settings.test_ratio + settings.dev_ratio else "train"


def conflict_tasks(text: str, conflicts: Sequence[Conflict]) -> Iterator[bytes]:
    """Yield lines of JSON, tasks that Prodigy can show: each span that lost, and what it lost against."""
    text_hash = input_hash(text) if conflicts else 0
    for conflict in sorted(conflicts, key=lambda conflict: (conflict.lost.span, conflict.reason)):
        yield _conflict_task(text, text_hash, conflict)


def _conflict_task(text: str, text_hash: int, conflict: Conflict) -> bytes:
    spans = [
        {
            "start": claim.span[0],
            "end": claim.span[1],
            "label": claim.span[2],
            "claim": claim.answer,
            "datasets": claim.datasets,
            "lost": claim is conflict.lost,
        }
        for claim in (conflict.lost, conflict.kept)
        if claim
    ]
    task = {
        "text": text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, spans),
        "spans": spans,
        "meta": {"reason": conflict.reason},
    }
    return msgspec.json.encode(task) + b"\n"


def _count_read(books: Books, text: str, answers: Sequence[Answer]) -> None:
    """Count what was read, and the hashes that aren't the text's."""
    stored = [answer.task.input_hash for answer in answers if answer.task.input_hash is not None]
    right = input_hash(text) if stored else None
    books.stored_hash_differs += sum(value != right for value in stored)
    books.rows_read += len(answers)
    for answer in answers:
        books.datasets[answer.dataset.name] += 1
        books.spans_read += len(answer.task.spans or ())


def _count_conflict(books: Books, conflict: Conflict) -> None:
    """Count a conflict by its kind and its labels."""
    labels = [claim.span[2] for claim in (conflict.lost, conflict.kept) if claim]
    books.conflicts.setdefault(conflict.reason, Counter())[", ".join(labels)] += 1


def _count_merged(books: Books, merged: Merged, labels: Sequence[str]) -> None:
    """Count what merging did to rows and spans, the text's coverage, and agreement."""
    books.rows.update(merged.rows)
    books.spans.update(merged.spans)
    for label in labels:
        books.labels[label][merged.coverage.get(label, "none")] += 1
    for problem in merged.problems:
        if bucket_of(problem.reason) == "undeclared label":
            books.undeclared[f"{problem.dataset}: {problem.reason.partition(': ')[2]}"] += 1
    for label, counts in merged.agreement.items():
        books.agreement.setdefault(label, Counter()).update(counts)


def _count_doc(books: Books, split: Split, merged: Merged, projection: Projection) -> None:
    """Count a Doc and where its spans are."""
    books.texts[split] += 1
    books.words[split] += len(projection.doc)
    books.spans["entity"] += len(projection.entities)
    books.spans["rejected"] += projection.rejected
    books.spans["rejected, no token boundary"] += len(merged.rejected) - projection.rejected
    for _, _, label in merged.accepted:
        books.labels[label]["gold"] += 1
    for _, _, label in merged.rejected:
        books.labels[label]["rejected"] += 1
    for label in projection.realigned:
        books.labels[label]["realigned"] += 1
    for label in projection.entities:
        books.labels[label]["entity"] += 1
    for conflict in projection.conflicts:
        books.spans[conflict.reason] += 1
        books.labels[conflict.lost.span[2]][conflict.reason] += 1

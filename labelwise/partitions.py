"""Merge the texts of one partition: the work of one process, which holds one text's tasks at a time.

A partition is a range of text keys. The tasks of a text are read from their places, merged (`merge`), made a Doc
(`docs`), and added to the train, dev or test file of the partition.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from spacy.language import Language
from spacy.tokens import DocBin

from labelwise.books import Books, Problem
from labelwise.datasets import SPLITS, DataSet, Split
from labelwise.docs import Projection, to_doc
from labelwise.errors import InputError
from labelwise.index import Entries, group_by_text, text_key
from labelwise.merge import Answer, Conflict, Merged, merge_text, missing_labels, why_not
from labelwise.prodigy import DECODE_ERRORS, input_hash, read_text, task_decoder, task_hash
from labelwise.settings import Settings
from labelwise.tokenizer import make_nlp


class Job(msgspec.Struct):
    """One partition's work; it goes to a worker as a whole."""

    number: int
    entries: Entries
    datasets: list[DataSet]
    labels: list[str]
    settings: Settings
    out: Path

    @property
    def conflicts(self) -> Path:
        """The file for the partition's conflicts."""
        return self.out / f"conflicts-{self.number:05d}.jsonl"

    @property
    def problems(self) -> Path:
        """The file for the partition's problems."""
        return self.out / f"problems-{self.number:05d}.jsonl"


class Part(msgspec.Struct):
    """What a worker gives back: counts, and the texts' keys by split. The rest is in files."""

    books: Books
    keys: dict[Split, list[bytes]]


def merge_partition(job: Job) -> Part:
    """Merge the texts of one partition and write its Docs and its conflicts.

    RAISES (InputError): an "error" policy met its case, or a file changed since it was indexed.
    """
    nlp = load_tokenizer(job.settings)
    part = Part(Books(labels={label: Counter() for label in job.labels}), {split: [] for split in SPLITS})
    bins = {split: DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True) for split in SPLITS}
    with (
        job.conflicts.open("wb") as conflicts,
        job.problems.open("wb") as problems,
        _Sources(job.datasets) as sources,
    ):
        for key, entries in group_by_text(job.entries):
            answers, malformed = _read_answers(key, entries, sources, part.books)
            problems.writelines(map(problem_line, malformed))
            for text in sorted(answers):
                declared = declared_split(answers[text])
                merged = merge_text(text, answers[text], job.settings.policies, declared)
                _count_merged(part.books, merged, job.labels)
                split = declared or hashed_split(key, answers[text], job.settings, part.books)
                uncovered = missing_labels(merged.coverage, job.labels)
                if not merged.coverage:
                    part.books.texts["nothing stands"] += 1
                elif uncovered and split == "train" and job.settings.policies.coverage == "drop":
                    part.books.texts["not covered"] += 1
                    part.books.spans["text not covered"] += len(merged.accepted) + len(merged.rejected)
                else:
                    try:
                        projection = to_doc(nlp, merged, job.labels, job.settings.policies)
                    except InputError as error:
                        first = answers[text][0]
                        raise InputError(f"{first.dataset.path}:{first.line}: {error}") from error
                    bins[split].add(projection.doc)
                    part.keys[split].append(key)
                    part.books.partly[split] += bool(uncovered)
                    _count_doc(part.books, split, merged, projection)
                    merged.conflicts.extend(projection.conflicts)
                conflicts.writelines(conflict_task(merged.text, conflict) for conflict in merged.conflicts)
                problems.writelines(map(problem_line, merged.problems))
    for split, docs in bins.items():
        if len(docs):
            docs.to_disk(job.out / split / f"part-{job.number:05d}.spacy")
    return part


@lru_cache(maxsize=1)
def load_tokenizer(settings: Settings) -> Language:
    """Make the settings' tokenizer, once a process."""
    return make_nlp(settings.lang, settings.tokenizer)


class _Sources:
    """The data sets' files, opened when first read from, closed at the end of the block."""

    def __init__(self, datasets: Sequence[DataSet]) -> None:
        self.datasets = datasets
        self.files: dict[int, int] = {}

    def __enter__(self) -> "_Sources":
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self.files.values():
            os.close(file)

    def read(self, dataset: int, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset` of a data set's file; fewer if it ends before."""
        if dataset not in self.files:
            self.files[dataset] = os.open(self.datasets[dataset].path, os.O_RDONLY)
        return os.pread(self.files[dataset], length, offset)


def _read_answers(
    key: bytes, entries: list[tuple[Any, ...]], sources: _Sources, books: Books
) -> tuple[dict[str, list[Answer]], list[Problem]]:
    """Read the tasks of one key, by text: keys are digests, only equal texts are one document."""
    answers: dict[str, list[Answer]] = {}
    malformed = []
    for _, number, line, offset, length in entries:
        dataset = sources.datasets[number]
        row = sources.read(number, offset, length)
        try:
            task, problem = task_decoder.decode(row), ""
        except DECODE_ERRORS as error:
            task, problem = None, f"malformed: {error}"
        text = task.text if task else read_text(row)[0]
        if text is None or text_key(text) != key:
            raise InputError(f"{dataset.path}:{line}: the file changed while it was read; run the merge again")
        if task is None:
            books.rows["malformed"] += 1
            malformed.append(Problem(dataset.name, line, problem))
            continue
        books.spans_read += len(task.spans or ())
        books.stored_hash_differs += task.input_hash is not None and task.input_hash != input_hash(text)
        answers.setdefault(text, []).append(Answer(dataset, line, task))
    return answers, malformed


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


def conflict_task(text: str, conflict: Conflict) -> bytes:
    """Make a line of JSON, a task that Prodigy can show: the span that lost, and what it lost against."""
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
    text_hash = input_hash(text)
    task = {
        "text": text,
        "_input_hash": text_hash,
        "_task_hash": task_hash(text_hash, spans),
        "spans": spans,
        "meta": {"reason": conflict.reason},
    }
    return msgspec.json.encode(task) + b"\n"


def problem_line(problem: Problem) -> bytes:
    """Make a line of JSON: data set, line and reason."""
    return msgspec.json.encode(problem._asdict()) + b"\n"


def _count_merged(books: Books, merged: Merged, labels: Sequence[str]) -> None:
    """Count what merging did to rows and spans, and the text's coverage."""
    books.rows.update(merged.rows)
    books.spans.update(merged.spans)
    for label in labels:
        books.labels[label][merged.coverage.get(label, "none")] += 1
    for problem in merged.problems:
        reason, _, label = problem.reason.partition(": ")
        if reason == "undeclared label":
            books.undeclared[f"{problem.dataset}: {label}"] += 1


def _count_doc(books: Books, split: Split, merged: Merged, projection: Projection) -> None:
    """Count a Doc and where its spans are."""
    books.texts[split] += 1
    books.words[split] += len(projection.doc)
    books.spans["entity"] += len(projection.doc.ents)
    books.spans["rejected"] += projection.rejected
    books.spans["rejected, no token boundary"] += len(merged.rejected) - projection.rejected
    for _, _, label in merged.accepted:
        books.labels[label]["gold"] += 1
    for _, _, label in merged.rejected:
        books.labels[label]["rejected"] += 1
    for label in projection.realigned:
        books.labels[label]["realigned"] += 1
    for ent in projection.doc.ents:
        books.labels[ent.label_]["entity"] += 1
    for conflict in projection.conflicts:
        books.spans[conflict.reason] += 1
        books.labels[conflict.lost.span[2]][conflict.reason] += 1

"""Merge the texts of one partition: the work of one process, which holds one text's tasks at a time.

A partition is a range of text keys, cut into BUCKETS buckets. The tasks of a text are read from the chunks, merged
(`merge`), made a Doc (`docs`), and added to the train, dev or test file of the partition. What a bucket gave is kept in
the cache with a fingerprint of all that it follows from; a later run takes it from there if that is the same.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from spacy.tokens import Doc

from labelwise.books import Books, bucket_of, problem_line
from labelwise.chunks import Slice, TaskReader, decode_task, join_key, read_index, text_key
from labelwise.datasets import SPLITS, DataSet, Split
from labelwise.docbins import PackedDocs, pack, write_docs
from labelwise.docs import Projection, to_doc
from labelwise.errors import InputError
from labelwise.merge import Answer, Conflict, Merged, merge_text, missing_labels, why_not
from labelwise.output import staged
from labelwise.prodigy import input_hash, task_hash
from labelwise.settings import Settings
from labelwise.tokenizer import LearningTokenizer, make_nlp

BUCKETS = 64
CONFLICTS, PROBLEMS = "conflicts.jsonl", "problems.jsonl"


class Source(msgspec.Struct):
    """What chunks were read from."""

    dataset: DataSet
    path: Path


class Group(NamedTuple):
    """What texts that are nearly equal share: what chooses their split by hash, and the split that one declares."""

    unit: bytes
    declared: Split | None


class Job(msgspec.Struct):
    """One partition's work; it goes to a worker as a whole.

    number, of (int): the position of the partition among how many; a power of two, so that its keys begin alike.
    slices (list[Slice]): where its tasks are, in the order of sources and lines.
    folder (Path): gets the results; what an earlier run left there is used.
    groups (Mapping[bytes, Group]): of the texts, by key, that are to be in one split with others.
    """

    number: int
    of: int
    slices: list[Slice]
    sources: list[Source]
    labels: list[str]
    settings: Settings
    folder: Path
    groups: Mapping[bytes, Group] = {}

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(piece.count for piece in self.slices)

    @property
    def size(self) -> int:
        """Their bytes in the chunks."""
        return sum(piece.size for piece in self.slices)


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


class Part(msgspec.Struct):
    """What a partition gave, but for the Docs, conflicts and problems, which are in files of its folder.

    files (dict[str, str]): the names of its files, with their digests.
    """

    fingerprint: bytes
    books: Books
    keys: dict[str, bytes]
    files: dict[str, str]


def _decode_counter(kind: type, value: Any) -> Any:
    return kind(value)


_decode_part = msgspec.msgpack.Decoder(Part, dec_hook=_decode_counter).decode
_decode_buckets = msgspec.msgpack.Decoder(list[Bucket], dec_hook=_decode_counter).decode


class Row(msgspec.Struct):
    """Where a task is: `task` bytes from `offset` in a chunk, and `text` bytes of text behind them."""

    slice: int
    line: int
    offset: int
    task: int
    text: int


def merge_partition(job: Job) -> Part:
    """Merge the texts of one partition and write its Docs and its conflicts, or take what an earlier run left.

    RAISES (InputError): an "error" policy met its case.
    """
    buckets = list(_read_buckets(job))
    fingerprints = [fingerprint for fingerprint, _ in buckets]
    fingerprint = hashlib.blake2b(b"".join(fingerprints), digest_size=16).digest()
    if (earlier := _read_part(job.folder)) and earlier.fingerprint == fingerprint:
        return earlier
    kept = _read_earlier_buckets(job.folder)
    with TaskReader() as reader:
        merged = [
            kept.get(fingerprint) or merge_bucket(job, fingerprint, texts, reader) for fingerprint, texts in buckets
        ]
    part = Part(fingerprint, Books(labels={label: Counter() for label in job.labels}), dict.fromkeys(SPLITS, b""), {})
    with staged(job.folder) as folder:
        folder.mkdir()
        for split in SPLITS:
            part.keys[split] = b"".join(bucket.keys[split] for bucket in merged)
            if part.keys[split]:
                write_docs([bucket.docs[split] for bucket in merged], folder / f"{split}.spacy")
        (folder / CONFLICTS).write_bytes(b"".join(bucket.conflicts for bucket in merged))
        (folder / PROBLEMS).write_bytes(b"".join(bucket.problems for bucket in merged))
        for bucket in merged:
            part.books.add(bucket.books)
        part.files = {file.name: digest_of(file) for file in sorted(folder.iterdir())}
        (folder / "buckets").write_bytes(msgspec.msgpack.encode(merged))
        (folder / "part").write_bytes(msgspec.msgpack.encode(part))
    return part


def digest_of(file: Path) -> str:
    """Digest a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read_part(folder: Path) -> Part | None:
    """Read what an earlier run made of a partition, if it is all there, and as it was."""
    try:
        part = _decode_part((folder / "part").read_bytes())
        whole = all(digest_of(folder / name) == digest for name, digest in part.files.items())
    except (OSError, msgspec.DecodeError):
        return None
    return part if whole else None


def _read_earlier_buckets(folder: Path) -> dict[bytes, Bucket]:
    try:
        buckets = _decode_buckets((folder / "buckets").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return {bucket.fingerprint: bucket for bucket in buckets}


Texts = list[tuple[bytes, list[Row]]]


def _read_buckets(job: Job) -> Iterator[tuple[bytes, Texts]]:
    """Yield for each bucket that has texts its fingerprint, and its rows by text, in the order of sources and lines."""
    common = hashlib.blake2b(msgspec.json.encode([job.settings, job.labels]))
    declared = [_declaration_digest(source) for source in job.sources]
    columns = _load_columns(job)
    order = np.lexsort((columns["line"], columns["slice"], columns["low"], columns["high"]))
    columns = {name: column[order] for name, column in columns.items()}
    sources = np.array([source.source for source in job.slices], int)
    datasets = np.array(declared, "<u8")[sources][columns["slice"]] if len(order) else columns["high"]
    bits = (job.of * BUCKETS).bit_length() - 1
    numbers = columns["high"] >> np.uint64(64 - bits)
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
    facts = [columns["high"], columns["low"], columns["line"], columns["digest"], datasets]
    for first, last in pairwise(cuts):
        if first == last:
            continue
        digest = common.copy()
        for column in facts:
            digest.update(column[first:last].tobytes())
        names = ("high", "low", "slice", "line", "offset", "task", "text")
        rows = zip(*(columns[name][first:last].tolist() for name in names), strict=True)
        texts = [
            (join_key(*key), [Row(*row[2:]) for row in group]) for key, group in groupby(rows, key=itemgetter(0, 1))
        ]
        if groups := [(key, *job.groups[key]) for key, _ in texts if key in job.groups]:
            digest.update(repr(groups).encode())
        yield digest.digest()[:16], texts


def group_rows(job: Job) -> Iterator[tuple[bytes, list[Row]]]:
    """Yield the rows of each text of a partition, in the order of sources and lines."""
    for _, texts in _read_buckets(job):
        yield from texts


def _declaration_digest(source: Source) -> int:
    """Digest what is declared of a source, and what its problems call it."""
    dataset = source.dataset
    facts = [dataset.name, dataset.labels, dataset.kind, dataset.split, source.path.name]
    return int.from_bytes(hashlib.blake2b(msgspec.json.encode(facts), digest_size=8).digest(), "little")


def _load_columns(job: Job) -> dict[str, Any]:
    """Read the index of a partition's tasks, unsorted."""
    names = ("high", "low", "line", "digest", "task", "text", "slice", "offset")
    parts: dict[str, list[Any]] = {name: [np.zeros(0, "<u8")] for name in names}
    for number, piece in enumerate(job.slices):
        index = read_index(piece.path, piece.first, piece.count)
        for name in ("high", "low", "digest", "task", "text"):
            parts[name].append(index[name].astype("<u8"))
        parts["line"].append(index["line"].astype("<u8") + np.uint64(piece.base))
        parts["slice"].append(np.full(piece.count, number, "<u8"))
        lengths = index["task"].astype("<u8") + index["text"]
        parts["offset"].append(np.cumsum(lengths) - lengths + np.uint64(piece.offset))
    return {name: np.concatenate(columns) for name, columns in parts.items()}


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
    with tokenizer.forgetting():
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
            if not merged.coverage:
                books.texts["nothing stands"] += 1
            elif uncovered and split == "train" and job.settings.policies.coverage == "drop":
                books.texts["not covered"] += 1
                books.spans["text not covered"] += len(merged.accepted) + len(merged.rejected)
            else:
                try:
                    projection = to_doc(tokenizer, merged, job.labels, job.settings.policies)
                except InputError as error:
                    raise InputError(f"{answers[0].place}: {error}") from error
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


def read_text(key: bytes, row: Row, job: Job, reader: TaskReader) -> str:
    """Read the text of a task.

    RAISES (InputError): it isn't the one that the key is of.
    """
    text = reader.read(job.slices[row.slice].path, row.offset + row.task, row.text)
    if text_key(text) != key:
        raise InputError(f"{job.folder.parent.parent}: the cache is damaged; delete it and run the merge again")
    return text.decode("utf8", "surrogatepass")


def read_answer(row: Row, job: Job, reader: TaskReader) -> Answer:
    """Read a task."""
    piece = job.slices[row.slice]
    source = job.sources[piece.source]
    return Answer(source.dataset, row.line, decode_task(reader.read(piece.path, row.offset, row.task)), source.path)


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
    """Count what merging did to rows and spans, and the text's coverage."""
    books.rows.update(merged.rows)
    books.spans.update(merged.spans)
    for label in labels:
        books.labels[label][merged.coverage.get(label, "none")] += 1
    for problem in merged.problems:
        if bucket_of(problem.reason) == "undeclared label":
            books.undeclared[f"{problem.dataset}: {problem.reason.partition(': ')[2]}"] += 1


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

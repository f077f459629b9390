"""Make one partition: the work of one process.

What a bucket of texts gave is kept in the cache with a fingerprint of all that it follows from; a later run takes it
from there if that is the same.
"""

import hashlib
from collections import Counter
from pathlib import Path

import msgspec

from labelwise.books import Books, decode_counter
from labelwise.buckets import Bucket, merge_bucket
from labelwise.chunks import TaskReader
from labelwise.datasets import SPLITS
from labelwise.docbins import write_docs
from labelwise.jobs import Job, TaskTable
from labelwise.output import staged

CONFLICTS, PROBLEMS = "conflicts.jsonl", "problems.jsonl"


class Part(msgspec.Struct):
    """What a partition gave, but for the Docs, conflicts and problems, which are in files of its folder.

    identity, fingerprint (bytes): digests of what it follows from: by place, and by content.
    files (dict[str, str]): the names of its files, with their digests.
    """

    identity: bytes
    fingerprint: bytes
    books: Books
    keys: dict[str, bytes]
    files: dict[str, str]


_decode_part = msgspec.msgpack.Decoder(Part, dec_hook=decode_counter).decode
_decode_buckets = msgspec.msgpack.Decoder(list[Bucket], dec_hook=decode_counter).decode


def merge_partition(job: Job) -> Part:
    """Merge the texts of one partition and write its Docs and its conflicts, or take what an earlier run left.

    RAISES (InputError): an "error" policy met its case.
    """
    identity = job.identity()
    earlier = _read_part(job.folder)
    if earlier and earlier.identity == identity:
        return earlier
    tasks = TaskTable(job)
    buckets = [(tasks.fingerprint(first, last), first, last) for first, last in tasks.cut_buckets()]
    fingerprint = hashlib.blake2b(job.common + b"".join(name for name, _, _ in buckets), digest_size=16).digest()
    if earlier and earlier.fingerprint == fingerprint:
        return earlier
    kept = _read_earlier_buckets(job.folder)
    with TaskReader() as reader:
        merged = [
            kept.get(name) or merge_bucket(job, name, tasks.texts(first, last), reader) for name, first, last in buckets
        ]
    part = Part(
        identity, fingerprint, Books(labels={label: Counter() for label in job.labels}), dict.fromkeys(SPLITS, b""), {}
    )
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

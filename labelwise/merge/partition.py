"""Merge one partition: the work of one process.

The result of each portion of its texts is kept in the cache with a fingerprint of all that it depends on; a later run
takes it from there if that is the same.
"""

import hashlib
from collections import Counter
from pathlib import Path

import msgspec

from labelwise.common.outputs import staged
from labelwise.corpus.docbin_writer import write_docs
from labelwise.corpus.manifest import SPLITS
from labelwise.corpus.places import PLACES
from labelwise.merge.jobs import MergeJob
from labelwise.merge.portion import Portion, merge_portion
from labelwise.merge.rules.ledger import Ledger, decode_counter
from labelwise.merge.task_store import TaskReader
from labelwise.merge.task_table import TaskTable

LOST_SPANS, DISAGREEMENTS, PROBLEMS = "lost_spans.jsonl", "disagreements.jsonl", "problems.jsonl"
NAMES = "names.json"


class PartitionResult(msgspec.Struct):
    """The result of a partition, except for what is in files of its folder: Docs, lost spans, problems, places, ….

    identity, fingerprint (bytes): digests of what it depends on: by place, and by content.
    files (dict[str, str]): the names of its files, with their digests.
    """

    identity: bytes
    fingerprint: bytes
    ledger: Ledger
    keys: dict[str, bytes]
    files: dict[str, str]


_decode_result = msgspec.msgpack.Decoder(PartitionResult, dec_hook=decode_counter).decode
_decode_portions = msgspec.msgpack.Decoder(list[Portion], dec_hook=decode_counter).decode


def merge_partition(job: MergeJob) -> PartitionResult:
    """Merge the texts of one partition and write its Docs and lost spans, or take what an earlier run left.

    RAISES (InputError): an "error" policy met its case.
    """
    identity = job.identity()
    earlier = _read_result(job.folder)
    if earlier and earlier.identity == identity:
        return earlier
    tasks = TaskTable(job)
    portions = [(tasks.fingerprint(first, last), first, last) for first, last in tasks.cut_portions()]
    fingerprint = hashlib.blake2b(job.common + b"".join(name for name, _, _ in portions), digest_size=16).digest()
    if earlier and earlier.fingerprint == fingerprint:
        return earlier
    kept = _read_earlier_portions(job.folder)
    with TaskReader() as reader:
        merged = [
            kept.get(name) or merge_portion(job, name, tasks.texts(first, last), reader)
            for name, first, last in portions
        ]
    ledger = Ledger(labels={label: Counter() for label in job.labels})
    result = PartitionResult(identity, fingerprint, ledger, dict.fromkeys(SPLITS, b""), {})
    with staged(job.folder, folder=True) as folder:
        folder.mkdir()
        for split in SPLITS:
            result.keys[split] = b"".join(portion.keys[split] for portion in merged)
            if result.keys[split]:
                write_docs([portion.docs[split] for portion in merged], folder / f"{split}.spacy")
        (folder / LOST_SPANS).write_bytes(b"".join(portion.lost_spans for portion in merged))
        (folder / DISAGREEMENTS).write_bytes(b"".join(portion.disagreements for portion in merged))
        (folder / PROBLEMS).write_bytes(b"".join(portion.problems for portion in merged))
        (folder / PLACES).write_bytes(b"".join(portion.places for portion in merged))
        names = {key: name for portion in merged for key, name in portion.names.items()}
        (folder / NAMES).write_bytes(msgspec.json.encode(names))
        for portion in merged:
            ledger.add(portion.ledger)
        result.files = {file.name: digest_of(file) for file in sorted(folder.iterdir())}
        (folder / "portions").write_bytes(msgspec.msgpack.encode(merged))
        (folder / "result").write_bytes(msgspec.msgpack.encode(result))
    return result


def read_names(folder: Path) -> dict[str, str]:
    """Read the documents that texts of a partition are, by key in hexadecimal, of those that have a name."""
    return msgspec.json.decode((folder / NAMES).read_bytes(), type=dict[str, str])


def digest_of(file: Path) -> str:
    """Digest a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read_result(folder: Path) -> PartitionResult | None:
    """Read what an earlier run made of a partition, if it is complete and unchanged."""
    try:
        result = _decode_result((folder / "result").read_bytes())
        whole = all(digest_of(folder / name) == digest for name, digest in result.files.items())
    except (OSError, msgspec.DecodeError):
        return None
    return result if whole else None


def _read_earlier_portions(folder: Path) -> dict[bytes, Portion]:
    try:
        portions = _decode_portions((folder / "portions").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return {portion.fingerprint: portion for portion in portions}

"""Store tasks on disk, in buckets by the keys of their texts, so that a merge holds the tasks of few texts at a time.

A bucket is a folder with a file for each source that has tasks in it. A record is a HEAD, the task as MessagePack, and
its text. Buckets are in the order of keys, and large ones are cut again; partitions don't depend on them. `same_texts`
gives one key to texts that differ only in white space or Unicode composition.
"""

import struct
from collections.abc import Iterator
from os import SEEK_CUR
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.annotations import Task
from labelwise.base.files import remove
from labelwise.base.text import KEY_BYTES, bytes_key, text_key
from labelwise.sources.normalize import Move

# The key, the number of the task in its source, the size of the task, and that of the text.
HEAD = struct.Struct(f"<{KEY_BYTES}sIII")
SOURCE_BYTES = 2**25  # per bucket
LEAST_BITS, MOST_BITS, MOST_FILES = 3, 8, 2**15
WAITING_BYTES = 2**22  # that a writer holds
LARGE = 2**25  # bytes from which a bucket is cut again, by CUT_BITS
CUT_BITS = 4
COUNTED = 2**15  # tasks, up to which texts are counted rather than estimated

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class Text(NamedTuple):
    """A text with its tasks.

    text (str): that of the first task.
    records (list): its tasks, each with the number of its source, in the order of sources and lines.
    """

    key: bytes
    text: str
    records: list[tuple[int, bytes]]

    def read(self) -> Iterator[tuple[int, str, Task]]:
        """Yield the number of the source, the text, and the task, without its text, of each record."""
        first = self.text.encode("utf8", "surrogatepass")
        for source, record in self.records:
            _, _, size, _ = HEAD.unpack_from(record)
            task = decode_task(memoryview(record)[HEAD.size : HEAD.size + size])
            yield source, self.text if _has_text(record, first) else _text_of(record), task

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield the tasks, each with the number of its source, and with offsets in the text."""
        moves: dict[str, Move] = {}
        for source, text, task in self.read():
            if text == self.text:
                yield source, task
            else:
                move = moves.get(text) or moves.setdefault(text, Move(text, self.text))
                yield source, move.task(task)

    def variants(self) -> dict[bytes, str]:
        """Return the texts that differ from this one only in white space or Unicode composition, by their keys."""
        first = self.text.encode("utf8", "surrogatepass")
        texts = {_text_of(record): None for _, record in self.records if not _has_text(record, first)}
        return {text_key(text): text for text in texts}


def _number_of(record: bytes) -> int:
    _, number, _, _ = HEAD.unpack_from(record)
    return int(number)


def _text_of(record: bytes) -> str:
    _, _, size, _ = HEAD.unpack_from(record)
    return record[HEAD.size + size :].decode("utf8", "surrogatepass")


def _has_text(record: bytes, text: bytes) -> bool:
    _, _, _, size = HEAD.unpack_from(record)
    return bool(size == len(text)) and record.endswith(text)


def count_bits(size: int, sources: int) -> int:
    """Choose how many bits of a key number its bucket.

    size (int): bytes of all sources.
    """
    bits = min(MOST_BITS, max(LEAST_BITS, (size // SOURCE_BYTES).bit_length()))
    while bits and sources << bits > MOST_FILES:
        bits -= 1
    return bits


def range_of(key: bytes, bits: int) -> int:
    """Return the number of the range that a key is in, of the 2**bits equal ranges that all keys are cut into."""
    return int.from_bytes(key[:8], "big") >> (64 - bits)


class BucketWriter:
    """Appends records to their buckets, many at a time.

    name (str): that of the file in each bucket, which begins with the number of the source; see `file_of`.
    bits, skip (int): how many bits of a key number a bucket, and how many before them are equal in all keys.
    """

    def __init__(self, folder: Path, name: str, bits: int, skip: int = 0) -> None:
        """Take the folder of all buckets."""
        self.folder, self.name, self.bits, self.skip = folder, name, bits, skip
        self._waiting: dict[int, list[bytes]] = {}
        self._size = 0

    def add_task(self, task: Task, number: int) -> bytes:
        """Add a task, with its number in its source; return the key of its text."""
        text = task.text.encode("utf8", "surrogatepass")
        key, encoded = bytes_key(text), encode_task(msgspec.structs.replace(task, text=""))
        self.add(key, HEAD.pack(key, number, len(encoded), len(text)) + encoded + text)
        return key

    def add(self, key: bytes, record: bytes) -> None:
        """Add a record."""
        number = range_of(key, self.skip + self.bits) & ((1 << self.bits) - 1)
        self._waiting.setdefault(number, []).append(record)
        self._size += len(record) + 100
        if self._size > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting records."""
        for number, records in self._waiting.items():
            bucket = self.folder / f"{number:03d}"
            bucket.mkdir(parents=True, exist_ok=True)
            with (bucket / self.name).open("ab") as file:
                file.writelines(records)
        self._waiting, self._size = {}, 0


def read_records(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a file, each with its key."""
    with file.open("rb", buffering=2**16) as records:
        while head := records.read(HEAD.size):
            key, _, task, text = HEAD.unpack(head)
            yield key, head + records.read(task + text)


def read_heads(file: Path) -> Iterator[tuple[bytes, int, int]]:
    """Yield the key of each record of a file, the number of its task in the source, and the size of its text."""
    with file.open("rb", buffering=2**16) as records:
        while head := records.read(HEAD.size):
            key, number, task, text = HEAD.unpack(head)
            records.seek(task + text, SEEK_CUR)
            yield key, number, text


def count_texts(folder: Path, bits: int, tasks: int) -> tuple[int, int]:
    """Count the distinct texts in all buckets, and their bytes.

    Above COUNTED tasks, they are estimated from a share of the keys, so that the estimate depends on the texts, and on
    the number of tasks, alone.

    tasks (int): the number of tasks in all buckets.
    """
    shift = 0
    while tasks >> shift > COUNTED:
        shift += 1
    found: dict[bytes, int] = {}
    for number in range(max(1, 1 << bits >> shift)):
        bucket = folder / f"{number:03d}"
        for file in bucket.iterdir() if bucket.is_dir() else ():
            found.update((key, size) for key, _, size in read_heads(file) if not range_of(key, shift))
    return len(found) << shift, sum(found.values()) << shift


def read_bucket(folder: Path, skip: int, scratch: Path) -> Iterator[Text]:
    """Yield the texts of a bucket, in the order of their keys.

    skip (int): how many bits of its keys are equal.
    scratch (Path): the folder for the pieces of a large bucket.
    """
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if sum(file.stat().st_size for file in files) > LARGE and skip + CUT_BITS <= 64:
        cut = scratch / f"{folder.name}-cut"
        for file in files:
            writer = BucketWriter(cut, file.name, CUT_BITS, skip)
            for key, record in read_records(file):
                writer.add(key, record)
            writer.flush()
        for part in sorted(cut.iterdir()):
            yield from read_bucket(part, skip + CUT_BITS, cut)
        remove(cut)
        return
    found: dict[bytes, list[tuple[int, bytes]]] = {}
    for file in files:
        source = source_of(file)
        for key, record in read_records(file):
            found.setdefault(key, []).append((source, record))
    for key in sorted(found):
        records = sorted(found.pop(key), key=lambda one: (one[0], _number_of(one[1])))
        yield Text(key, _text_of(records[0][1]), records)


def file_of(source: int) -> str:
    """Name the file of a source in each bucket, by its number."""
    return f"{source:06d}"


def source_of(file: Path) -> int:
    """Return the number of the source that the records of a file are from."""
    return int(file.name.partition("-")[0])

"""Store tasks on disk, in buckets by text key, so a merge holds the tasks of few texts in memory.

A writer has one file for all buckets, since creating a file takes as long as reading fifty tasks. The file has blocks
of records of one bucket, each with the place of the bucket's previous block first, and ends with the places of the last
blocks. A record is a HEAD, and a task as MessagePack, without its text, or a text; as bytes, records sort by key, texts
before tasks, sources and lines. A process writes a text once.

Buckets are sorted by key, and large ones are split again; partitions don't depend on them. `same_texts` gives one key
to texts that differ only in white space or Unicode composition.
"""

import struct
from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, groupby
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import msgspec

from labelwise.annotations import Task
from labelwise.base.files import remove
from labelwise.base.text import KEY_BYTES, bytes_key, form_of, text_key
from labelwise.sources.normalize import Move

# The key; the number of the source, from 1, or TEXT; that of the task in the source; the key of the task's own text,
# which differs where the text was joined with another one; and the size of what follows.
HEAD = struct.Struct(f">{KEY_BYTES}sII{KEY_BYTES}sI")
TEXT = 0
BLOCK = struct.Struct("<qq")  # place of the block before, or -1; size of the records
FORM = struct.Struct(f"<{KEY_BYTES}s{KEY_BYTES}sII")  # keys of a form and of its text; place of the task
SAME = struct.Struct(f"<{KEY_BYTES}s{KEY_BYTES}s")  # keys of a text and of the first text with its form
SOURCE_BYTES = 2**23  # per bucket
LEAST_BITS, MOST_BITS, MOST_BLOCKS = 3, 8, 2**15
WAITING_BYTES = 2**22  # held by a writer
MAX_BUCKET_BYTES = 2**23  # held by a worker; a larger bucket is cut again, by CUT_BITS
CUT_BITS = 4
MAX_COUNTED_TASKS = 2**15  # with more tasks, texts are estimated
MAX_KNOWN_TEXTS = 2**15  # texts that a process remembers as written

encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class Text(NamedTuple):
    """A text with its tasks, in order of sources and lines, and its variants by key."""

    key: bytes
    text: str
    variants: dict[bytes, str]
    records: list[bytes]

    def read(self) -> Iterator[tuple[int, str, Task]]:
        """Yield source number, text, and task without its text, of each record."""
        for record in self.records:
            _, source, _, own, _ = HEAD.unpack_from(record)
            text = self.text if own == self.key else self.variants[own]
            yield source - 1, text, decode_task(memoryview(record)[HEAD.size :])

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield source number and task, with offsets in the text."""
        moves = {text: Move(text, self.text) for text in self.variants.values()}
        for source, text, task in self.read():
            yield source, moves[text].task(task) if text in moves else task


def count_bits(size: int, sources: int) -> int:
    """Return the number of key bits that select a bucket."""
    bits = min(MOST_BITS, max(LEAST_BITS, (size // SOURCE_BYTES).bit_length()))
    while bits and sources << bits > MOST_BLOCKS:
        bits -= 1
    return bits


def range_of(key: bytes, bits: int) -> int:
    """Return the number of a key's range, of 2**bits equal ranges."""
    return int.from_bytes(key[:8], "big") >> (64 - bits)


class BucketWriter:
    """Writes records to their buckets in batches; without records, there is no file."""

    def __init__(self, file: Path, bits: int, skip: int = 0) -> None:
        self.folder, self.path, self.bits, self.skip = file.parent, file, bits, skip
        self._last = array("q", [-1]) * (1 << bits)
        self._waiting: dict[int, list[bytes]] = {}
        self._size = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.flush()
        if self._file:
            self._file.write(self._last)
            self._file.close()

    def add(self, key: bytes, record: bytes) -> None:
        """Add a record."""
        number = range_of(key, self.skip + self.bits) & ((1 << self.bits) - 1)
        self._waiting.setdefault(number, []).append(record)
        self._size += len(record) + 100
        if self._size > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting records."""
        if not self._waiting:
            return
        if not self._file:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")
        for number, records in self._waiting.items():
            place, content = self._file.tell(), b"".join(records)
            self._file.write(BLOCK.pack(self._last[number], len(content)))
            self._file.write(content)
            self._last[number] = place
        self._waiting, self._size = {}, 0


class TaskWriter(BucketWriter):
    """Writes the tasks of a source, and texts that this process hasn't written to the folder."""

    def add_task(self, task: Task, source: int, number: int) -> tuple[bytes, bytes]:
        """Add a task, with its source and its number there; return the keys of text and normalized text."""
        text = task.text.encode("utf8", "surrogatepass")
        key, encoded = bytes_key(text), encode_task(msgspec.structs.replace(task, text=""))
        known = written_texts(self.folder)
        if (form := known.get(key)) is None:
            if len(known) >= MAX_KNOWN_TEXTS:
                known.clear()
            form = known[key] = text_key(form_of(task.text))
            self.add(key, HEAD.pack(key, TEXT, 0, key, len(text)) + text)
        self.add(key, HEAD.pack(key, source + 1, number, key, len(encoded)) + encoded)
        return key, form


@lru_cache(maxsize=1)
def written_texts(folder: Path) -> dict[bytes, bytes]:
    """Return keys of texts that this process wrote to a folder (on a cluster, a job's), with their forms' keys."""
    return {}


class Buckets(msgspec.Struct, frozen=True):
    """The buckets of a merge.

    folder (Path): files of writers, by kind: "tasks", and those of `same_texts`: "forms", the pairs of keys "same", and
        tasks "moved" to other buckets.
    bits (int): number of key bits that select a bucket.
    """

    folder: Path
    bits: int

    def files(self, kind: str) -> list[Path]:
        """List the files of a kind."""
        folder = self.folder / kind
        return sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []

    def numbers(self, kind: str) -> list[int]:
        """List the buckets with records of a kind."""
        numbers: set[int] = set()
        for file in self.files(kind):
            with file.open("rb") as blocks:
                numbers.update(number for number, place in enumerate(_last_places(blocks, self.bits)) if place >= 0)
        return sorted(numbers)

    def read(self, kind: str, number: int, record: struct.Struct) -> Iterator[tuple[Any, ...]]:
        """Yield the records of a bucket, which have one size."""
        for file in self.files(kind):
            for block in read_blocks(file, number, self.bits):
                yield from record.iter_unpack(block)

    def tasks(self, number: int, *, moved: bool = True) -> Iterator[bytes]:
        """Yield the tasks of a bucket, and their texts; with `moved`, after `same_texts`."""
        moved_keys = {key for key, _ in self.read("same", number, SAME)} if moved else ()
        for file in self.files("tasks"):
            for record in split_tasks(read_blocks(file, number, self.bits)):
                if not moved_keys or record[:KEY_BYTES] not in moved_keys:
                    yield record
        for file in self.files("moved") if moved else ():
            yield from split_tasks(read_blocks(file, number, self.bits))

    def count_texts(self, tasks: int) -> tuple[int, int]:
        """Count the distinct texts, and their bytes.

        Above MAX_COUNTED_TASKS, they are estimated from a share of the keys, reproducibly.
        """
        shift = 0
        while tasks >> shift > MAX_COUNTED_TASKS:
            shift += 1
        sizes: dict[bytes, int] = {}
        for number in range(max(1, 1 << self.bits >> shift)):
            for record in self.tasks(number):
                key, source, _, own, size = HEAD.unpack_from(record)
                if source == TEXT and own == key and not range_of(key, shift):
                    sizes[key] = size
        return len(sizes) << shift, sum(sizes.values()) << shift

    def texts(self, number: int, scratch: Path) -> Iterator[Text]:
        """Yield the texts of a bucket, sorted by key."""
        yield from read_texts(self.tasks(number), self.bits, scratch / f"cut-{number}")


def read_blocks(file: Path, number: int, bits: int) -> Iterator[bytes]:
    """Yield the blocks of a bucket, last first."""
    with file.open("rb") as blocks:
        place = _last_places(blocks, bits)[number]
        while place >= 0:
            blocks.seek(place)
            place, size = BLOCK.unpack(blocks.read(BLOCK.size))
            yield blocks.read(size)


def _last_places(blocks: IO[bytes], bits: int) -> "array[int]":
    places = array("q")
    blocks.seek(-places.itemsize << bits, SEEK_END)
    places.frombytes(blocks.read())
    return places


def split_tasks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the records of tasks and texts in blocks."""
    for block in blocks:
        place = 0
        while place < len(block):
            *_, size = HEAD.unpack_from(block, place)
            end = place + HEAD.size + size
            yield block[place:end]
            place = end


def _make_text(key: bytes, records: list[bytes]) -> Text:
    texts: dict[bytes, str] = {}
    heads = [HEAD.unpack_from(record) for record in records]
    for record, (_, source, _, own, _) in zip(records, heads, strict=True):
        if source == TEXT and own not in texts:
            texts[own] = record[HEAD.size :].decode("utf8", "surrogatepass")
    return Text(
        key, texts.pop(key), texts, [record for record, head in zip(records, heads, strict=True) if head[1] != TEXT]
    )


def read_texts(tasks: Iterator[bytes], skip: int, cut: Path) -> Iterator[Text]:
    """Yield the texts of tasks, sorted by key; the keys have `skip` equal bits."""
    held: list[bytes] = []
    size = 0
    for record in tasks:
        held.append(record)
        size += len(record)
        if size > MAX_BUCKET_BYTES and skip + CUT_BITS <= 64:
            break
    else:
        held.sort()
        for key, records in groupby(held, lambda record: record[:KEY_BYTES]):
            yield _make_text(key, [*records])
        return
    with BucketWriter(cut, CUT_BITS, skip) as writer:
        for record in chain(held, tasks):
            writer.add(record[:KEY_BYTES], record)
    del held
    for part in range(1 << CUT_BITS):
        own_cut = cut.with_name(f"{cut.name}-{part}")
        yield from read_texts(split_tasks(read_blocks(cut, part, CUT_BITS)), skip + CUT_BITS, own_cut)
    remove(cut)

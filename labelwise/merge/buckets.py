"""Store tasks on disk, in buckets by text key, so a merge holds the tasks of few texts in memory.

A writer has one file for all buckets, since creating a file takes as long as reading fifty tasks. The file has blocks
of records of one bucket, each beginning with the place of the bucket's previous block, and ends with the last blocks'
places. A record is a HEAD, and a task as MessagePack, without its text, or a text; as bytes, records sort by key, texts
before tasks, sources and lines. A process writes a text once.

Buckets are sorted by key, and read in ranges; large ranges are split again. Partitions don't depend on them.
`same_texts` gives one key to texts that differ only in white space or Unicode composition.
"""

import struct
from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, groupby
from os import SEEK_END
from pathlib import Path
from typing import IO, NamedTuple, Self

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
FORM = struct.Struct(f">{KEY_BYTES}sII{KEY_BYTES}sI")  # key of a form; place of a task; key and size of its text
SOURCE_BYTES = 2**23  # per bucket
LEAST_BITS, MOST_BITS, MOST_BLOCKS = 3, 8, 2**15
WAITING_BYTES = 2**22  # held by a writer
READ_BYTES = 2**20  # held by a worker on average: the tasks of a range of keys
MAX_RANGE_BYTES = 2**23  # held by a worker; a larger range is cut again, by CUT_BITS
CUT_BITS = 4
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
        """Yield (source number, text, task without text) of each record."""
        for record in self.records:
            _, source, _, own, _ = HEAD.unpack_from(record)
            text = self.text if own == self.key else self.variants[own]
            yield source - 1, text, decode_task(memoryview(record)[HEAD.size :])

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield (source number, task), with offsets in the text."""
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
    """Writes records to their buckets in batches; creates no empty file."""

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
    """Writes the tasks of a source, and texts that this process hasn't written yet.

    forms (BucketWriter): gets these texts' forms.
    """

    def __init__(self, file: Path, bits: int, forms: BucketWriter) -> None:
        super().__init__(file, bits)
        self.forms, self._known = forms, written_texts(file.parent)

    def add_task(self, task: Task, source: int, number: int) -> None:
        """Add a task, with its source and its number there."""
        text = task.text.encode("utf8", "surrogatepass")
        key, encoded = bytes_key(text), encode_task(msgspec.structs.replace(task, text=""))
        if key not in self._known:
            if len(self._known) >= MAX_KNOWN_TEXTS:
                self._known.clear()
            self._known.add(key)
            form = text_key(form_of(task.text))
            self.add(key, HEAD.pack(key, TEXT, 0, key, len(text)) + text)
            self.forms.add(form, FORM.pack(form, source, number, key, len(text)))
        self.add(key, HEAD.pack(key, source + 1, number, key, len(encoded)) + encoded)


@lru_cache(maxsize=1)
def written_texts(folder: Path) -> set[bytes]:
    """Return keys of texts that this process (on a cluster, a job) wrote to a folder."""
    return set()


class Buckets(msgspec.Struct, frozen=True):
    """The buckets of a merge, read in ranges: `number` of 2**bits equal ranges of keys.

    folder (Path): writers' files by kind: "tasks", "forms", and `same_texts`' pairs of keys, "same", and tasks for
        other buckets, "moved".
    bits (int): number of key bits that select a bucket.
    """

    folder: Path
    bits: int

    def files(self, kind: str) -> list[Path]:
        """List the files of a kind."""
        folder = self.folder / kind
        return sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []

    def bits_for(self, parts: int) -> int:
        """Return the bits of at least `parts` ranges, or of all buckets."""
        return min(self.bits, parts.bit_length())

    def read_bits(self) -> int:
        """Return the bits of ranges with READ_BYTES of tasks on average."""
        return self.bits_for(sum(file.stat().st_size for file in self.files("tasks")) // READ_BYTES)

    def blocks(self, kind: str, number: int, bits: int) -> Iterator[bytes]:
        """Yield the blocks of a range."""
        each = self.bits - bits
        for file in self.files(kind):
            yield from read_blocks(file, range(number << each, (number + 1) << each), self.bits)

    def read(self, kind: str, size: int, number: int = 0, bits: int = 0) -> Iterator[bytes]:
        """Yield the records of a range; all have `size` bytes."""
        for block in self.blocks(kind, number, bits):
            for place in range(0, len(block), size):
                yield block[place : place + size]

    def same(self, number: int = 0, bits: int = 0) -> dict[bytes, bytes]:
        """Map keys of texts to the first key with the same form."""
        return {pair[:KEY_BYTES]: pair[KEY_BYTES:] for pair in self.read("same", 2 * KEY_BYTES, number, bits)}

    def tasks(self, number: int, bits: int) -> Iterator[bytes]:
        """Yield a range's tasks and texts, after `same_texts`."""
        moved_keys = self.same(number, bits)
        for record in split_tasks(self.blocks("tasks", number, bits)):
            if not moved_keys or record[:KEY_BYTES] not in moved_keys:
                yield record
        yield from split_tasks(self.blocks("moved", number, bits))

    def texts(self, number: int, bits: int, scratch: Path) -> Iterator[Text]:
        """Yield a range's texts, sorted by key."""
        yield from read_texts(self.tasks(number, bits), bits, scratch / f"cut-{number}")


def read_blocks(file: Path, numbers: range, bits: int) -> Iterator[bytes]:
    """Yield the blocks of some buckets, each bucket's last one first."""
    places = array("q")
    with file.open("rb") as blocks:
        blocks.seek(-places.itemsize << bits, SEEK_END)
        places.frombytes(blocks.read())
        for last in places[numbers.start : numbers.stop]:
            place = last
            while place >= 0:
                blocks.seek(place)
                place, size = BLOCK.unpack(blocks.read(BLOCK.size))
                yield blocks.read(size)


def split_tasks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the records in blocks of tasks."""
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
    """Yield texts, sorted by key; the keys share `skip` bits."""
    held: list[bytes] = []
    size = 0
    for record in tasks:
        held.append(record)
        size += len(record)
        if size > MAX_RANGE_BYTES and skip + CUT_BITS <= 64:
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
        yield from read_texts(split_tasks(read_blocks(cut, range(part, part + 1), CUT_BITS)), skip + CUT_BITS, own_cut)
    remove(cut)

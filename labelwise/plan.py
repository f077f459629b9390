"""What is to be done in a merge: the parts of the sources to read, and the partitions to make."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.chunks import ReadJob, Slice, count_texts, cut_chunk
from labelwise.jobs import Group, Job, Source
from labelwise.settings import Settings
from labelwise.sources import can_be_cut, stat_of

PART_BYTES = 2**26  # of a source that can be cut: 64 MB are read by one process in about a second
BUFFER_BYTES = 2**24  # of tasks that wait to be sorted
TEXT_BYTES = 2**22  # in a partition, on average: a worker holds it all


class Chunk(NamedTuple):
    """A chunk: its source's position among all, the lines before the part that it is of, its tasks and its bytes."""

    path: Path
    source: int
    base: int
    tasks: int
    size: int


def plan_reading(sources: Sequence[Source], cache: Path, settings: Settings) -> list[ReadJob]:
    """Cut the sources into parts to read, in their order."""
    jobs = []
    for number, source in enumerate(sources):
        stat = stat_of(source.path)
        size = sum(file_size for _, _, file_size, _ in stat)
        dataset = source.dataset.name if source.dataset.database else ""
        cut = not dataset and can_be_cut(source.path)
        starts = range(0, max(size, 1), PART_BYTES) if cut else (0,)
        for start in starts:
            end = start + PART_BYTES if start + PART_BYTES < size and cut else None
            facts = [stat, dataset, start, end, settings.normalize, settings.split_by]
            name = hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).hexdigest()
            jobs.append(
                ReadJob(
                    number=number,
                    path=source.path,
                    dataset=dataset,
                    start=start,
                    end=end,
                    size=(end or size) - start,
                    stat=stat,
                    out=cache / "chunks" / name,
                    buffer=BUFFER_BYTES,
                    normalize=settings.normalize,
                    split_by=settings.split_by,
                )
            )
    return jobs


def count_partitions(chunks: Sequence[Chunk], settings: Settings) -> int:
    """Choose how many partitions there are: a power of two, so that few texts more don't change it."""
    texts, text_bytes = count_texts([(chunk.path, chunk.tasks) for chunk in chunks])
    least = max(1, ceil(texts / settings.docs_per_partition), ceil(text_bytes / TEXT_BYTES))
    return 1 << (least - 1).bit_length()


def plan_merging(
    chunks: Sequence[Chunk],
    count: int,
    sources: list[Source],
    labels: list[str],
    settings: Settings,
    cache: Path,
    groups: Mapping[bytes, Group] = {},
) -> Iterator[Job]:
    """Yield the work of each of `count` partitions."""
    grouped: dict[int, dict[bytes, Group]] = {}
    for key, group in groups.items():
        number = int.from_bytes(key[:8], "big") * count >> 64
        grouped.setdefault(number, {})[key] = group
    cuts = [cut_chunk(chunk.path, count) for chunk in chunks]
    for number in range(count):
        slices = []
        for chunk, (entries, offsets) in zip(chunks, cuts, strict=True):
            first, last = entries[number : number + 2].tolist()
            start, end = offsets[number : number + 2].tolist()
            if first < last:
                slices.append(Slice(chunk.path, chunk.source, chunk.base, first, last - first, start, end - start))
        folder = cache / "parts" / f"{number:05d}"
        yield Job(number, count, slices, sources, labels, settings, folder, grouped.get(number, {}))

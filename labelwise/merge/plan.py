"""The work of a merge: the slices of the sources to read, the partitions to make, the workers to do it."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TypeVar

import msgspec

from labelwise.merge.cache import Cache
from labelwise.merge.jobs import MergeJob, ReadJob, Source, SplitGroup
from labelwise.merge.rules.settings import Settings
from labelwise.merge.runs import Run, count_texts, cut_runs
from labelwise.sources.brat import READ_SUFFIXES
from labelwise.sources.decisions import DecisionRow
from labelwise.sources.files import printable, stat_of
from labelwise.sources.formats import can_be_cut

Value = TypeVar("Value")
SLICE_BYTES = 2**26  # of a source that can be cut: 64 MB are read by one process in about a second
TEXT_BYTES = 2**22  # in a partition, on average: a worker holds it all
# Bytes that a merge takes beyond what this process has when it begins: by itself, and for each worker. Measured by
# `make bench`, plus a tenth.
ALONE, PER_WORKER = 60 * 2**20, 75 * 2**20


def plan_reading(sources: Sequence[Source], cache: Cache, settings: Settings) -> list[ReadJob]:
    """Cut the sources into slices to read, in order."""
    jobs = []
    for number, source in enumerate(sources):
        stat = stat_of(source.path, READ_SUFFIXES)
        size = sum(file_size for _, _, file_size, *_ in stat)
        dataset = source.dataset.name if source.dataset.database else ""
        cut = not dataset and can_be_cut(source.path)
        place = printable(Path(os.path.relpath(source.path, cache.tasks)))  # a project may be moved
        starts = range(0, max(size, 1), SLICE_BYTES) if cut else (0,)
        for start in starts:
            end = start + SLICE_BYTES if start + SLICE_BYTES < size and cut else None
            declared = source.dataset.rename, source.dataset.key
            facts = [place, stat, dataset, start, end, settings.normalize, settings.split_by, *declared]
            name = hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).hexdigest()
            jobs.append(
                ReadJob(
                    number=number,
                    path=source.path,
                    dataset=dataset,
                    start=start,
                    end=end,
                    stat=stat,
                    out=cache.tasks / name,
                    normalize=settings.normalize,
                    split_by=settings.split_by,
                    rename=source.dataset.rename,
                    key=source.dataset.key,
                )
            )
    return jobs


def count_partitions(runs: Sequence[Run], settings: Settings) -> int:
    """Choose how many partitions there are: a power of two, so that a few more texts don't change it."""
    texts, text_bytes = count_texts(runs)
    least = max(1, ceil(texts / settings.docs_per_partition), ceil(text_bytes / TEXT_BYTES))
    return 1 << (least - 1).bit_length()


def plan_merging(
    runs: Sequence[Run],
    count: int,
    sources: list[Source],
    labels: list[str],
    settings: Settings,
    cache: Cache,
    groups: Mapping[bytes, SplitGroup] = {},
    decisions: Mapping[bytes, list[DecisionRow]] = {},
) -> Iterator[MergeJob]:
    """Yield the work on each of `count` partitions."""
    grouped, decided = _by_partition(groups, count), _by_partition(decisions, count)
    for number, parts in enumerate(cut_runs(runs, count)):
        folder = cache.partitions / f"{number:05d}"
        of_texts = grouped.get(number, {}), decided.get(number, {})
        yield MergeJob(number, count, parts, sources, labels, settings, folder, *of_texts)


def _by_partition(values: Mapping[bytes, Value], count: int) -> dict[int, dict[bytes, Value]]:
    """Put what belongs to texts, by key, to the partitions that these are in."""
    found: dict[int, dict[bytes, Value]] = {}
    for key, value in values.items():
        found.setdefault(int.from_bytes(key[:8], "big") * count >> 64, {})[key] = value
    return found

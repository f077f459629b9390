"""The partitions of a merge, and the work on each.

A partition is a range of keys; its job says where its tasks are in the runs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from labelwise.datasets.decisions import DecisionRow
from labelwise.datasets.declarations import SourceFile
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.settings import Settings
from labelwise.merge.rules.splits import SplitGroup
from labelwise.merge.runs import ENTRY, Place, Run, RunReader, count_texts, cut_runs, range_of, read_texts

TEXT_BYTES = 2**22  # in a partition, on average: a worker holds it all

Value = TypeVar("Value")


class MergeJob(msgspec.Struct):
    """A partition to be merged.

    number, of (int): the position of the partition, and how many there are; a power of two, so its keys begin alike.
    runs (list[Run]): those that have a task of it, in the order of sources and lines.
    entries (bytes): where its tasks are; see `runs.ENTRY`.
    folder (Path): where the results go, and those of an earlier run may be.
    groups (Mapping[bytes, SplitGroup]): of the texts, by key, that have to be in one split with others.
    decisions (Mapping[bytes, list[DecisionRow]]): by the key of the text that they are about, in order.
    """

    number: int
    of: int
    runs: list[Run]
    entries: bytes
    labels: list[str]
    settings: Settings
    folder: Path
    groups: Mapping[bytes, SplitGroup]
    decisions: Mapping[bytes, list[DecisionRow]]

    def __str__(self) -> str:
        """Name the partition."""
        return f"partition {self.number} of {self.of} ({self.folder})"

    def fingerprint(self) -> str:
        """Digest all that the result depends on: the tasks, their declarations, decisions, and the settings."""
        facts = [self.settings, self.labels, sorted(self.groups.items()), sorted(self.decisions.items())]
        for run in self.runs:
            dataset = run.source.dataset
            declared = [dataset.name, dataset.labels, dataset.absent, dataset.kind, dataset.split, dataset.annotators]
            facts.append([run.source.name, *declared])
        entries = np.frombuffer(self.entries, ENTRY).copy()
        entries["offset"] = 0  # another task in the run may move it
        return hashlib.blake2b(msgspec.msgpack.encode([facts, entries.tobytes()]), digest_size=16).hexdigest()

    def texts(self) -> Iterator[tuple[bytes, list[Place]]]:
        """Yield the keys of the texts, sorted, each with the places of its tasks, in the order of sources and lines."""
        return read_texts(np.frombuffer(self.entries, ENTRY))

    def read_answer(self, place: Place, reader: RunReader) -> Answer:
        """Read an answer.

        RAISES (RuntimeError): it hasn't all spans of its row, which is a bug in this program.
        """
        run = self.runs[place.run]
        source = run.source
        file = SourceFile(source.path, source.name)
        answer = Answer(source.dataset, place.line, reader.read_task(place), file, source.number)
        if len(answer.spans) != place.spans:
            raise RuntimeError(
                f"{answer.place}: {place.spans} spans read, {len(answer.spans)} kept; please report this"
            )
        return answer


def count_partitions(runs: Sequence[Run], settings: Settings) -> int:
    """Choose how many partitions there are: a power of two, so that a few more texts don't change it."""
    texts, text_bytes = count_texts(runs)
    least = max(1, ceil(texts / settings.docs_per_partition), ceil(text_bytes / TEXT_BYTES))
    return 1 << (least - 1).bit_length()


def plan_merging(
    runs: Sequence[Run],
    count: int,
    labels: list[str],
    settings: Settings,
    folder: Path,
    groups: Mapping[bytes, SplitGroup] = {},
    decisions: Mapping[bytes, list[DecisionRow]] = {},
) -> Iterator[MergeJob]:
    """Yield the work on each of `count` partitions.

    folder (Path): that of the cache for their results.
    """
    grouped, decided = _by_partition(groups, count), _by_partition(decisions, count)
    for number, entries in enumerate(cut_runs(runs, count)):
        used, entries["run"] = np.unique(entries["run"], return_inverse=True)
        yield MergeJob(
            number=number,
            of=count,
            runs=[runs[run] for run in used.tolist()],
            entries=entries.tobytes(),
            labels=labels,
            settings=settings,
            folder=folder / f"{number:05d}",
            groups=grouped.get(number, {}),
            decisions=decided.get(number, {}),
        )


def _by_partition(values: Mapping[bytes, Value], count: int) -> dict[int, dict[bytes, Value]]:
    """Put what belongs to texts, by key, to the partitions that these are in."""
    found: dict[int, dict[bytes, Value]] = {}
    for key, value in values.items():
        found.setdefault(range_of(key, count), {})[key] = value
    return found

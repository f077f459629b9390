"""Jobs for workers: a slice of a source to be read, and a partition to be merged.

A partition is a range of text keys; a list of Parts says where its tasks are in the runs.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from labelwise.corpus.manifest import Split
from labelwise.merge.rules.answers import Answer
from labelwise.merge.rules.settings import Settings
from labelwise.merge.runs import Part, RunReader, TaskPlace, read_index
from labelwise.sources.decisions import DecisionRow
from labelwise.sources.declarations import DataSet
from labelwise.sources.files import FileStat


class Source(msgspec.Struct):
    """One of a data set's files."""

    dataset: DataSet
    path: Path


class ReadJob(msgspec.Struct):
    """A slice of a source to be read.

    number (int): the source's position among all.
    path, dataset, start, end: see `formats.read_items`; `stat` is the source's `stat_of` when this was planned.
    out (Path): runs and extract are written to this path with other suffixes.
    rename (dict[str, str]), key (str): see `declarations.DataSet`.
    """

    number: int
    path: Path
    dataset: str
    start: int
    end: int | None
    stat: list[FileStat]
    out: Path
    normalize: bool
    split_by: str
    rename: dict[str, str]
    key: str

    def __str__(self) -> str:
        """Name the source."""
        return str(self.path)


class SplitGroup(NamedTuple):
    """Nearly equal texts, which stay in one split: the key that it is hashed from, or the split that one declares."""

    unit: bytes
    declared: Split | None


class MergeJob(msgspec.Struct):
    """A partition to be merged.

    number, of (int): the position of the partition, and how many there are; a power of two, so its keys begin alike.
    parts (list[Part]): where its tasks are, in the order of sources and lines.
    folder (Path): where the results go, and those of an earlier run may be.
    groups (Mapping[bytes, SplitGroup]): of the texts, by key, that have to be in one split with others.
    decisions (Mapping[bytes, list[DecisionRow]]): by the key of the text that they are about, in order.
    """

    number: int
    of: int
    parts: list[Part]
    sources: list[Source]
    labels: list[str]
    settings: Settings
    folder: Path
    groups: Mapping[bytes, SplitGroup] = {}
    decisions: Mapping[bytes, list[DecisionRow]] = {}

    def __str__(self) -> str:
        """Name the partition."""
        return f"partition {self.number} of {self.of} ({self.folder})"

    def fingerprint(self) -> str:
        """Digest all that the result depends on: the tasks, their declarations, decisions, and the settings."""
        facts = [self.settings, self.labels, sorted(self.groups.items()), sorted(self.decisions.items())]
        digest = hashlib.blake2b(msgspec.msgpack.encode(facts), digest_size=16)
        for part in self.parts:
            dataset, path = msgspec.structs.astuple(self.sources[part.source])
            declared = [dataset.name, dataset.labels, dataset.absent, dataset.kind, dataset.split, dataset.annotators]
            digest.update(msgspec.msgpack.encode([part.base, path.name, *declared]))
            digest.update(read_index(part.path, part.first, part.count).tobytes())
        return digest.hexdigest()


def read_answer(place: TaskPlace, job: MergeJob, reader: RunReader) -> Answer:
    """Read an answer.

    RAISES (RuntimeError): it hasn't all spans of its row, which is a bug in this program.
    """
    source = job.sources[place.part.source]
    answer = Answer(source.dataset, place.line, reader.read_task(place), source.path, place.part.source)
    if len(answer.spans) != place.spans:
        raise RuntimeError(f"{answer.place}: {place.spans} spans read, {len(answer.spans)} kept; please report this")
    return answer

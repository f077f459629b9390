"""Find texts that are parts of another dataset's texts, such as the sentences of its documents.

Only datasets whose median text is at most a third as long are searched. A part has four words or more, and begins with
a word of its document. Parts are on disk; a process that reads documents holds 52 bytes for each, and 56 for each pair.
"""

import hashlib
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np

from labelwise.merge.near_duplicates import PAIR, PLACE, Rows, Text, find_place, write_place
from labelwise.merge.partition import MergeJob
from labelwise.merge.read import ReadCounts, Source

MIN_LENGTH_RATIO = 3  # times as long as a text that may be a part
BEGIN = 4  # words of a text to look for
WORD = re.compile(r"\S+")
PART = np.dtype([*PLACE, ("begin", "<u4"), ("length", "<u4"), ("digest", "<u8"), ("dataset", "<u4")])


# By the datasets of the parts and of their documents: documents with their parts (PAIR), by documents' keys.
Parts = Mapping[tuple[str, str], Rows]


class PartsJob(msgspec.Struct, frozen=True):
    """A range of keys whose texts are written as parts, or searched for parts of the datasets `wholes`."""

    merge: MergeJob
    wholes: Mapping[str, Sequence[str]]
    names: Sequence[str]
    files: Sequence[Path] = ()

    def __str__(self) -> str:
        return str(self.merge)

    def texts(self, folder: Path) -> Iterator[tuple[str, Text, set[str]]]:
        """Yield (text, place, datasets)."""
        for text in self.merge.texts(folder):
            names = {self.merge.sources[source].dataset.name for source, _ in text.tasks()}
            yield text.text, find_place(self.merge, text), names


def compare_lengths(sources: Sequence[Source], read: Sequence[ReadCounts]) -> dict[str, list[str]]:
    """List, by dataset, datasets that may have parts of its texts, by median lengths."""
    lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for source, counts in zip(sources, read, strict=True):
        lengths[source.dataset.name] += counts.lengths
    medians = {name: _median(counts) for name, counts in lengths.items() if counts}
    shorter = {
        longer: [name for name, length in medians.items() if MIN_LENGTH_RATIO * length <= size]
        for longer, size in medians.items()
    }
    return {longer: names for longer, names in shorter.items() if names}


def _median(lengths: Counter[int]) -> int:
    values = sorted(lengths)
    seen = accumulate(lengths[value] for value in values)
    return next(value for value, n in zip(values, seen, strict=True) if 2 * n > lengths.total())


def write_parts(job: PartsJob, folder: Path) -> str:
    """Write the possible parts in a range of texts; return the file's name."""
    file_name = f"parts-{job.merge.number}"
    with (folder / file_name).open("wb") as file:
        for text, place, names in job.texts(folder):
            if row := describe_part(text, place):
                numbered = [(*row, number) for number, name in enumerate(job.names) if name in names]
                file.write(np.array(numbered, PART).tobytes())
    return file_name


def describe_part(text: str, place: Text) -> tuple[bytes | int, ...] | None:
    """Return a text's values for a row of PART, except the dataset; None if it is too short."""
    content = text.strip()
    words = WORD.findall(content)[:BEGIN]
    return (*write_place(place), _hash_words(words), len(content), _digest(content)) if len(words) == BEGIN else None


def contained(text: str, parts: np.ndarray, begins: np.ndarray) -> Iterator[tuple[int, Rows]]:
    """Yield number and row (PART, sorted by `begin`) of the parts in a text, also of itself."""
    words = [*WORD.finditer(text)]
    windows = zip(*(words[first:] for first in range(BEGIN)), strict=False)
    hashes = np.array([_hash_words([word[0] for word in window]) for window in windows], np.uint32)
    left, right = np.searchsorted(begins, hashes), np.searchsorted(begins, hashes, "right")
    for at in np.flatnonzero(left < right).tolist():
        start = words[at].start()
        digests: dict[int, int] = {}
        for number, part in enumerate(parts[left[at] : right[at]], left[at]):
            length = int(part["length"])
            if length not in digests:
                digests[length] = _digest(text[start : start + length])
            if digests[length] == part["digest"]:
                yield number, part


def search_parts(job: PartsJob, folder: Path) -> Parts:
    """Find the parts of the documents in a range of texts."""
    parts = np.concatenate([np.fromfile(file, PART) for file in job.files])
    parts.sort(order="begin")
    begins = parts["begin"].copy()
    tables: defaultdict[tuple[str, str], list[Rows]] = defaultdict(list)
    for text, place, names in job.texts(folder):
        if not (wholes := names & job.wholes.keys()):
            continue
        inside: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for number, part in contained(text, parts, begins):
            dataset = job.names[int(part["dataset"])]
            for whole in wholes if part["key"].tobytes() != place.key else ():
                if dataset in job.wholes[whole]:
                    inside[dataset, whole].add(number)
        for datasets, numbers in inside.items():
            pairs = np.empty(len(numbers), PAIR)
            pairs["one"], pairs["other"] = write_place(place), parts[sorted(numbers)][[name for name, _ in PLACE]]
            tables[datasets].append(pairs)
    return {datasets: np.concatenate(pairs) for datasets, pairs in tables.items()}


def _hash_words(words: Sequence[str]) -> int:
    return zlib.crc32(" ".join(words).encode())


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

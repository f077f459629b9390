"""Where every task lies: (key of its text, data set, place in the file), without holding the tasks.

One entry is 30 bytes, so a million tasks are 30 MB. Entries are sorted by key, data set and line: the tasks of one text
lie together, and equal inputs give an equal order, whatever order the files were read in.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.books import Problem
from labelwise.prodigy import read_rows

KEY_BYTES = 12
ENTRY = np.dtype([("key", f"S{KEY_BYTES}"), ("dataset", "<u2"), ("line", "<u4"), ("offset", "<u8"), ("length", "<u4")])

Entries = npt.NDArray[np.void]
# Maps a function over its arguments in order, like the built-in `map` or an Executor's.
Mapper = Callable[..., Iterable[Any]]


def text_key(text: str) -> bytes:
    """Digest a text; 95 bits vary, so that among a million texts the chance of two with one key is 1 in 10^17."""
    # The last bit is set since numpy strips zero bytes from the end of a string.
    digest = hashlib.blake2b(text.encode("utf8", "surrogatepass"), digest_size=KEY_BYTES).digest()
    return digest[:-1] + bytes([digest[-1] | 1])


def index_file(number: int, name: str, path: Path) -> tuple[Entries, list[Problem]]:
    """Index one data set.

    number (int): the data set's position among those declared.
    RETURNS (tuple): its entries in file order, and its rows without a text.
    """
    entries = bytearray()
    problems = []
    for row in read_rows(path):
        if row.text is None:
            problems.append(Problem(name, row.line, row.problem))
        else:
            entry = np.array((text_key(row.text), number, row.line, row.offset, row.length), dtype=ENTRY)
            entries += entry.tobytes()
    return np.frombuffer(bytes(entries), dtype=ENTRY), problems


def build_index(paths: Sequence[tuple[str, Path]], run: Mapper = map) -> tuple[Entries, list[Problem]]:
    """Index all data sets.

    paths (Sequence[tuple[str, Path]]): name and file of each, in the order of declaration.
    run (Mapper): what maps `index_file` over them.
    RETURNS (tuple): all entries, sorted, and the problems in the order of data set and line.
    """
    parts: list[Entries] = []
    problems: list[Problem] = []
    names, files = zip(*paths, strict=True)
    for entries, failed in run(index_file, range(len(paths)), names, files):
        parts.append(entries)
        problems += failed
    index = np.concatenate(parts)
    index.sort(order=["key", "dataset", "line"])
    return index, problems


def count_texts(index: Entries) -> int:
    """Count the distinct keys of a sorted index."""
    return int((index["key"][1:] != index["key"][:-1]).sum()) + 1 if len(index) else 0


def split_index(index: Entries, parts: int) -> list[Entries]:
    """Cut a sorted index into `parts` ranges of keys of about equal width; a key's entries stay together."""
    bounds = [(part << 64) // parts for part in range(1, parts)]
    cuts = np.searchsorted(index["key"], [bound.to_bytes(8, "big") for bound in bounds])
    return np.split(index, cuts)


def group_by_text(index: Entries) -> Iterator[tuple[bytes, list[tuple[Any, ...]]]]:
    """Yield each key with its entries, as tuples in the order of ENTRY."""
    for key, entries in groupby(index.tolist(), key=itemgetter(0)):
        yield key, list(entries)


def count_by_dataset(index: Entries, names: Sequence[str]) -> Counter[str]:
    """Count the indexed rows of each data set."""
    counts = np.bincount(index["dataset"], minlength=len(names))
    return Counter(dict(zip(names, counts.tolist(), strict=True)))

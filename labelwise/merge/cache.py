"""The cache of a merge, the folder `.cache` in the corpus: what a later run takes from an earlier one.

It has one folder, named after the digest of the code that made it; what other code left there is deleted.
"""

import platform
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import spacy

from labelwise.common.code import digest_code
from labelwise.common.outputs import remove

CACHE = ".cache"
# The folders of this package that a merge depends on.
CODE = ("common", "corpus", "merge", "sources")


class Cache(NamedTuple):
    """The folders of the cache.

    tasks (Path): what was read from the sources; see `task_store`.
    partitions (Path): the results of partitions; see `partition`.
    signatures (Path): of texts, by partition; see `near_duplicates`.
    """

    tasks: Path
    partitions: Path
    signatures: Path


def open_cache(folder: Path) -> Cache:
    """Make the cache that this code may use; what other code left is deleted."""
    versions = [spacy.__version__, np.__version__, msgspec.__version__, platform.python_version()]
    own = folder / digest_code(CODE, versions)
    folder.mkdir(exist_ok=True)
    for other in folder.iterdir():
        if other.is_dir() and other != own:
            remove(other)
    cache = Cache(*(own / name for name in Cache._fields))
    for path in cache:
        path.mkdir(parents=True, exist_ok=True)
    return cache


def forget_unused(folder: Path, used: set[str]) -> None:
    """Delete from a folder of the cache what this merge didn't use.

    used (set[str]): what the names of used files begin with, before the first dash or dot.
    """
    for item in folder.iterdir():
        if re.split(r"[-.]", item.name)[0] not in used:
            remove(item)

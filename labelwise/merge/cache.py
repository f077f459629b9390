"""The cache of a merge, the folder `.cache` in the corpus, from which a later run takes results of earlier ones.

It has one folder, named after the digest of the code that made it; folders of other code are deleted.
"""

import platform
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import spacy

from labelwise.base.files import digest_code, remove

CACHE = ".cache"
DIGEST = "[0-9a-f]{16}"  # as `digest_code` makes it
CODE = ("corpus", "datasets", "merge", "sources")  # the folders of this package that a merge depends on
MARK = "CACHEDIR.TAG"
# By its first line, backup programs leave the folder out: https://bford.info/cachedir
MARKED = b"Signature: 8a477f597d28d172789f06886806bc55\n# A cache of labelwise's merge. Delete it whenever you like.\n"


class Cache(NamedTuple):
    """The folders of the cache.

    tasks (Path): of the sources; see `runs`.
    partitions (Path): the results of partitions; see `partition`.
    signatures (Path): of texts, by partition; see `near_duplicates`.
    """

    tasks: Path
    partitions: Path
    signatures: Path


def open_cache(folder: Path) -> Cache:
    """Make the cache that this code may use; those of other code are deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_bytes(MARKED)
    own = digest_code(CODE, [spacy.__version__, np.__version__, msgspec.__version__, platform.python_version()])
    for other in folder.iterdir():
        if re.fullmatch(DIGEST, other.name) and other.name != own:
            remove(other)
    cache = Cache(*(folder / own / name for name in Cache._fields))
    for path in cache:
        path.mkdir(parents=True, exist_ok=True)
    return cache


def forget_unused(folder: Path, used: set[str]) -> None:
    """Delete from a folder of the cache all files that this merge didn't use.

    used (set[str]): the names of used files, up to the first dash or dot.
    """
    for item in folder.iterdir():
        if re.split(r"[-.]", item.name)[0] not in used:
            remove(item)

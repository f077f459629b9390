"""Digests of a pipeline's training and dev texts, to test whether it has seen a text.

The file is a numpy array: the first 8 bytes of the texts' keys, sorted. Its owner can test whether a text was in
training, so a wheel has it only on request.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from labelwise.corpus.docbin_reader import read_docs
from labelwise.corpus.record import LEARNED, find_trained

SEEN_TEXTS = "seen_texts.npy"


def collect_seen(corpus: Path) -> np.ndarray:
    """Collect the digests of a corpus's train and dev."""
    return np.unique(np.fromiter((digest(doc.key) for doc in read_docs(corpus, *LEARNED)), np.uint64))


def digest(key: str) -> np.uint64:
    """Return the first 8 bytes of a hexadecimal key as a number."""
    return np.uint64(int(key[:16], 16))


def has_seen(seen: np.ndarray, key: str) -> bool:
    """Return whether a text's hexadecimal key is among sorted digests."""
    place = np.searchsorted(seen, digest(key))
    return bool(digest(key) in seen[place : place + 1])


def write_seen(pipeline: Path, seen: np.ndarray) -> None:
    """Write the file into a pipeline's folder; equal texts give equal bytes."""
    np.save(pipeline / SEEN_TEXTS, seen)


def find_seen(pipeline: Path, digests: Mapping[str, str]) -> Path | None:
    """Find a pipeline's file, or that of the trained one with the same recognizer; None without."""
    files = (folder / SEEN_TEXTS for folder in chain([pipeline], find_trained(pipeline, digests)))
    return next(filter(Path.is_file, files), None)

"""How often each of many things occurs, in 16 bytes for each, however long its name."""

import numpy as np

WAITING = 2**20  # keys that are held before they are counted
MOST_ARRAYS = 2**14  # of them


class Counts:
    """Counts of keys of 64 bits, such as digests; two things share one with a chance of 1 in 10^7 for a million."""

    def __init__(self) -> None:
        """Start empty."""
        self.keys = np.zeros(0, np.uint64)
        self.counts = np.zeros(0, np.int64)
        self._waiting: list[np.ndarray] = []
        self._size = 0

    def add(self, keys: np.ndarray) -> None:
        """Count keys, each as often as it is there."""
        if not len(keys):
            return
        self._waiting.append(keys.astype(np.uint64, copy=False))
        self._size += len(keys)
        if self._size > WAITING or len(self._waiting) > MOST_ARRAYS:
            self._count()

    def of(self, keys: np.ndarray) -> np.ndarray:
        """Give the count of each key, 0 if it was never added."""
        self._count()
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.counts[places], 0)

    def _count(self) -> None:
        if not self._size:
            return
        keys, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._size = [], 0
        places = np.searchsorted(self.keys, keys)
        known = np.zeros(len(keys), bool)
        inside = places < len(self.keys)
        known[inside] = self.keys[places[inside]] == keys[inside]
        self.counts[places[known]] += counts[known]
        self.keys = np.insert(self.keys, places[~known], keys[~known])
        self.counts = np.insert(self.counts, places[~known], counts[~known])

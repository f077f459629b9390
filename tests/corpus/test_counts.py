"""Counts of 64-bit keys, against a Counter."""

import random
from collections import Counter

import numpy as np
import pytest

from labelwise.corpus import counts as module
from labelwise.corpus.counts import Counts


@pytest.mark.parametrize("waiting", [0, 7, 10**6])
def test_counts_are_those_of_a_counter(waiting, monkeypatch):
    """Keys beyond 63 bits and 0 among them; counted at once, now and then, or at the end."""
    monkeypatch.setattr(module, "WAITING", waiting)
    rng = random.Random(0)
    pool = [0, 1, 2**63, 2**64 - 1, *(rng.getrandbits(64) for _ in range(50))]
    counts, expected = Counts(), Counter()
    for _ in range(40):
        keys = rng.choices(pool, k=rng.randrange(6))
        counts.add(np.array(keys, np.uint64))
        expected.update(keys)
        asked = rng.choices(pool, k=5)
        assert counts.of(np.array(asked, np.uint64)).tolist() == [expected[key] for key in asked]
    assert dict(zip(counts.keys.tolist(), counts.counts.tolist(), strict=True)) == dict(expected)


def test_nothing_was_counted():
    assert Counts().of(np.array([5, 0], np.uint64)).tolist() == [0, 0]
    assert Counts().of(np.zeros(0, np.uint64)).tolist() == []

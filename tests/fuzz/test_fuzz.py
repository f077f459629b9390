"""What fuzzing runs, on some hundred inputs of each kind, without a fuzzer; and what fuzzing has found."""

import random

import pytest

from tests.fuzz.mutate import any_bytes, mutated
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS

INPUTS = 100


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_read_is_an_error_that_says_so_or_balances(name):
    target, seeds = TARGETS[name], SEEDS[name]()
    # A promise that is broken is an exception. That something was read, and so could break one, is what returns.
    assert sum(target.run(seed) > 0 for seed in seeds) > len(seeds) / 2
    rng = random.Random(0)
    read = []
    for _ in range(INPUTS):
        data = rng.choice(seeds)
        for _ in range(rng.randrange(1, 4)):
            data = mutated(target.change, data, rng.randrange(2**32), any_bytes(rng), head=target.head)
        read.append(target.run(data))
    assert any(read), "each change left nothing to read"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0\0", b"\xff" * 40, b"\n" * 9, b"{}", b"[]", b"\0\0\0\xef\xbb\xbf"]
)
def test_next_to_nothing_is_read(name, data):
    assert TARGETS[name].run(data) <= 1

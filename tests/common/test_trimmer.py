"""Freed memory goes back to the system."""

import os

import numpy as np
import psutil
import pytest

from labelwise.common.memory import Trimmer

MB = 2**20


pytestmark = pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""), reason="not glibc"
)


def rss() -> int:
    return psutil.Process().memory_info().rss


def test_what_lies_between_blocks_in_use_is_given_back():
    """Every second block of a heap is freed: what is above keeps the system from having it."""
    trimmer = Trimmer(every=1)
    trimmer.look()
    before = rss()
    blocks = [np.ones(64_000, np.uint8) for _ in range(4 * before // 64_000)]  # small enough for the heap
    del blocks[::2]
    held = rss()
    assert held > 3 * before
    assert trimmer.look()
    kept = 2 * before
    assert rss() < before + 1.5 * kept < held + before
    assert not trimmer.look()  # nothing has grown since
    del blocks


def test_it_does_so_now_and_then():
    trimmer = Trimmer(every=3)
    assert [trimmer.look() for _ in range(7)] == [False, False, True, *[False] * 4]

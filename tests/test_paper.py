"""Costs on paper: those that made the seconds are found again."""

import pytest

from benchmarks.paper_costs import Amounts, fit

MERGES = [
    Amounts(100, 500, 1, 5, 5),
    Amounts(100, 2000, 1, 20, 20),
    Amounts(300, 1500, 2, 10, 5),
    Amounts(100, 500, 8, 40, 5),
    Amounts(100, 500, 1, 90, 90),
]


def test_costs_are_found_again():
    seconds = [3 * one.texts + 2 * one.tasks + 50 * one.partitions + 7 * one.ranges for one in MERGES]
    found = fit(MERGES, seconds, ("texts", "tasks", "partitions", "ranges"))
    assert found == pytest.approx((3, 2, 50, 7, 0))


def test_no_cost_is_less_than_nothing():
    seconds = [2 * one.tasks - one.ranges for one in MERGES]
    found = fit(MERGES, seconds, ("tasks", "ranges"))
    assert found.ranges == 0
    assert found.tasks > 1.5

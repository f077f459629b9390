"""How many workers a merge can have."""

import pytest

from labelwise.common.errors import InputError
from labelwise.merge import plan
from labelwise.merge.plan import ALONE, PER_WORKER, plan_workers

MB = 2**20


@pytest.mark.parametrize(
    ("beyond", "most", "workers"),
    [(ALONE, 8, 1), (2 * PER_WORKER - 1, 8, 1), (2 * PER_WORKER, 8, 2), (5 * PER_WORKER, 8, 5), (5 * PER_WORKER, 2, 2)],
)
def test_workers_are_as_many_as_fit(monkeypatch, beyond, most, workers):
    monkeypatch.setattr(plan, "tree_pss", lambda pid: 100 * MB)
    assert plan_workers(100 * MB + beyond, most) == workers


def test_the_least_is_named(monkeypatch):
    monkeypatch.setattr(plan, "tree_pss", lambda pid: 100 * MB)
    with pytest.raises(InputError, match=f"memory 50MB: the least possible is {100 + ALONE // MB}MB"):
        plan_workers(50 * MB, 2)

import numpy as np
import pytest

from labelwise.check.finding import Finding, rank, say_why
from labelwise.check.findings import Correction

HERE, THERE = (3, 4, 0), (2, 4, 0)


@pytest.mark.parametrize(
    ("current", "proposed", "expected"),
    [
        (None, HERE, ("'cat' may be A", "elsewhere it is 7 times", "isn't once")),
        (HERE, None, ("'cat' may not be A", "elsewhere it isn't 7 times", "is once")),
        (HERE, (3, 4, 1), ("'cat' may be B", "elsewhere it is B 7 times", "A once")),
        (HERE, THERE, ("'cat' may have to be 'big cat'", "elsewhere 'big cat' is A 7 times", "'cat' once")),
    ],
)
def test_what_speaks_for_a_finding_is_said_and_nothing_else(current, proposed, expected):
    better = {HERE: ("cat", "A"), THERE: ("big cat", "A"), (3, 4, 1): ("cat", "B")}[proposed or current]
    change, so, not_so = expected
    agrees = "a pipeline trained without this text agrees"
    for counts, reasons in {
        (0, 0, False): "",
        (0, 1, False): "",
        (0, 1, True): f": {agrees}",
        (7, 0, False): f": {so}",
        (7, 1, False): f": {so} and {not_so}",
        (7, 1, True): f": {so} and {not_so}; {agrees}",
    }.items():
        assert say_why(Correction(current, proposed, 1.0, *counts), "cat", "A", *better) == change + reasons


def test_where_findings_are_many_each_of_them_says_less():
    """A has about 100 findings among 200 spans, B two. Findings more likely wrong than right aren't listed."""
    scores = [("A", 9.0)] * 99 + [("A", 12.0), ("B", 8.0), ("B", 2.0), ("C", 0.0), ("C", -0.1)]
    found = [Finding(score, "spurious", label, *[""] * 10) for label, score in scores]
    best = rank(found, dict.fromkeys("ABC", 200))
    less = np.log(50)
    assert "".join(one.label for one in best) == "AB" + 99 * "A" + "BC"
    assert [one.score for one in best[:3]] == pytest.approx([12 - less, 8, 9 - less], abs=1e-4)

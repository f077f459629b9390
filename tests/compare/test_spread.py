"""How far revisions that differ in the seed alone are apart."""

import statistics

import pytest

from labelwise.common.errors import InputError
from labelwise.compare.revisions import Revision
from labelwise.compare.spread import spread
from labelwise.evaluate.scores import AllScores, Metrics, Scores


def revision(name: str, f: dict[str, float | None], micro: float, digest: str = "same") -> Revision:
    labels = {label: Scores(value, value, value, 9) for label, value in f.items()}
    scores = AllScores(micro, micro, micro, 9, macro=Scores(0.5, 0.5, 0.5), labels=labels)
    return Revision(name, Metrics(1, scores, scores, texts_digest=digest), None)


def test_mean_deviation_least_and_greatest():
    micro = [0.9, 0.92, 0.97]
    found = spread([revision(f"seed-{n}", {"B": f, "A": 0.1, f"only-{n}": 1.0}, f) for n, f in enumerate(micro)])
    assert list(found) == ["A", "B", "all (micro)", "mean (macro)"]
    assert (
        found["B"]
        == found["all (micro)"]
        == pytest.approx((sum(micro) / 3, statistics.variance(micro) ** 0.5, 0.9, 0.97))
    )
    assert found["A"] == pytest.approx((0.1, 0.0, 0.1, 0.1))


def test_a_label_that_one_of_them_has_no_score_for_has_none():
    assert spread([revision("a", {"A": None}, 0.5), revision("b", {"A": 0.5}, 0.5)])["A"] is None


@pytest.mark.parametrize("names", [["a"], ["a", "a"], []])
def test_two_at_least_each_once(names):
    with pytest.raises(InputError, match="give two revisions or more, each once"):
        spread([revision(name, {"A": 0.5}, 0.5) for name in names])


def test_test_sets_that_differ_are_refused():
    with pytest.raises(InputError, match="a, b: the test sets differ"):
        spread([revision("a", {"A": 0.5}, 0.5), revision("b", {"A": 0.5}, 0.5, "other")])

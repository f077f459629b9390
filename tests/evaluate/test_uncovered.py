"""What is predicted where nobody looked, beside what is found where somebody did."""

import pytest

from labelwise.evaluate.uncovered import Rates, implausible, is_plausible


def test_rates_are_those_of_the_words():
    rates = Rates()
    rates.add_known("one two three four", ["A", "B"], ["A", "A", "B"], ["A"])
    rates.add_known("five six seven eight", ["A"], ["A"], ["A", "A"])
    rates.add_unknown("nine ten", ["A", "C"], ["x", "y"], ["A", "C"])
    found = {(rate.dataset, rate.label): rate for rate in rates.rates()}
    assert set(found) == {("x", "A"), ("y", "A")}  # C is known nowhere
    rate = found["x", "A"]
    assert (rate.words, rate.predicted) == (2, 1)
    assert rate.per_1000 == pytest.approx(500)
    assert rate.known_per_1000 == pytest.approx(3 / 8 * 1000)
    assert rate.gold_per_1000 == pytest.approx(3 / 8 * 1000)


@pytest.mark.parametrize(
    ("here", "known", "plausible"),
    [
        ((1000, 100), (1000, 100), True),
        ((1000, 190), (1000, 100), True),
        ((1000, 60), (1000, 100), True),
        ((10000, 4000), (10000, 1000), False),
        ((10000, 100), (10000, 1000), False),
        ((10000, 0), (10000, 1000), False),
        ((100, 0), (10000, 100), True),  # one would be expected
        ((10000, 3), (1000, 0), True),  # may be chance
        ((10000, 300), (1000, 0), False),
    ],
)
def test_what_is_plausible(here, known, plausible):
    counts = [{"words": words, "predicted": predicted} for words, predicted in (here, known)]
    assert is_plausible(*counts) == plausible


def test_what_is_not_plausible_is_grouped_by_data_set():
    rates = Rates()
    rates.add_known("word " * 1000, ["A", "B"], ["A"] * 200 + ["B"] * 10, [])
    rates.add_unknown("word " * 1000, ["A", "B"], ["x", "y"], ["B"] * 12)
    rates.add_unknown("word " * 1000, ["A"], ["z"], ["A"] * 150)
    assert {name: [rate.label for rate in found] for name, found in implausible(rates.rates()).items()} == {
        "x": ["A"],
        "y": ["A"],
    }

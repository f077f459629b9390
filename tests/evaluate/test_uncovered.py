"""What is predicted where nobody looked, beside what is found where somebody did."""

import pytest

from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.uncovered import Rates, implausible, is_plausible


def doc_of(text: str, predicted: str, *, gold: str = "", uncovered: str = "", datasets: list[str] | None = None):
    """A text with a span for each letter, which is its label."""
    found, true = ([(place, place + 1, label) for place, label in enumerate(labels)] for labels in (predicted, gold))
    unknown = dict.fromkeys(uncovered, "none")
    return PredictedDoc("k", text, found, true, true, uncovered=unknown, datasets=datasets or [])


def test_rates_are_those_of_the_words():
    rates = Rates()
    rates.add(doc_of("one two three four", "AAB", gold="A"), "AB")
    rates.add(doc_of("five six seven eight", "A", gold="AA"), "A")
    rates.add(doc_of("nine ten", "AC", uncovered="AC", datasets=["x", "y"]), "AC")
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
    rates.add(doc_of("word " * 1000, "A" * 200 + "B" * 10), "AB")
    rates.add(doc_of("word " * 1000, "B" * 12, uncovered="AB", datasets=["x", "y"]), "AB")
    rates.add(doc_of("word " * 1000, "A" * 150, uncovered="A", datasets=["z"]), "A")
    assert {name: [rate.label for rate in found] for name, found in implausible(rates.rates()).items()} == {
        "x": ["A"],
        "y": ["A"],
    }

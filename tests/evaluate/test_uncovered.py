"""What is predicted where nobody looked, beside what is found where somebody did."""

import msgspec
import pytest

from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.tables import Tables, write_rows
from labelwise.evaluate.uncovered import find_implausible, is_plausible


def doc_of(text: str, predicted: str, *, gold: str = "", uncovered: str = "", datasets: list[str] | None = None):
    """A text with a span for each letter, which is its label."""
    found, true = ([(place, place + 1, label) for place, label in enumerate(labels)] for labels in (predicted, gold))
    unknown = dict.fromkeys(uncovered, "none")
    return PredictedDoc("k", text, found, true, true, uncovered=unknown, datasets=datasets or [])


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


def test_what_is_not_plausible_is_told_by_data_set(tmp_path):
    docs = [
        doc_of("word " * 1000, "A" * 200 + "B" * 10, gold="A" * 100),
        doc_of("word " * 1000, "B" * 12, uncovered="AB", datasets=["x", "y"]),
        doc_of("word " * 1000, "A" * 150, uncovered="A", datasets=["z"]),
    ]
    tables = Tables.of(tmp_path)
    write_rows(((msgspec.structs.replace(doc, key=str(n)), {}) for n, doc in enumerate(docs)), "test", "AB", tables)
    rates = find_implausible(tables)
    assert [(rate.dataset, rate.label) for rate in rates] == [("x", "A"), ("y", "A")]
    assert (rates[0].per_1000, rates[0].known_per_1000, rates[0].gold_per_1000) == (0, 200, 100), (
        "the first text alone is known"
    )

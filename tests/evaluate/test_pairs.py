import pytest

from labelwise.evaluate.pairs import pair_spans

A, B = (10, 20, "A"), (10, 20, "B")


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        # Right pairs are taken first, though another span shares as much.
        ([A, (5, 25, "A")], [A], {A: (A, "right")}),
        # Two labels on one span: the right one isn't taken for the other.
        ([A, B], [B], {B: (B, "right")}),
        # The same span with another label is before an overlap with the same one.
        ([A, (18, 30, "B")], [B], {A: (B, "label")}),
        # An overlap with the same label is before a larger one with another.
        ([(0, 10, "A"), (11, 30, "B")], [(9, 28, "A")], {(0, 10, "A"): ((9, 28, "A"), "boundaries")}),
        # The span that shares the most characters is first.
        ([(0, 10, "A"), (10, 30, "A")], [(8, 20, "A")], {(10, 30, "A"): ((8, 20, "A"), "boundaries")}),
        # Of equal ones, the first in the text.
        ([(0, 10, "A"), (10, 20, "A")], [(5, 15, "A")], {(0, 10, "A"): ((5, 15, "A"), "boundaries")}),
        # One gold span that was cut in two has one partner.
        ([(0, 10, "A")], [(0, 3, "A"), (4, 10, "A")], {(0, 10, "A"): ((4, 10, "A"), "boundaries")}),
        # Spans that touch share nothing, though both overlap a third one.
        ([(0, 3, "A"), (2, 4, "B")], [(3, 6, "A")], {(2, 4, "B"): ((3, 6, "A"), "label")}),
        # A chain: each gets the partner that is left.
        (
            [(0, 10, "A"), (12, 20, "A")],
            [(6, 15, "A"), (16, 30, "B")],
            {(0, 10, "A"): ((6, 15, "A"), "boundaries"), (12, 20, "A"): ((16, 30, "B"), "label")},
        ),
    ],
)
def test_pairs(gold, predicted, expected):
    rows = [(span, *expected.get(span, (None, "missed"))) for span in gold]
    rows += [
        (None, span, "spurious") for span in predicted if span not in [partner for partner, _ in expected.values()]
    ]
    pairs = pair_spans(gold, predicted)
    assert [(pair.gold, pair.predicted, pair.kind) for pair in pairs] == sorted(
        rows, key=lambda pair: (pair[0] or pair[1], pair[1] or pair[0])
    )
    assert pair_spans(reversed(gold), reversed(predicted)) == pairs

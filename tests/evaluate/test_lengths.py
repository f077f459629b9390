"""Scores by length, of spans and of texts."""

from labelwise.evaluate.lengths import Lengths


def figures(rows):
    return {name: (row.p, row.r, row.support) for name, row in rows.items()}


def test_spans_and_texts_are_counted_by_their_words():
    """A span of two words is found, one of six is cut to five, and one of a word is missed; one more is spurious."""
    lengths = Lengths()
    text = "big cat sat on one two three four five six"
    cat, six = (0, 7, "A"), (15, len(text), "A")
    lengths.add(text, {cat, (15, len(text) - 4, "A")}, {cat, six, (8, 11, "B")})
    assert figures(lengths.texts()) == {"0 to 49": (0.5, 1 / 3, 3)}
    lengths.add("word " * 400, {(0, 4, "A")}, set())
    assert figures(lengths.spans()) == {
        "1": (0, 0, 1),
        "2": (1, 1, 1),
        "4 to 5": (0, 0, 0),
        "6 or more": (0, 0, 1),
    }
    assert list(lengths.texts()) == ["0 to 49", "400 or more"]


def test_nothing_has_no_lengths():
    assert Lengths().spans() == Lengths().texts() == {}

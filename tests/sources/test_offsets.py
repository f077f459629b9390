import unicodedata

import pytest

from labelwise.sources.offsets import READINGS, choose_counted, ends_at_words

NGUYEN = unicodedata.normalize("NFD", "Nguyễn")  # eight code points
GERMANY = "\U0001f1e9\U0001f1ea"


@pytest.mark.parametrize(
    ("reading", "text", "offsets", "expected"),
    [
        ("code-points", "cat", (0, 9), (0, 9)),
        ("inclusive", "a cat", (2, 4), (2, 5)),
        ("one-based", "a cat", (3, 6), (2, 5)),
        ("utf-16", "\U0001f600 cat", (3, 6), (2, 5)),
        ("utf-16", "\U0001f600 cat", (1, 6), None),  # between two units of a character
        ("utf-16", "cat\U0001f600", (0, 5), (0, 4)),
        ("bytes", "é cat", (3, 6), (2, 5)),
        ("bytes", "é cat", (1, 6), None),
        ("graphemes", f"{NGUYEN} cat", (0, 6), (0, 8)),
        ("graphemes", NGUYEN, (0, 6), (0, 8)),
        ("graphemes", f"{GERMANY}{GERMANY} cat", (3, 6), (5, 8)),
        ("graphemes", "\U0001f468\U0001f3fb\u200d\U0001f692 cat", (2, 5), (5, 8)),
        ("graphemes", "a\r\ncat", (2, 5), (3, 6)),
        ("graphemes", "cat", (0, 4), (0, 4)),
        ("graphemes", f"{GERMANY} cat", (0, 9), None),
    ],
)
def test_offsets_are_mapped_to_code_points(reading, text, offsets, expected):
    assert READINGS[reading](text, offsets) == expected


@pytest.mark.parametrize(
    ("text", "offsets", "ends"),
    [
        ("a cat.", (2, 5), True),
        ("a cat.", (2, 4), False),
        ("a cat.", (1, 5), False),
        ("a cat.", (2, 7), False),
        ("a cat.", None, False),
        (f"{NGUYEN} Van", (0, 8), True),
        (f"{NGUYEN} Van", (0, 6), False),  # before a mark
        ("東京都", (0, 2), True),  # ambiguous
        ("a_cat", (2, 5), True),
    ],
)
def test_spans_end_at_words(text, offsets, ends):
    assert ends_at_words(text, offsets) is ends


@pytest.mark.parametrize(
    ("rows", "reading"),
    [
        ([("cat", [(0, 3)]), ("é cat", [(2, 5)])], ""),
        ([("\U0001f600 cat.", [(3, 6)])], "utf-16"),
        ([("\U0001f600 cat.", [(2, 5)])] * 2 + [("\U0001f600 cat.", [(3, 6)])], "code-points"),
        ([(f"{NGUYEN} Van", [(0, 6), (7, 10)])], "graphemes"),
        ([(f"{NGUYEN} Van", [(0, 8), (9, 12)])], "utf-16"),  # as code points do here
        ([("\U0001f600東京都", [(2, 4)])], "utf-16"),  # by default
    ],
)
def test_most_spans_say_how_their_file_counts(rows, reading):
    assert choose_counted(rows) == reading

import re

import pytest

from labelwise.sources.brat_offsets import (
    choose_reading,
    cuts_character,
    offset_table,
    possible_readings,
    says,
    to_code_points,
)


@pytest.mark.parametrize(
    ("text", "reading", "count"),
    [
        ("x\r\ny z\r\n", "crlf", lambda text: len(text.replace("\r\n", "\n"))),
        ("x\ny z\r\n\nw", "lf as two", lambda text: len(re.sub(r"(?<!\r)\n", "\r\n", text))),
        ("x \U0001f600\U0001f600 z", "utf16", lambda text: len(text.encode("utf-16-le")) // 2),
        ("\ufeffx y", "bom", lambda text: len(text.removeprefix("\ufeff"))),
    ],
)
def test_every_span_survives_another_way_of_counting(text, reading, count):
    table = offset_table(text, [reading])
    assert len(table) == count(text)
    first = text.startswith("\ufeff")
    for start in range(first, len(text)):
        for end in range(start + 1, len(text) + 1):
            if text[start:end][0] not in "\r\n" and text[end - 1] not in "\r\n":
                assert to_code_points([(count(text[:start]), count(text[:end]))], table) == [(start, end)]


def test_a_span_behind_the_end_stays_there():
    fragments = [(0, 2), (3, 5)]
    assert to_code_points(fragments, offset_table("a\r\nb", ["crlf"])) == fragments
    assert not says("a\r\nb", fragments, None)


def test_an_offset_within_a_surrogate_pair_is_no_agreement_with_utf_16():
    """That would take a face into a span that begins or ends in the middle of it."""
    text = "\U0001f600\U0001f600cat"
    table = offset_table(text, ["utf16"])
    assert [cuts_character(text, [(start, end)], table) for start, end in ((1, 4), (0, 3), (0, 4), (4, 7))] == [
        True,
        True,
        False,
        False,
    ]
    wrong = [([(1, 4)], "\U0001f600\U0001f600"), ([(0, 3)], "\U0001f600\U0001f600")]
    assert choose_reading(text, wrong) == (None, "")
    assert choose_reading(text, [*wrong, ([(4, 7)], "cat")])[1] == "utf16"


def test_only_readings_that_differ_are_tried():
    assert list(possible_readings("plain")) == []
    assert list(possible_readings("plain\n")) == [("lf as two",)]
    assert list(possible_readings("a\r\n")) == [("crlf",)]
    assert list(possible_readings("\ufeff\U0001f600")) == [("utf16",), ("bom",), ("utf16", "bom")]

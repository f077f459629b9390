import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwise.sources.clean import RawSpan, clean
from labelwise.sources.normalize import Move, normalize

pieces = st.sampled_from("ab\ufb01 e\u0301\u0323\t\r\n\xa0\u1100\u1161\u11a8\u0958\u0f71\u0f73\u0f74\u0344\u0f81")


@settings(deadline=None, database=None)
@given(st.lists(pieces | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join))
def test_the_normal_form_is_that_of_unicode_with_folded_white_space(text):
    normal, starts, ends = normalize(text)
    assert normal.split() == unicodedata.normalize("NFC", text).split()
    assert normalize(normal)[0] == normal
    assert len(starts) == len(normal)
    assert (starts, ends) == (sorted(starts), sorted(ends))
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    # Two separate words have one character between them.
    assert "  " not in normal
    assert normal == normal.strip()


WIDE = "wide \ncafe\u0301 "


@pytest.mark.parametrize(
    ("text", "span", "marked"),
    [
        (WIDE, (0, 4), "wide"),
        (WIDE, (6, 11), "caf\xe9"),
        (WIDE, (9, 10), "\xe9"),  # a letter without its accent gets it
        (WIDE, (10, 11), "\xe9"),
        (WIDE, (6, 12), "caf\xe9"),  # the white space behind it is gone
        # characters that become several stay in their span
        ("\u0958\u0932\u092e x", (0, 3), "\u0915\u093c\u0932\u092e"),
        ("abcq\u0301\u0323", (3, 6), "q\u0323\u0301"),
        ("\ufb2a", (0, 1), "\u05e9\u05c1"),
    ],
)
def test_spans_are_moved(text, span, marked):
    normal, *_ = normalize(text)
    [trimmed] = clean(1, text, [RawSpan(*span, "A")]).spans
    (start, end), _ = Move(text, normal).offsets(trimmed.start, trimmed.end)
    assert normal[start:end] == marked


def test_a_span_that_cannot_be_used_stays_so():
    spans = [RawSpan(*span, "A") for span in ((0, 13), (False, True), (5, 5), (4, 6))]
    moved = Move(WIDE, normalize(WIDE)[0]).task(clean(1, WIDE, spans))
    assert (moved.spans, len(moved.unusable)) == ((), 4)

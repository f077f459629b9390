"""Ways to annotate that don't agree: words at the edges of spans."""

import re

import pytest

from labelwise.check.folds import CheckedDoc
from labelwise.check.inconsistencies import Inconsistencies
from tests.check.test_findings import LABELS, stored
from tests.corpus.test_surface_forms import count

WHY = re.compile(r"'(.+)' as the (\w+ word) of (\w): inside (\d+) times?, outside (\d+) times?")


def inconsistencies(tmp_path, *texts) -> dict:
    """The inconsistencies of some texts: by label, kind and word, both counts, and what is listed."""
    docs = stored(tmp_path, *texts)
    found = Inconsistencies(count(docs, LABELS))
    for doc in docs:
        found.count(doc)
    listed = {}
    for row in (row for doc in docs for row in found.find(CheckedDoc("train", doc))):
        word, what, label, inside, outside = WHY.fullmatch(row.why).groups()
        listed.setdefault((label, what, word), (int(inside), int(outside), []))[2].append(row)
    return listed


WITH, WITHOUT = ("wash the plate now", [(1, 3, "A")], {}), ("wash the plate now", [(2, 3, "A")], {})


@pytest.mark.parametrize(("taken_in", "left_out"), [(3, 5), (5, 3), (4, 4)])
def test_a_determiner_is_taken_in_here_and_left_out_there(taken_in, left_out, tmp_path):
    """What went the rarer way is listed, with the span as it would be the other way."""
    ((name, found),) = inconsistencies(tmp_path, *[WITH] * taken_in, *[WITHOUT] * left_out).items()
    assert (name, found[:2]) == (("A", "first word", "the"), (taken_in, left_out))
    rows = found[2]
    assert len(rows) == min(taken_in, left_out)
    full, bare = (5, 14, "A"), (9, 14, "A")
    expected = (full, bare) if taken_in <= left_out else (bare, full)
    assert {(row.current, row.proposed) for row in rows} == {expected}
    assert {row.kind for row in rows} == {"wrong boundaries"}
    assert all(row.score >= 0 for row in rows)


def test_another_head_is_no_inconsistency(tmp_path):
    """A word that belongs to one thing, and stands before another, which is never marked with it."""
    cat = ("the cat sat down", [(1, 2, "A")], {})
    hague = ("to the Hague today", [(1, 3, "A")], {})
    assert not inconsistencies(tmp_path, *[cat] * 9, *[hague] * 9)


def test_a_span_nested_in_another_is_no_inconsistency(tmp_path):
    """Where the plate is A, with and without the determiner, in one text, both are meant."""
    nested = ("wash the plate now", [(1, 3, "A"), (2, 3, "A")], {})
    assert not inconsistencies(tmp_path, *[nested] * 9)
    ((_, found),) = inconsistencies(tmp_path, *[nested] * 9, *[WITH] * 3, *[WITHOUT] * 4).items()
    assert found[:2] == (3, 4)


def test_numbers_are_one_word_and_case_does_not_count(tmp_path):
    texts = [(f"add {n} beads twice", [(1, 3, "A")], {}) for n in (5, 6, 7)]
    texts += [(f"add {n} beads twice", [(2, 3, "A")], {}) for n in (5, 6, 7)]
    assert {name: found[:2] for name, found in inconsistencies(tmp_path, *texts).items()} == {
        ("A", "first word", "0"): (3, 3),
    }


@pytest.mark.parametrize(
    ("text", "inside", "outside", "name"),
    [
        ("add 5 ml of it", (1, 3), (1, 2), ("last word", "ml")),
        ("it is red . then", (2, 4), (2, 3), ("last word", ".")),
        ("an anti - body here", (1, 4), (3, 4), ("first word", "…-")),
        ("an anti - body here", (1, 4), (1, 2), ("last word", "-…")),
    ],
)
def test_units_punctuation_and_parts_before_hyphens_are_counted(text, inside, outside, name, tmp_path):
    texts = [(text, [(*place, "A")], {}) for place in (inside, outside) for _ in range(4)]
    assert {key: both[:2] for key, both in inconsistencies(tmp_path, *texts).items()} == {("A", *name): (4, 4)}

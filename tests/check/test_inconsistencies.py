import re

import pytest

from labelwise.check.findings import CheckedDoc
from labelwise.check.inconsistencies import Inconsistencies
from tests.check.test_findings import LABELS, stored
from tests.corpus.test_surface_forms import count

WHY = re.compile(r"'(.+)' as the (\w+ word) of (\w): inside (once|\d+ times), outside (once|\d+ times)")


def number(times: str) -> int:
    return 1 if times == "once" else int(times.split(maxsplit=1)[0])


def inconsistencies(tmp_path, *texts) -> dict:
    docs = stored(tmp_path, *texts)
    inconsistencies = Inconsistencies(count(docs, LABELS))
    for doc in docs:
        inconsistencies.count(doc)
    listed = {}
    for row in (row for doc in docs for row in inconsistencies.find(CheckedDoc("train", doc))):
        word, what, label, inside, outside = WHY.fullmatch(row.why).groups()
        listed.setdefault((label, what, word), (number(inside), number(outside), []))[2].append(row)
    return listed


WITH, WITHOUT = ("wash the plate now", [(1, 3, "A")], {}), ("wash the plate now", [(2, 3, "A")], {})


@pytest.mark.parametrize(("taken_in", "left_out"), [(3, 5), (5, 3), (4, 4)])
def test_a_determiner_is_taken_in_here_and_left_out_there(taken_in, left_out, tmp_path):
    ((name, found),) = inconsistencies(tmp_path, *[WITH] * taken_in, *[WITHOUT] * left_out).items()
    assert (name, found[:2]) == (("A", "first word", "the"), (taken_in, left_out))
    rows = found[2]
    assert len(rows) == min(taken_in, left_out)
    full, bare = (5, 14, "A"), (9, 14, "A")
    expected = (full, bare) if taken_in <= left_out else (bare, full)
    assert {(row.current, row.proposed) for row in rows} == {expected}
    assert {row.kind for row in rows} == {"wrong boundaries"}
    assert all(row.score >= 0 for row in rows)


def both(text: str, *spans: tuple[int, int], times: int = 4) -> list[tuple]:
    return [(text, [(*span, "A")], {}) for span in spans for _ in range(times)]


NUMBERS = [text for n in (5, 6, 7) for text in both(f"add {n} beads", (1, 3), (2, 3), times=1)]  # are one word
NESTED = ("wash the plate now", [(1, 3, "A"), (2, 3, "A")], {})


@pytest.mark.parametrize(
    ("texts", "name", "counts"),
    [
        # a word that is part of one name, and only precedes another
        ([*both("the cat sat down", (1, 2), times=9), *both("to the Hague today", (1, 3), times=9)], None, None),
        # where the plate is A, with and without the determiner, in one text, both are meant
        ([NESTED] * 9, None, None),
        ([NESTED] * 9 + [WITH] * 3 + [WITHOUT] * 4, ("first word", "the"), (3, 4)),
        (NUMBERS, ("first word", "0"), (3, 3)),
        (both("the cat", (0, 2), (1, 2)) + both("The cat", (0, 2), (1, 2)), ("first word", "the"), (8, 8)),
        (both("add 5 ml of it", (1, 3), (1, 2)), ("last word", "ml"), (4, 4)),
        (both("it is red . then", (2, 4), (2, 3)), ("last word", "."), (4, 4)),
        (both("an anti - body here", (1, 4), (3, 4)), ("first word", "anti-"), (4, 4)),
        (both("an anti - body here", (1, 4), (1, 2)), ("last word", "-body"), (4, 4)),
    ],
)
def test_determiners_numbers_units_punctuation_and_parts_before_hyphens_are_counted(texts, name, counts, tmp_path):
    counted = {key: both[:2] for key, both in inconsistencies(tmp_path, *texts).items()}
    assert counted == ({("A", *name): counts} if name else {})


def test_a_words_own_counts_outweigh_those_of_all_words_with_a_hyphen(tmp_path):
    """Of many such words, one is always taken in, and one half of the time."""
    texts = [one for word in "bcdefghijk" for one in both(f"a {word} - kit here", (3, 4))]
    texts += [one for word in "bcdefghijk" for one in both(f"a {word} - kit here", (1, 4), times=1)]
    texts += both("a pre - kit here", (1, 4), times=6) + both("an anti - kit here", (1, 4), (3, 4), times=6)
    finder = inconsistencies(tmp_path, *texts)
    assert {key[2]: value[:2] for key, value in finder.items()} == {"anti-": (6, 6), "…-": (22, 46)}
    sure, unsure = (finder["A", "first word", word][2] for word in ("…-", "anti-"))
    assert sorted(row.surface for row in sure) == [f"{word} - kit" for word in "bcdefghijk"]
    assert max(row.score for row in unsure) < 0.3
    assert min(row.score for row in sure) > 1


def test_of_one_inconsistency_the_first_findings_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwise.check.inconsistencies.MAX_FINDINGS", 2)
    ((*_, rows),) = inconsistencies(tmp_path, *[WITH] * 4, *[WITHOUT] * 5).values()
    assert len(rows) == 2


def test_cases_of_one_question_are_a_group(tmp_path):
    groups = {row.group for _, _, rows in inconsistencies(tmp_path, *NUMBERS).values() for row in rows}
    assert groups == {"A without '0' at the start?"}
    groups = {
        row.group for _, _, rows in inconsistencies(tmp_path, *[WITH] * 5, *[WITHOUT] * 3).values() for row in rows
    }
    assert groups == {"A with 'the' at the start?"}

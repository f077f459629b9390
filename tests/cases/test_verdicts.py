"""The verdict on what comes of a case."""

import pytest

from tests.cases.verdicts import judge

ALL = {"PER": 60, "LOC": 60, "DATE": 60}
HALF = dict.fromkeys(ALL, 30)


@pytest.mark.parametrize(
    ("name", "status", "printed", "entities", "verdict"),
    [
        ("03-conll-tag-first", 0, "", ALL, "right"),
        ("03-conll-tag-first", 1, "no column has tags", {}, "unclear"),
        ("03-conll-tag-first", 0, "", HALF, "wrong and silent"),
        ("03-conll-tag-first", 0, "90 of 180 spans can't be\nused", HALF, "wrong and said"),
        ("24-label-underscore", 0, "may be one\nlabel", {"Birth Place": 30, "BIRTH_PLACE": 30}, "right"),
        ("313-conll-no-blank-lines", 0, "", ALL, "unclear"),
        ("340-half-rows-dict-entities", 0, "30 other format", HALF, "right"),
        ("340-half-rows-dict-entities", 0, "", HALF, "wrong and silent"),
        ("66-one-file-label-after-label", 1, "duplicates: union", {}, "refused with the cause"),
        ("66-one-file-label-after-label", 0, "", {"DATE": 60}, "wrong and silent"),
        ("318-html-escaped-text-as-advised", 0, "", ALL, "wrong and silent after advice"),
    ],
)
def test_a_result_is_judged_by_what_is_right(name, status, printed, entities, verdict):
    assert judge(name, status, printed, entities) == verdict

"""The page of a check."""

import re
from typing import Any

import pytest

from labelwise.common.errors import InputError
from labelwise.report.check_page import MOST, read_checked_digest, write_check_page
from tests.report.report_inputs import HOSTILE, write_json

EMPTY: dict[str, Any] = {
    "texts": 1,
    "findings": {},
    "groups": [],
    "few": {},
    "only": {},
    "without_letters": {},
    "inconsistencies": [],
    "annotators": [],
    "digest": "0123456789",
}


@pytest.fixture
def write(tmp_path):
    def page(**found: Any) -> str:
        write_check_page(EMPTY | found, tmp_path / "report" / "check.html")
        return (tmp_path / "report" / "check.html").read_text(encoding="utf8")

    return page


def group(**values: Any) -> dict[str, Any]:
    return {"label": "A", "form": "the plate", "kind": "wrong label", "proposed": "B", "findings": 1234, **values}


def test_a_check_without_findings_says_so_and_its_page_has_one_section(write):
    page = write()
    assert re.findall(r'<section id="(\w+)"', page) == ["findings"]
    assert "Nothing contradicts the rest." in page
    assert "1 text, train <code>01234567</code>" in page


def test_the_page_has_what_was_found_and_links_to_nothing_that_is_not_there(write):
    page = write(
        groups=[group(), group(label="C", proposed="", form=HOSTILE)],
        inconsistencies=[{"label": "A", "what": "first word", "word": "the", "taken_in": 40, "left_out": 7}],
        annotators=[{"label": "A", "one": "ann", "other": "bob", "texts": 20, "f": 0.5, "kappa": None}],
        few={"RARE": 3},
        only={"RARE": "dev"},
    )
    cells = re.sub(r"<[^>]*>", "|", re.sub(r"\s*\n\s*", "", page))
    cells = re.sub(r"\|+", "|", cells)
    for row in (
        "|A|the plate|wrong label|B|1,234|",
        "|A|the|first word|40|7|",
        "|A|ann|bob|20|0.500|–|",
        "|RARE: 3 spans in train|",
        "|RARE: all its spans are in dev|",
    ):
        assert row in cells
    assert HOSTILE not in page
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert links == [f"#{section}" for section in re.findall(r'<section id="(\w+)"', page)]


def test_what_a_table_has_no_room_for_is_counted(write):
    page = write(groups=[group()] * (MOST + 2))
    assert page.count("the plate") == MOST
    assert "2 more: <code>training/check/findings.tsv</code>" in page


def test_a_digest_that_cannot_be_read_is_an_error(tmp_path):
    assert read_checked_digest(tmp_path) == ""
    write_json(tmp_path / "training/check/check.json", {"digest": "abc", "texts": 3})
    assert read_checked_digest(tmp_path) == "abc"
    write_json(tmp_path / "training/check/check.json", {})
    with pytest.raises(InputError, match=r"check\.json: .*digest.*; run check again"):
        read_checked_digest(tmp_path)

"""Each number has one home, benchmarks/results: the pages are in step."""

import re

import pytest

from benchmarks import measure, tables
from tests.conftest import ROOT

PAGES = {page: (ROOT / page).read_text(encoding="utf8") for page in tables.PAGES}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_has_the_numbers_of_the_results(page):
    assert tables.update(PAGES[page]) == PAGES[page], "python -m benchmarks.tables"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_table_of_a_page_has_numbers_of_its_own(page):
    by_hand = re.sub(r"(?s)```.*?```", "", tables.BLOCK.sub("", PAGES[page]))
    assert not re.findall(r"(?m)^\|.*?\| *([\d.,]*\d%?) *\|", by_hand)


def test_all_results_are_shown():
    named = {name for page in PAGES.values() for name in re.findall(r"<!-- result: (\S+) -->", page)}
    assert named == {path.stem for path in measure.RESULTS.glob("*.json")}


@pytest.mark.parametrize("page", ['[1](results/gone.json "a / b")', '[1](results/crf.json "a / b")'])
def test_a_number_of_no_result_is_an_error(page):
    with pytest.raises(tables.NotInStep, match="json"):
        tables.update(page)

"""Each number has one home, benchmarks/results: the pages are in step."""

import re

import pytest

from benchmarks import measure, tables
from benchmarks.measure import Machine, Result
from tests.conftest import ROOT

PAGES = {page: (ROOT / page).read_text(encoding="utf8") for page in tables.PAGES}
RESULT = {"command": "c", "date": "2026-11-23", "commit": "abc1234", "machine": Machine(None, 2, None)}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A folder of results with one, `speed`."""
    for module in (measure, tables):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    columns = {"training": "", "words": ",.0f", "ratio": ".2f", "share": ".1%"}
    rows = [["one", 3770, 1.0, 0.5], ["two", 10521.4, (2.614, 2.57, 3.09), None]]
    (tmp_path / "speed.json").write_text(measure.encode(Result(**RESULT, note="Alone.", columns=columns, rows=rows)))
    return tmp_path


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


@pytest.mark.parametrize(
    ("old", "title", "new"),
    [
        ("0", "two / words", "10,521"),
        ("0.0", "two / ratio", "2.6"),
        ("7 ", "one / share", "50"),
        ("9.99", "one / ratio", "1.00"),
    ],
)
def test_a_number_in_a_sentence_keeps_its_decimals(stored, old, title, new):
    assert tables.update(f'[{old}](../results/speed.json "{title}")') == f'[{new}](../results/speed.json "{title}")'


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("<!-- result: gone -->\n<!-- end -->", "gone.json isn't there"),
        ('[1](results/gone.json "one / words")', "gone.json isn't there"),
        ('[1](results/speed.json "three / words")', '"three / words": 0 rows'),
        ('[1](results/speed.json "one / seconds")', "columns: training, words, ratio, share"),
        ('[1](results/speed.json "two / share")', "None is no number"),
    ],
)
def test_what_is_not_there_is_named(stored, page, told):
    with pytest.raises(tables.NotInStep, match=re.escape(told)):
        tables.update(page)

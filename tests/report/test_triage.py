"""The card of a label in a browser, and what somebody decides there: by mouse, and by keyboard alone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labelwise.common.keys import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.page import write_report
from tests.report.corpus_inputs import write_project, write_project_of_scripts
from tests.report.test_browser import LOWEST_CONTRAST, browser, look_with_axe  # noqa: F401  the fixture

TEXT = "😀 I saw a red cat today."
KEY = text_key(TEXT.encode()).hex()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("triage")
    write_project(root)
    write_report(root, "cpu", root / "report.html")
    return root / "report.html"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("scripts")
    write_project_of_scripts(root)
    write_report(root, "cpu", root / "report.html")
    return root / "report.html"


@pytest.fixture
def show(browser, report) -> Iterator[Callable[..., Any]]:  # noqa: F811
    """Open the report, or another, each time in a browser without memories; nothing must have gone wrong in the end."""
    wrong: list[str] = []
    contexts = []

    def open_page(place: str = "#label=ANIMAL", scheme: str = "light", script: str = "", page: Path = report) -> Any:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme))
        opened = contexts[-1].new_page()
        opened.on("console", lambda message: wrong.append(f"console: {message.text}"))
        opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        if script:
            opened.add_init_script(script)
        opened.goto(page.as_uri() + place)
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_card(browser, report, scheme):  # noqa: F811
    assert look_with_axe(browser, f"{report.as_uri()}#label=ANIMAL", scheme) == []


def download(page: Any) -> list[dict]:
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename == "decisions.jsonl"
    return [json.loads(line) for line in Path(waiting.value.path()).read_text(encoding="utf8").splitlines()]


def row(removed: list | None, added: list | None, verdict: str = "gold is wrong", answer: str = "") -> dict:
    row = {"dataset": "animal", "text": KEY, "label": "ANIMAL", "answer": answer, "verdict": verdict}
    return row | {"removed": removed, "added": added}


def test_the_table_of_scores_leads_to_the_card_and_back_again(show):
    page = show("")
    assert not page.is_visible("#card")
    page.click("#scores tbody a:text-is('ANIMAL')")
    page.locator("#card").wait_for(timeout=5000)  # a change of the address is heard a moment later
    assert page.inner_text("#card-title") == "ANIMAL"
    assert page.is_visible("#card")
    assert not page.is_visible("#scores")
    page.reload()
    assert page.inner_text("#card-title") == "ANIMAL"
    page.click("#card .back a")
    assert not page.is_visible("#card")
    assert page.is_visible("#scores")
    page.go_back()
    assert page.inner_text("#card-title") == "ANIMAL"
    page.go_back()
    assert not page.is_visible("#card")


def test_the_card_has_what_is_known_of_the_label(show):
    page = show()
    assert page.inner_text("#card-score").startswith("0.000")
    assert page.locator("#card-coverage tbody tr").all_inner_texts() == ["animal\t4\t0", "test\t1\t0"]
    assert page.locator("#card-forms li").all_inner_texts() == ["cat\n2 marked, 2 not; 1 mistake"]
    assert page.locator("#card-examples article").count() == 1
    assert [page.inner_text(f"#{way}-title") for way in ("marked", "unmarked")] == ["Marked ANIMAL: 2", "Not marked: 2"]
    marked = page.locator("#marked li").all_inner_texts()
    assert "sleeps." in marked[0]
    assert "pets/one & two.txt animal animal.jsonl:1" in marked[1]
    link = page.locator("#marked li a")
    assert link.get_attribute("href") == "https://brat.example.org/#/pets/one%20%26%20two"
    assert "THING there" in page.locator("#unmarked li").first.inner_text()


def test_a_span_is_corrected_by_keys_alone_from_the_table_to_the_file(show):
    """Its offsets count characters as Python does: before it is an emoji."""
    page = show("")
    page.locator("#scores tbody a", has_text="ANIMAL").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'card-title'")
    for _ in range(9):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#marked li')"):
            break
    for key in ("j", "w", "ArrowLeft", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert "gold is wrong: red cat" in page.locator("#marked li").nth(1).inner_text()
    (made,) = download(page)
    digest = made.pop("answer")
    assert made.items() <= row([14, 17], [10, 17]).items()
    assert [TEXT[slice(*made[name])] for name in ("removed", "added")] == ["cat", "red cat"]
    assert len(digest) == 12
    page.keyboard.press("Tab")
    page.locator("#marked li").nth(1).focus()
    for key in ("w", "n"):
        page.keyboard.press(key)
    assert [one["added"] for one in download(page)] == [None]
    page.locator("#marked li").nth(1).focus()
    page.keyboard.press("u")
    assert page.inner_text("#decided") == "0 decisions."


def test_a_span_is_corrected_by_mouse(show):
    page = show()
    item = page.locator("#marked li").nth(1)
    item.click()
    item.get_by_role("button", name="Gold is wrong").click()
    words = item.locator(".word")
    words.filter(has_text="red").hover()
    page.mouse.down()
    words.filter(has_text="cat").hover()
    page.mouse.up()
    item.get_by_role("button", name="Save").click()
    assert [(one["removed"], one["added"]) for one in download(page)] == [([14, 17], [10, 17])]


def test_what_isnt_marked_is_added_confirmed_or_asked_about(show):
    page = show()
    page.locator("#unmarked li").first.focus()
    for verdict, keys in (("gold is wrong", ["w", "Enter"]), ("gold is right", ["r"]), ("policy", ["p"])):
        for key in keys:
            page.keyboard.press(key)
        (made,) = download(page)
        assert (made["verdict"], made["removed"], made["added"]) == (verdict, None, [9, 12])
        page.locator("#unmarked li").first.focus()


def test_the_span_as_it_is_is_no_correction(show):
    page = show()
    page.locator("#marked li").first.focus()
    for key in ("w", "Enter"):
        page.keyboard.press(key)
    assert "choose other words" in page.inner_text("#decided")
    page.keyboard.press("Escape")
    assert page.inner_text("#decided") == "0 decisions."


def test_decisions_outlast_a_reload_and_are_loaded_where_they_fit(show, tmp_path):
    page = show()
    page.locator("#marked li").first.focus()
    for key in ("r", "j", "p"):
        page.keyboard.press(key)
    page.reload()
    assert page.inner_text("#decided") == "2 decisions."
    rows = download(page)
    assert [one["verdict"] for one in rows] == ["gold is right", "policy"]
    file = tmp_path / "decisions.jsonl"
    others = [{**rows[0], "answer": "0" * 12}, {**rows[0], "text": "0" * 24}, {**rows[0], "dataset": "other"}, 5]
    file.write_text("".join(json.dumps(one) + "\n" for one in [*rows, *others]) + "no JSON\n")
    other = show()
    assert other.inner_text("#decided") == "0 decisions."
    other.set_input_files("#load", file)
    other.wait_for_function("document.getElementById('decided').textContent.includes('fit')")
    assert other.inner_text("#decided") == "2 of 7 fit this report. 2 decisions."
    assert download(other) == rows


def test_one_correction_merged_changes_that_one_span(show, report, tmp_path):
    page = show()
    page.locator("#marked li").nth(1).focus()
    for key in ("w", "ArrowLeft", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in download(page)))
    tasks = [report.parent / "tasks" / "datasets.yml"]
    merge_data(tasks, tmp_path / "corpus", Settings(), decisions=tmp_path / "decisions")
    before, after = gold_of(report.parent / "corpus"), gold_of(tmp_path / "corpus")
    assert (before - after, after - before) == ({(TEXT, 14, 17, "ANIMAL")}, {(TEXT, 10, 17, "ANIMAL")})


def gold_of(corpus: Path) -> set[tuple]:
    files = [file for split in ("train", "test") for file in find_partitions(corpus / split)]
    docs = [doc for file in files for doc in read_stored_docs(file)]
    return {(doc.text, *span[:3]) for doc in docs for span in doc.annotation.gold}


def test_where_nothing_can_be_kept_the_page_says_so(show):
    page = show(script="Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });")
    assert "This browser keeps nothing" in page.inner_text("#card")
    page.locator("#marked li").first.focus()
    page.keyboard.press("r")
    assert len(download(page)) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_card_can_be_read(show, scheme):
    page = show(scheme=scheme)
    page.locator("#marked li").first.focus()
    for keys in ([], ["w"]):
        for key in keys:
            page.keyboard.press(key)
        contrast, where = page.evaluate(LOWEST_CONTRAST)
        assert contrast >= 4.5, where
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_text_from_right_to_left_is_read_and_corrected_in_its_direction(show, scripts):
    page = show("#label=NAME", page=scripts)
    item = page.locator("#marked li").first
    before, mark = (item.locator(one).bounding_box()["x"] for one in (".before", "mark"))
    assert before > mark
    item.focus()
    for key in ("w", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    (made,) = download(page)
    text = "جاء عمر إلى القاهرة أمس."
    assert [text[slice(*made[name])] for name in ("removed", "added")] == ["عمر", "عمر إلى"]
    page.locator("#unmarked li").first.focus()
    page.keyboard.press("w")
    words = page.locator("#unmarked .word")
    boxes = [words.nth(n).bounding_box() for n in (0, 1, 4, 5)]
    first, second, new, york = (box["x"] + box["width"] for box in boxes)
    assert second < first
    assert new < york


@pytest.mark.parametrize(
    ("label", "text", "words"),
    [
        ("CITY", "मैं कल दिल्ली गया था।", ["दिल्ली", "कल दिल्ली"]),
        ("DRINK", "เขา ดื่ม น้ำชา ทุกวัน", ["น้ำชา", "ดื่ม น้ำชา"]),
    ],
)
def test_offsets_count_marks_that_combine_as_characters(show, scripts, label, text, words):
    page = show(f"#label={label}", page=scripts)
    page.locator("#marked li").first.focus()
    for key in ("w", "ArrowLeft", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    (made,) = download(page)
    assert [text[slice(*made[name])] for name in ("removed", "added")] == words

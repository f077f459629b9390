"""The report in a browser: filters, keyboard, phones, both colour schemes, print, and text that looks like code."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe

from labelwise.compare.revisions import Revision
from labelwise.evaluate.scores import Metrics
from labelwise.report.mistake_examples import MistakeExamples
from labelwise.report.page import write_report
from tests.report.report_inputs import HOSTILE, LABELS, make_docs, write_results

playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed: pip install playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("there is no Chromium; install it to test reports in a browser", allow_module_level=True)

PHONE, DESK = 360, 1280
MANY = 60  # labels
PAPER = 1031  # pixels of A4 landscape between margins of 12 mm, at 96 a inch
SHOWN = "#examples article:not([hidden])"

# The lowest contrast of all text with what is behind it, by the formula of WCAG 2.1, and where it is.
LOWEST_CONTRAST = """() => {
  const parse = (color) => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let lowest = [21, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const front = over(parse(element instanceof SVGElement ? style.fill : style.color), back);
    const [one, other] = [light(front), light(back)].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < lowest[0]) lowest = [contrast, node.textContent.trim() + " in " + element.className];
  }
  return lowest;
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("browser")
    write_results(root, make_docs())
    base = msgspec.json.decode((root / "metrics/cpu.json").read_bytes(), type=Metrics)
    base.all_gold.labels["PLACE"].f -= 0.1
    write_report(root, "cpu", root / "report.html", base=Revision("main", base, None))
    return root / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """A report of more labels than a screen has room for, and of documents with long names."""
    root, name = tmp_path_factory.mktemp("large"), "x" * 200
    docs = make_docs()
    for doc in docs:
        doc.doc = name
    write_results(root, docs)
    lost = root / "corpus" / "lost_spans.jsonl"
    lost.write_text(lost.read_text().replace("a.txt", name))
    metrics = json.loads((root / "metrics/cpu.json").read_text())
    for number in range(MANY):
        metrics["errors"][f"LABEL_{number}"] = metrics["errors"]["PLACE"]
        metrics["all_gold"]["labels"][f"LABEL_{number}"] = metrics["all_gold"]["labels"]["PLACE"]
    (root / "metrics/cpu.json").write_text(json.dumps(metrics))
    write_report(root, "cpu", root / "report.html")
    return root / "report.html"


@pytest.fixture
def show(browser, report) -> Iterator[Callable[..., Any]]:
    """Open the report; in the end, nothing must have gone wrong, been asked for, or popped up."""
    wrong: list[str] = []
    pages = []

    def watch_request(request: Any) -> None:
        if request.url.partition("#")[0] != report.as_uri():
            wrong.append(f"request of {request.url}")

    def open_page(width: int = DESK, scheme: str = "light", **options: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        pages.append(page)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", watch_request)
        page.goto(report.as_uri())
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []


def look_with_axe(browser: Any, address: str, scheme: str) -> list[str]:
    """List what axe finds against WCAG and its own best practices on a page, each with a place."""
    context = browser.new_context(viewport={"width": DESK, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    found = Axe().run(page).response["violations"]
    context.close()
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


@pytest.fixture(scope="module")
def expected() -> MistakeExamples:
    examples = MistakeExamples()
    for doc in make_docs():
        examples.add(doc)
    return examples


def mistakes(examples: MistakeExamples, kind: str = "", label: str = "") -> int:
    """How many there are, of a kind and with a label, if they are given."""
    return sum(
        n for pattern, n in examples.patterns.items() if kind in ("", pattern[0]) and label in ("", *pattern[1:])
    )


def choose(page, kind: str | None = None, label: str | None = None) -> None:
    for name, value in (("#by-kind", kind), ("#by-label", label)):
        if value:
            page.select_option(name, label=value)


@pytest.mark.parametrize(("kind", "label"), [("missed", "PLACE"), ("wrong label", HOSTILE), ("spurious", "DRUG")])
def test_filters_leave_the_examples_of_a_kind_and_a_label(show, expected, kind, label):
    page = show()
    choose(page, kind, label)
    keys = [e.window.key for e in expected.chosen() if e.window.kind == kind and label in e.window.pair.labels]
    assert page.locator(f"{SHOWN} .note code").all_inner_texts() == keys
    assert set(page.locator(f"{SHOWN} .kind").all_inner_texts()) == {kind}
    assert all(label in heading for heading in page.locator(f"{SHOWN} h3").all_inner_texts())
    total = mistakes(expected, kind, label)
    assert page.inner_text("#count") == f"{len(keys)} of {total} mistakes ({kind}, {label})"


def test_one_filter_alone_counts_all_of_it(show, expected):
    page = show()
    assert page.inner_text("#count") == f"20 of {mistakes(expected)} mistakes (all kinds, all labels)"
    choose(page, kind="wrong boundaries")
    shown = min(20, sum(1 for example in expected.chosen() if example.window.kind == "wrong boundaries"))
    total = mistakes(expected, "wrong boundaries")
    assert page.inner_text("#count") == f"{shown} of {total} mistakes (wrong boundaries, all labels)"
    choose(page, kind="all kinds", label="PERSON")
    shown = min(20, sum(1 for example in expected.chosen() if "PERSON" in example.window.pair.labels))
    total = mistakes(expected, label="PERSON")
    assert page.inner_text("#count") == f"{shown} of {total} mistakes (all kinds, PERSON)"
    assert page.locator(SHOWN).count() == shown


def test_twenty_more_are_shown_on_demand_until_all_are(show, expected):
    page = show()
    everything = len(expected.chosen())
    assert everything > 60
    for shown in range(20, everything, 20):
        assert page.locator(SHOWN).count() == shown
        page.click("#more button")
    assert page.locator(SHOWN).count() == everything
    assert not page.is_visible("#more button")
    choose(page, label="PERSON")
    assert page.locator(SHOWN).count() == 20, "another choice begins anew"


def test_a_text_is_searched_in_all_examples(show, expected):
    page = show()
    page.fill("#by-text", "  ACME chem")
    found = [e for e in expected.chosen() if "acme chem" in e.window.text.lower()]
    assert 5 < len(found) <= 20
    assert page.inner_text("#count") == f"{len(found)} of {len(found)} mistakes (all kinds, all labels, “acme chem”)"
    assert page.locator(f"{SHOWN} .note code").all_inner_texts() == [e.window.key for e in found]
    page.fill("#by-text", "nowhere")
    assert page.locator(SHOWN).count() == 0


def test_what_is_chosen_stands_in_the_address_and_can_be_opened(show, expected):
    page = show()
    choose(page, "missed", "PLACE")
    page.fill("#by-text", "a")
    address = page.evaluate("location.href")
    assert address.endswith("#examples&kind=missed&label=PLACE&text=a")
    said = page.inner_text("#count")
    choose(page, "all kinds", "all labels")
    page.fill("#by-text", "")
    assert page.evaluate("location.hash") == "#examples"
    page.goto(address)
    assert page.inner_text("#count") == said
    page.reload()
    assert page.inner_text("#count") == said
    assert page.input_value("#by-text") == "a"


def test_a_cell_of_the_confusion_shows_its_examples(show, expected):
    page = show()
    cell = page.locator("#confusion td.bad a").first
    cell.click()
    chosen = page.locator("#pair span", has_text="→").inner_text()
    gold, predicted = chosen.split("→")
    headings = page.locator(f"{SHOWN} h3").all_inner_texts()
    assert headings
    assert all(heading.endswith(f"{gold} → {predicted}") for heading in headings)
    pairs = [[span[2] if span else "(nothing)" for span in e.window.pair] for e in expected.chosen()]
    assert len(headings) == min(20, pairs.count([gold, predicted]))
    page.click("#pair button")
    assert "(all kinds, all labels)" in page.inner_text("#count")
    assert not page.is_visible("#pair")


def test_the_keyboard_opens_a_cell_of_the_confusion(show):
    page = show()
    page.locator("#confusion td.bad a").first.focus()
    page.keyboard.press("Enter")
    page.locator("#pair span", has_text="→").wait_for(timeout=2000)
    assert page.locator("#confusion a[tabindex]").count() == 0


def test_it_begins_with_what_to_decide_and_trust(show):
    """Also on paper, where the first page isn't the heading alone."""
    page = show()
    assert page.locator("section:not(#card) h2").all_inner_texts()[:3] == [
        "What to decide",
        "May I trust this?",
        "Fix next",
    ]
    doubts = page.locator("#trust li").all_inner_texts()
    assert any(
        "predicted spans can't be judged" in doubt and "DRUG 3" in doubt and "datasets.yml" in doubt for doubt in doubts
    )
    assert "+0.100" in page.locator("#scores .sortable tbody tr", has_text="PLACE").inner_text(), (
        "the difference to main"
    )
    page.emulate_media(media="print")
    style = "(e) => getComputedStyle(e).breakBefore"
    assert [page.locator(f"#{name}").evaluate(style) for name in ("trust", "scores")] == ["auto", "page"]


def write_labels(root: Path, count: int) -> Path:
    """Write a report of so many labels."""
    write_results(root, make_docs())
    metrics = json.loads((root / "metrics/cpu.json").read_text())
    scores, names = metrics["all_gold"]["labels"]["PLACE"], [f"LABEL_{number:03}" for number in range(count)]
    metrics["all_gold"]["labels"] = metrics["flat_gold"]["labels"] = dict.fromkeys(names, scores)
    metrics["errors"] = {
        name: {"right": 40 + n % 9, "missed": n % 17, "spurious": n % 5} for n, name in enumerate(names)
    }
    (root / "metrics/cpu.json").write_text(json.dumps(metrics))
    (root / "training/cpu/predictions.jsonl").unlink()
    write_report(root, "cpu", root / "report.html")
    return root / "report.html"


@pytest.mark.parametrize("count", [2, 20, 500])
def test_one_screen_has_what_one_decides_with(browser, tmp_path, count):
    """F, whether it may be used, the first task, and the first three labels; on a phone, F and the first task."""
    file = write_labels(tmp_path, count)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    assert page.locator(".labels tbody tr").count() == count
    for place in (".f .value", ".ship p", ".tasks li >> nth=0", f".labels tbody tr >> nth={min(count, 3) - 1}"):
        box = page.locator(place).bounding_box()
        assert box["y"] + box["height"] <= 800, place
        assert box["x"] + box["width"] <= 1280, place
    if count > 20:
        page.locator("#find-label").fill("label_499")
        assert page.locator(".labels tbody tr:visible").count() == 1
    page.set_viewport_size({"width": PHONE, "height": 640})
    for place in (".f .value", ".tasks li >> nth=0"):
        box = page.locator(place).bounding_box()
        assert box["y"] + box["height"] <= 640, place
        assert box["x"] + box["width"] <= PHONE, place
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, report, scheme):
    assert look_with_axe(browser, report.as_uri(), scheme) == []


def test_a_command_is_copied(show):
    page = show()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".tasks .copy").first.click()
    page.locator(".tasks .copy", has_text="Copied").first.wait_for(timeout=2000)
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".tasks .command").first.inner_text()


def test_a_click_chooses_the_name_of_a_document_whole(show):
    page = show()
    name = page.locator(f"{SHOWN} .note code").nth(1)
    name.click(position={"x": 3, "y": 3})
    assert page.evaluate("getSelection().toString()") == name.inner_text()


def test_a_frequent_mistake_shows_its_examples(show):
    page = show()
    link = page.locator("#frequent a").first
    form = page.locator("#frequent td.form").first.inner_text()
    link.click()
    texts = page.locator(SHOWN).all_inner_texts()
    assert texts
    assert all(form in text for text in texts)
    assert page.locator("#by-kind option:checked").inner_text() == "missed"


def test_nothing_to_show_is_said(show):
    page = show()
    choose(page, "spurious", "PLACE")
    assert page.inner_text("#count") == "0 of 0 mistakes (spurious, PLACE)"
    assert page.locator(SHOWN).count() == 0


def test_the_keyboard_reaches_the_skip_link_first_then_the_filters(show):
    page = show()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    box = page.locator(".skip").bounding_box()
    assert box["y"] >= 0, "it can be seen"
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "by-kind":
            break
    page.keyboard.press("ArrowDown")
    assert page.input_value("#by-kind") == "0"
    assert set(page.locator(f"{SHOWN} .kind").all_inner_texts()) == {"missed"}
    page.keyboard.press("Tab")
    page.keyboard.type("PERS")
    assert page.inner_text("#count").endswith("(missed, PERSON)")


def test_the_skip_link_leads_to_the_report(show):
    page = show()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_columns_sort_by_keyboard_and_say_so(show):
    page = show()
    labels = "#scores .sortable tbody th"
    f = page.locator("#scores .sortable thead th").nth(3)
    f.locator("button").focus()
    page.keyboard.press("Enter")
    assert f.get_attribute("aria-sort") == "ascending"
    values = page.locator("#scores .sortable tbody td:nth-child(4)").all_inner_texts()
    assert values == [*sorted(values[:-1]), "–"], "what has no score comes last"
    page.keyboard.press("Space")
    assert f.get_attribute("aria-sort") == "descending"
    values = page.locator("#scores .sortable tbody td:nth-child(4)").all_inner_texts()
    assert values == [*sorted(values[:-1], reverse=True), "–"]
    assert page.locator("#scores [aria-sort]:not([aria-sort=none])").count() == 1
    page.locator("#scores .sortable thead button").first.click()
    assert page.locator(labels).all_inner_texts() == sorted([*LABELS, "NEVER_SEEN"])


def test_counts_fall_at_the_first_click(show):
    page = show()
    support = page.locator("#scores .sortable thead th").nth(4)
    assert support.inner_text().startswith("Support"), "beside F"
    support.locator("button").click()
    assert support.get_attribute("aria-sort") == "descending"
    values = [int(value) for value in page.locator("#scores .sortable tbody td:nth-child(5)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    support.locator("button").click()
    assert support.get_attribute("aria-sort") == "ascending"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_fits_its_window_and_can_be_read(show, width, scheme):
    page = show(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    contrast, where = page.evaluate(LOWEST_CONTRAST)
    assert contrast >= 4.5, where


# Words of tables, of up to twenty letters, that stand on two lines.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const table of document.querySelectorAll("table")) {
    const walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const found of node.textContent.matchAll(/[\\p{L}\\p{N}_]{2,20}/gu)) {
        const range = document.createRange();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        const tops = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
        if (tops.size > 1 && !node.parentElement.closest(".matrix thead")) broken.push(found[0]);
      }
    }
  }
  return broken;
}"""


def test_tables_break_no_words_on_a_phone(show):
    assert show(400).evaluate(BROKEN_WORDS) == []


@pytest.mark.parametrize("place", ["", "#label=PLACE"])
def test_a_long_name_of_a_document_does_not_widen_a_phones_page(browser, large, place):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(large.as_uri() + place)
    assert page.locator("article .note code:visible").first.inner_text() == "x" * 200
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_the_schemes_differ(show):
    colors = [
        show(scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor") for scheme in ("light", "dark")
    ]
    assert colors[0] != colors[1]


def test_wide_tables_scroll_in_boxes_that_the_keyboard_reaches(show):
    page = show(PHONE)
    wide = page.locator(".scroll").evaluate_all("all => all.filter((e) => e.scrollWidth > e.clientWidth)")
    assert wide
    assert page.locator(".scroll:not([tabindex='0'])").count() == 0


def test_text_that_looks_like_code_is_text(show):
    page = show()
    for section in ("annotations", "coverage", "scores", "confusion", "frequent", "examples"):
        assert HOSTILE in page.inner_text(f"#{section}"), section
    assert "</script><b>bold</b>" in page.inner_text("#examples")
    assert page.locator("b, img").count() == 0
    assert page.locator("#by-label option").all_inner_texts() == ["all labels", *LABELS]


def test_without_scripts_all_examples_are_shown_and_nothing_that_does_nothing(show, expected):
    page = show(java_script_enabled=False)
    assert page.locator(SHOWN).count() == len(expected.chosen())
    assert not page.is_visible("#by-kind")
    assert page.locator("button").count() == 0


def test_each_pattern_has_its_example_first_with_a_link_to_those_like_it(show, expected):
    page = show()
    patterns = expected.patterns.most_common()
    headings = page.locator(f"{SHOWN} h3").all_inner_texts()
    assert len(headings) == 20
    assert len(patterns) > 10
    first = headings[: len(patterns)]
    assert len(set(first)) == len(first), "each pattern once"
    link = page.locator(f"{SHOWN} .note a").first
    assert link.inner_text() == f"{patterns[0][1]} like this"
    link.click()
    kind, gold, predicted = patterns[0][0]
    shown = page.locator(f"{SHOWN} h3").all_inner_texts()
    assert len(shown) > 1
    assert set(shown) == {f"{kind} {gold or '(nothing)'} → {predicted or '(nothing)'}"}


def test_print_has_one_of_each_pattern_if_nothing_was_chosen(show, expected):
    page = show(PAPER)
    page.emulate_media(media="print")
    shown = [article for article in page.locator("#examples article").all() if article.is_visible()]
    assert len(shown) == len(expected.patterns)


def test_print_has_what_was_chosen_and_no_clipped_table(show, expected):
    page = show(PAPER)
    choose(page, "missed", "PERSON")
    page.emulate_media(media="print")
    for hidden in ("nav", ".filters", ".skip"):
        assert not page.is_visible(hidden)
    assert page.locator(SHOWN).count() == mistakes(expected, "missed", "PERSON") == 7
    assert page.is_visible("#count")
    tables = page.locator("table").evaluate_all("all => all.map((e) => e.getBoundingClientRect().right)")
    assert max(tables) <= PAPER
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


CUT_OFF = """() => {
  const cut = [];
  for (const row of document.querySelectorAll(".labels tr")) {
    const { height, bottom } = row.getBoundingClientRect();
    for (let box = row.parentElement; box && box !== document.body; box = box.parentElement) {
      const clips = getComputedStyle(box).overflowY !== "visible";
      if (!height || (clips && bottom > box.getBoundingClientRect().bottom)) cut.push(row.cells[0].textContent);
    }
  }
  return cut;
}"""


@pytest.mark.parametrize("searched", ["", "LABEL_7"])
def test_print_has_all_labels(browser, large, searched):
    """Also if one was searched for: what was typed isn't printed."""
    page = browser.new_page(viewport={"width": PAPER, "height": 700})
    page.goto(large.as_uri())
    page.fill("#find-label", searched)
    assert page.evaluate(CUT_OFF), "on the screen, the table scrolls"
    page.emulate_media(media="print")
    assert page.locator(".labels tbody tr:visible").count() == MANY + len(LABELS) + 1
    assert page.evaluate(CUT_OFF) == []
    assert not page.is_visible("#find-label")
    page.close()

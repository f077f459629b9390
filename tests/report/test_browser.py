import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe

from labelwise.base.text import MAX_CONTEXT_CHARS
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.datasets.decisions import read_decisions
from labelwise.evaluate.predictions import PredictedDoc
from labelwise.evaluate.scores import Metrics
from labelwise.report.annotators import Agreed
from labelwise.report.page import Baseline, write_report
from tests.conftest import write_jsonl
from tests.report.report_inputs import HOSTILE, LABELS, make_docs, predict, write_json, write_results

playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed: pip install playwright")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("there is no Chromium; install it to test reports in a browser", allow_module_level=True)

pytestmark = pytest.mark.heavy  # a browser takes 10 seconds
PHONE, DESK = 360, 1280
PAPER = 1031  # pixels of A4 landscape between margins of 12 mm, at 96 a inch


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("browser")
    docs = make_docs()
    for doc in docs:
        doc.doc = "x" * 200
    write_results(root, docs)
    findings = root / "training/check/findings.jsonl"
    *_, second, _, _, _ = findings.read_text().splitlines()
    other = second.replace('"Paris"', '"Warsaw"').replace(f"{2:024x}", f"{6:024x}")
    findings.write_text(f"{findings.read_text()}{other}\n")
    base = msgspec.json.decode((root / "metrics/cpu.json").read_bytes(), type=Metrics)
    base.all_gold.labels["PLACE"].f -= 0.1
    changed = [
        ChangedSpan(change, "missed", "PLACE", "Oslo", "a.txt", "In ", ".", "unseen") for change in ("fixed", "new")
    ]
    write_report(root, "cpu", root / "report.html", baseline=Baseline("main", base, 3, changed))
    return root / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser, report) -> Iterator[Callable[..., Any]]:
    wrong: list[str] = []
    pages = []

    def watch_request(request: Any) -> None:
        if request.url.partition("#")[0] not in {page.url.partition("#")[0] for page in pages}:
            wrong.append(f"request of {request.url}")

    def open_page(width: int = DESK, scheme: str = "light", *, file: Path = report, beside: Any = None) -> Any:
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = beside.context.new_page() if beside else browser.new_context(**options).new_page()
        pages.append(page)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(file.as_uri())
        page.on("request", watch_request)
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert wrong == []


CASE = "#case"


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def save(page: Any, file: Path) -> list[Any]:
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(file)
    rows = list(read_decisions(file))
    assert not [row.problem for row in rows if row.problem]
    return [row.decision for row in rows]


def test_questions_are_decided_one_after_the_other_by_keys(show, tmp_path):
    """On three cases, on another label (removed there, added here), and one without an answer."""
    page = show()
    assert "Question 1 of 4: 'Paris' as PLACE 3 cases" in page.inner_text(CASE)
    assert page.locator(f"{CASE} mark").all_inner_texts() == ["Paris", "Paris", "Warsaw"]
    assert page.locator(f"{CASE} u").evaluate_all("all => all.map((e) => [e.textContent, e.title])") == [
        ["They", "PERSON"]
    ]
    press(page, "p")
    assert page.inner_text(f"{CASE} mark") == "Lithium"
    press(page, "w")
    assert "3 of 4" in page.inner_text(CASE)
    press(page, "w")  # no answer is about it
    assert "3 of 4" in page.inner_text(CASE)
    press(page, "j")
    assert page.inner_text(f"{CASE} mark") == HOSTILE
    decisions = [
        (decision.label, decision.verdict, decision.removed, decision.added)
        for decision in save(page, tmp_path / "decisions.jsonl")
    ]
    assert decisions == [
        *[("PLACE", "policy", None, (9, 14))] * 3,
        ("DRUG", "gold is wrong", (9, 16), None),
        ("PERSON", "gold is wrong", None, (9, 16)),
    ]


@pytest.mark.parametrize("named", [False, True])
def test_a_case_names_who_gave_the_answer_only_if_that_is_asked_for(named, show, tmp_path):
    write_results(tmp_path, make_docs())
    write_report(tmp_path, "cpu", tmp_path / "named.html", annotators=named)
    page = show(file=tmp_path / "named.html")
    assert "PLACE.jsonl:3" in page.inner_text(CASE)
    assert ("(ann)" in page.inner_text(CASE), '"ann"' in page.content()) == (named, named)


def test_cases_are_decided_one_by_one_and_the_last_verdict_applies_to_the_rest(show, tmp_path):
    page = show()
    assert "again" not in page.inner_text(CASE)
    press(page, "a")  # there is no verdict yet
    assert "0 decisions." in page.inner_text("#decided")
    press(page, "e", "r")
    assert page.locator(f"{CASE} mark").all_inner_texts() == ["Paris"]
    assert "“gold is right” for the other 2, too" in page.inner_text(CASE)
    press(page, "w")
    assert page.inner_text(f"{CASE} mark") == "Warsaw"
    assert "“gold is wrong” for the other 1, too" in page.inner_text(CASE)
    press(page, "u", "u")
    assert "0 decisions." in page.inner_text("#decided")
    assert page.locator(f"{CASE} mark").all_inner_texts() == ["Paris"]
    press(page, "w", "a")
    assert page.inner_text(f"{CASE} mark") == "Lithium"
    assert "3 decisions." in page.inner_text("#decided")
    press(page, "u")
    assert "1 decision." in page.inner_text("#decided")
    press(page, "k", "r")  # the rest of them
    decisions = [(decision.text[-1], decision.verdict) for decision in save(page, tmp_path / "decisions.jsonl")]
    assert decisions == [("1", "gold is wrong"), ("2", "gold is right"), ("6", "gold is right")]


def test_undo_takes_a_whole_question_back_and_one_that_is_decided_can_be_decided_again(show):
    page = show()
    press(page, "P")
    assert "3 decisions." in page.inner_text("#decided")
    press(page, "k")
    assert "policy" in page.inner_text(CASE)
    press(page, "r", "k")
    assert "gold is right" in page.inner_text(CASE)
    press(page, "u", "u")
    assert "0 decisions." in page.inner_text("#decided")
    assert "1 of 4" in page.inner_text(CASE)
    page.reload()
    assert "0 decisions." in page.inner_text("#decided")


def test_cases_are_filtered_and_the_next_one_is_announced(show):
    page = show()
    assert "'Paris' as PLACE 3 cases. They saw Paris there." in page.inner_text("#next")
    page.fill("#find", "wrong label")
    assert "Question 1 of 1: 'Lithium' as DRUG" in page.inner_text(CASE)
    assert "1 of 1: 'Lithium' as DRUG. They saw Lithium there." in page.inner_text("#next")
    assert ".." not in page.inner_text("#next")
    press(page, "w")
    assert page.input_value("#find") == "wrong labelw"
    assert "Nothing left to review." in page.inner_text(CASE)
    page.fill("#find", "may be wrong lithium")  # the evidence
    assert "Question 1 of 1: 'Lithium' as DRUG" in page.inner_text(CASE)
    page.fill("#find", "warsaw")
    assert page.locator(f"{CASE} mark").all_inner_texts() == ["Warsaw"]


def test_buttons_are_tab_stops_and_keep_the_focus(show):
    page = show()
    page.focus("#find")
    press(page, "Tab")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Keep as it is (all 3) r"
    press(page, "Enter")
    assert "3 decisions." in page.inner_text("#decided")
    assert page.evaluate(focused) == "Keep as it is r"


def test_a_questions_buttons_stay_in_sight_above_all_its_cases(show, tmp_path):
    write_results(tmp_path, make_docs())
    findings = tmp_path / "training/check/findings.jsonl"
    head, first, *_ = findings.read_text().splitlines()
    alike = [first.replace(f"{1:024x}", f"{number:024x}").replace("Paris", f"P{number}") for number in range(50)]
    findings.write_text("\n".join([head, *(one.replace(f"'P{n}' as", "'P' as") for n, one in enumerate(alike))]))
    write_report(tmp_path, "cpu", tmp_path / "report.html")
    page = show(file=tmp_path / "report.html")
    assert page.locator(f"{CASE} mark").all_inner_texts() == [f"P{number}" for number in range(50)]
    page.locator("#fix").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('fix').scrollIntoView()")
    for place in ("[data-key=r]", "#cases mark >> nth=0", "#decided"):
        box = page.locator(place).bounding_box()
        assert 0 <= box["y"] <= box["y"] + box["height"] <= 900


def test_a_sentence_that_was_cut_says_so_where_it_was_cut(show, tmp_path):
    write_results(tmp_path, make_docs())
    findings = tmp_path / "training/check/findings.jsonl"
    head, first, second, *_ = map(json.loads, findings.read_text().splitlines())
    first |= {"before": "a" * MAX_CONTEXT_CHARS, "group": "1"}
    second |= {"after": "z" * MAX_CONTEXT_CHARS, "group": "2"}
    write_jsonl(findings, [head, first, second])
    write_report(tmp_path, "cpu", tmp_path / "report.html")
    page = show(file=tmp_path / "report.html")
    assert page.inner_text("#cases .text") == f"…{'a' * MAX_CONTEXT_CHARS}Paris there."
    press(page, "j")
    assert page.inner_text("#cases .text") == f"They saw Paris{'z' * MAX_CONTEXT_CHARS}…"


def test_the_errors_of_a_confused_pair_are_shown_from_the_headline(show, tmp_path):
    docs = make_docs()
    for number, doc in enumerate(docs):
        wrong = [predict(span, "other" if span[2] == "DRUG" and number < 9 else "right") for span in doc.gold]
        doc.predicted = sorted(span for some in wrong for span in some)
    write_results(tmp_path, docs)
    write_report(tmp_path, "cpu", tmp_path / "report.html", target_f1=0.95)
    page = show(file=tmp_path / "report.html")
    pair = ["DRUG", LABELS[LABELS.index("DRUG") + 1]]
    assert page.inner_text("#tasks").startswith(f"Agree on a rule for {' and '.join(pair)} (9 of 9 errors)")
    page.click("#tasks a")
    assert page.inner_text("#card h3").startswith(f"Errors of {' and '.join(pair)} on test: 9 confusions")
    notes = page.locator("#card article .note").all_inner_texts()
    assert notes
    assert all(f"gold {pair[0]}, predicted {pair[1]}" in note for note in notes)


@pytest.mark.parametrize("width", [DESK, 1920])
def test_the_first_screen_fits_with_annotators_nested_labels_and_a_baseline(show, width, tmp_path):
    docs = make_docs()
    write_results(tmp_path, docs)
    metrics = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    metrics.all_spans = metrics.all_gold
    (tmp_path / "metrics/cpu.json").write_bytes(msgspec.json.encode(metrics))
    merge = json.loads((tmp_path / "metrics/merge.json").read_text())
    merge["labels"] = {label: {"complete": 400 + n} for n, label in enumerate(LABELS)}
    write_json(tmp_path / "metrics/merge.json", merge)
    base = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    base.all_gold.labels["PLACE"].f -= 0.1
    write_report(tmp_path, "cpu", tmp_path / "report.html", baseline=Baseline("12345678", base))
    page = show(width, file=tmp_path / "report.html")
    heads = page.locator(".sortable thead th")
    ends = {head.inner_text(): head.evaluate("(e) => e.getBoundingClientRect().right") for head in heads.all()}
    assert [*ends][4:8] == ["Next", "Since 12345678", "F1 entities", "Annotators agree"]
    assert [head for head, right in ends.items() if right > width] == []
    lines = {head.inner_text(): head.bounding_box()["height"] for head in heads.all()}
    assert max(lines.values()) < 60, "no word is broken"


def test_a_random_sample_is_asked_case_by_case(show, tmp_path):
    write_results(tmp_path, make_docs())
    findings = tmp_path / "training/check/findings.jsonl"
    head, first, *_ = findings.read_text().splitlines()
    alike = [first.replace(f"{1:024x}", f"{number:024x}") for number in range(50)]
    findings.write_text("\n".join([head, *alike]))
    write_report(tmp_path, "cpu", tmp_path / "report.html")
    page = show(file=tmp_path / "report.html")
    assert "Question 1 of 1: 'Paris' as PLACE 50 cases" in page.inner_text(CASE)
    page.select_option("#queue", "sample")
    page.click("h1")
    press(page, "w")
    assert "Question 2 of 30: 'Paris' as PLACE" in page.inner_text(CASE)
    assert "1 decision." in page.inner_text("#decided")


def test_keys_are_for_the_card_while_it_is_in_view(show):
    page = show()
    page.evaluate("document.body.style.paddingBottom = '2000px'; scrollTo(0, document.body.scrollHeight)")
    press(page, "w")
    page.locator(CASE).scroll_into_view_if_needed()
    assert "0 decisions." in page.inner_text("#decided")
    press(page, "W")
    assert "3 decisions." in page.inner_text("#decided")


def test_two_tabs_decide_together(show, tmp_path):
    page = show()
    other = show(beside=page)
    press(page, "e", "w")
    playwright.expect(other.locator("#decided")).to_contain_text("1 decision")
    press(other, "r")
    for tab in (page, other):
        playwright.expect(tab.locator("#decided")).to_contain_text("3 decisions")
    verdicts = [decision.verdict for decision in save(page, tmp_path / "decisions.jsonl")]
    assert verdicts == ["gold is wrong", "gold is right", "gold is right"]
    assert "2 of 4" in show(beside=page).inner_text(CASE)


def test_decisions_outlive_a_merge_until_they_are_saved(show, tmp_path):
    write_results(tmp_path, make_docs())
    write_report(tmp_path, "cpu", file := tmp_path / "report.html")
    page = show(file=file)
    press(page, "e", "w", "r", "p")
    findings = tmp_path / "training/check/findings.jsonl"
    (tmp_path / "metrics/merge.sha256").write_text("fedcba9876543210\n")
    head, first, second, _, *lines = findings.read_text().splitlines()
    anew = first.replace('"answer": "0', '"answer": "f')
    findings.write_text("\n".join([head, anew, second, *lines]))
    write_report(tmp_path, "cpu", file)
    page.reload()
    assert "3 decisions (2 from an earlier report)." in page.inner_text("#decided")
    assert "1 of 3" in page.inner_text(CASE), "its answer is another one"
    decisions = {
        (decision.text[-1], decision.label, decision.verdict) for decision in save(page, tmp_path / "decisions.jsonl")
    }
    expected = {("1", "PLACE", "gold is wrong"), ("2", "PLACE", "gold is right")}
    assert decisions == expected | {("3", "DRUG", "policy"), ("3", "PERSON", "policy")}
    page.reload()
    assert "1 decision." in page.inner_text("#decided")
    findings.write_text(f"{head}\n")
    write_report(tmp_path, "cpu", file)
    press(page, "w")
    page.reload()
    assert "1 decision (1 from an earlier report)." in page.inner_text("#decided")


def test_a_column_is_sorted_by_its_head_and_again_the_other_way(show):
    page = show()
    names = "() => [...document.querySelectorAll('.sortable tbody th')].map((cell) => cell.textContent)"
    page.click(".sortable thead button:has-text('Label')")
    assert page.evaluate(names) == sorted(LABELS, key=str.lower)
    page.click(".sortable thead button:has-text('F1')")
    falling = page.evaluate(names)
    page.click(".sortable thead button:has-text('F1')")
    assert page.evaluate(names) == falling[::-1]
    assert page.get_attribute(".sortable thead th:nth-child(3)", "aria-sort") == "ascending"


def test_a_label_shows_its_mistakes_beside_its_row(show):
    page = show()
    page.click(".sortable a:text-is('DRUG')")
    row = page.locator(".sortable tr:has(a:text-is('DRUG')) + tr")  # once the page has followed the link
    playwright.expect(row).to_contain_text(re.compile("^Errors of DRUG on test"))
    assert "spurious, 15 times · predicted DRUG" in page.inner_text("#card")
    assert page.locator("#card mark").first.inner_text() in {"Last spring", "codeine", "aspirin", "lithium"}
    page.click(".sortable a:text-is('PLACE')")
    playwright.expect(page.locator("#card")).to_contain_text(
        "new since main · missed · PLACE · rare or absent in train"
    )
    assert page.locator("#card").count() == 1
    page.click(".sortable thead button:has-text('F1')")
    assert page.locator("#card").count() == 0


def test_mistakes_are_searched_by_label_kind_cause_and_words(show):
    page = show()
    assert page.locator("#list article").count() == 10
    for words, expected in (("spurious", "spurious"), ("missed PLACE annotated in train", "gold PLACE"), ("xyz", None)):
        page.fill("#search", words)
        shown = page.locator("#list article .note").all_inner_texts()
        assert bool(shown) == (expected is not None)
        assert all(expected in item for item in shown)
    assert page.inner_text("#found").startswith("0 errors")
    page.fill("#search", "oslo new since main")
    assert page.locator("#list article .note").all_inner_texts() == [
        "new since main · missed · PLACE · rare or absent in train · a.txt"
    ]
    assert page.locator("#list mark").all_inner_texts() == ["Oslo"]
    page.fill("#search", "wrong boundaries")
    sentence = page.locator("#list article").first
    assert len(sentence.locator("u").all()) == 3, "the other spans of the sentence"
    page.fill("#search", "")
    every = int(page.inner_text("#found").split()[0])
    page.focus("#list button")
    assert page.inner_text("#list button") == f"Show 10 more of {every - 10}"
    press(page, *["Enter"] * 9)
    assert page.locator("#list article").count() == every > 20


@pytest.mark.guarantee("markup")
def test_text_that_looks_like_code_is_text(show):
    page = show()
    press(page, *"jjj")
    assert page.inner_text(f"{CASE} mark") == HOSTILE
    page.click(f".sortable a:text-is('{HOSTILE}')")
    assert HOSTILE in page.inner_text("#card")
    assert page.locator("#card img, #card b").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_the_page_fits_its_window_and_axe_finds_nothing(show, width, scheme):
    page = show(width, scheme)
    for column in ("F1", "Next") if width == PHONE else ():
        box = page.locator(f".sortable th:has-text('{column}')").bounding_box()
        assert box["x"] + box["width"] <= width, "in sight"
    heights = page.locator(".sortable tbody tr").evaluate_all("all => all.map((e) => e.offsetHeight)")
    assert width == PHONE or max(heights) <= 52, "two lines, where a rule is about long labels"
    for place in ("#gold", "#label=DRUG"):
        page.goto(page.url.partition("#")[0] + place)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        violations = Axe().run(page).response["violations"]
        assert [f"{violation['id']}: {violation['nodes'][0]['html']}" for violation in violations] == []


def test_print_has_the_whole_table_and_no_buttons(show):
    page = show(PAPER)
    page.emulate_media(media="print")
    assert not page.is_visible(".buttons")
    right = page.locator("table").evaluate_all("all => all.map((e) => e.getBoundingClientRect().right)")
    assert max(right) <= PAPER
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_rare_parts_of_the_page_fit_its_window(show, width, tmp_path, monkeypatch):
    """Forecasts, precision of findings, borderline labels, and annotators."""
    write_results(tmp_path, make_docs())
    change = {"difference": 0.05, "low": 0.01, "high": 0.09, "significant": True}
    f = {"f": {"half": 0.7, "a quarter": 0.6, "all": 0.75}, "changes": {"a quarter": change, "all": change}}
    curve = {"pipeline_digest": "89abcdef01234567", "texts": {}, "micro": f, "labels": {"PLACE": f}}
    write_json(tmp_path / "metrics/train_curve.json", curve)
    about = {"dataset": "d", "label": "PLACE", "answer": "0" * 12, "added": [9, 14], "verdict": "policy"}
    rows = [about | {"text": f"{number:024x}"} for number in range(100, 10_000)]
    write_jsonl(tmp_path / "assets/decisions/decisions.jsonl", rows)
    people = [Agreed(f"{name} " * 9, 40, 0.7, [("PLACE", 0.5), ("DRUG", 0.6)]) for name in ("ann", "bob")]
    monkeypatch.setattr("labelwise.report.page.read_annotators", lambda corpus: people)
    metrics = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    goal = metrics.all_gold.labels["PLACE"].f_low
    write_report(tmp_path, "cpu", tmp_path / "report.html", annotators=True, target_f1=goal)
    page = show(width, file=tmp_path / "report.html")
    for part in ("#curve", "#charts svg", "#estimate", "#annotators tbody"):
        assert page.is_visible(part)
    assert page.locator(".verdict.borderline").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [f"{violation['id']}: {violation['nodes'][0]['html']}" for violation in violations] == []


def test_five_hundred_labels_are_quick_and_small(browser, tmp_path):
    """With the maximum of cases, errors and changes, in sentences of 400 characters."""
    labels, around = [f"LABEL_{number}" for number in range(500)], "word " * 40
    docs = []
    for number in range(1100):
        text = f"{around}name {number:04} {around}"
        spans = [(200 + 10 * n, 209 + 10 * n, labels[(number + n) % 500]) for n in range(3)]
        docs.append(PredictedDoc(f"{number:032x}", text, predicted=spans[1:], gold=spans, doc=f"docs/{number}.txt"))
    write_results(tmp_path, docs, labels=labels)
    findings = tmp_path / "training/check/findings.jsonl"
    head, case, *_ = map(json.loads, findings.read_text().splitlines())
    case |= {"before": around, "after": around, "why": "x" * 100, "others": [(9, 14, "PLACE")] * 3}
    cases = [case | {"key": f"{number:024x}", "group": f"{number // 30}"} for number in range(1100)]
    write_jsonl(findings, [head, *cases])
    changed = [
        ChangedSpan("fixed", "missed", label, f"name {n}", f"docs/{n}.txt", around, around, "unseen")
        for n in range(3)
        for label in labels
    ]
    base = msgspec.json.decode((tmp_path / "metrics/cpu.json").read_bytes(), type=Metrics)
    write_report(tmp_path, "cpu", tmp_path / "report.html", baseline=Baseline("main", base, 0, changed))
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    page = browser.new_page(viewport={"width": DESK, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart") < 2000
    page.close()

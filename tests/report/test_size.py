"""The report of 6,000 texts and 500 labels: the bytes of the page, and how long a browser is busy with it."""

import random
from pathlib import Path

import msgspec
import pytest

from labelwise.evaluate.predictions import write_predictions
from labelwise.evaluate.run import score
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.report.page import write_report
from tests.conftest import Merging
from tests.report.corpus_inputs import predict_nothing
from tests.report.test_browser import browser  # noqa: F401  the fixture

pytestmark = pytest.mark.nightly
TEXTS, LABELS = 6000, [f"LABEL_{number:03}" for number in range(500)]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A corpus in which 700 words are marked and left out at random, and a pipeline that mistakes half of them."""
    root = tmp_path_factory.mktemp("size")
    chance = random.Random(0)
    rows = []
    for number in range(TEXTS):
        text, spans = "", []
        for _ in range(40):
            noun = chance.randrange(700)
            text += chance.choice(["the ", "a very ", "some of ", "with <b> "])
            if chance.random() < 0.6:
                end = len(text) + len(f"noun{noun}")
                spans.append({"start": len(text), "end": end, "label": LABELS[noun % len(LABELS)]})
            text += f"noun{noun} "
        rows.append({"text": f"{text}{number}", "spans": spans})
    Merging(root).add("all", LABELS, rows)
    merge_data(
        [root / "tasks" / "datasets.yml"], root / "corpus", Settings(), metrics=root / "metrics/merge.json", workers=2
    )
    predictions = root / "training" / "cpu" / "predictions.jsonl"
    docs = predict_nothing(root / "corpus", predictions)
    for doc in docs:
        doc.predicted = sorted(
            {(start, end, chance.choice([label, chance.choice(LABELS)])) for start, end, label in doc.gold}
        )
    with predictions.open("wb") as file:
        write_predictions(docs, file)
    metrics, details = score(predictions, root / "corpus" / "test", {})
    (root / "metrics" / "cpu.json").write_bytes(msgspec.json.encode(metrics))
    predictions.with_name("details.json").write_bytes(msgspec.json.encode(details))
    write_report(root, "cpu", root / "report.html")
    return root / "report.html"


def test_the_page_has_at_most_eight_megabytes(report):
    assert 4_000_000 < report.stat().st_size <= 8_000_000


def test_the_page_is_there_within_two_seconds(browser, report):  # noqa: F811
    """In time of the browser's main thread, which other work on the machine doesn't prolong."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(report.as_uri())
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] <= 2
    assert page.locator(".labels tbody tr").count() == len(LABELS)
    page.close()

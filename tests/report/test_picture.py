"""The README's picture is of the report as it is."""

from PIL import Image

from benchmarks import screenshot
from tests.conftest import ROOT


def test_the_picture_is_of_the_report_as_it_is(monkeypatch):
    monkeypatch.chdir(ROOT)
    picture = Image.open(screenshot.PICTURE)
    assert picture.text[screenshot.DIGEST] == screenshot.digest(screenshot.render()), (
        "the report has changed since its picture was taken: .venv-dev/bin/python -m benchmarks.screenshot"
    )
    assert screenshot.PICTURE.stat().st_size < 150_000

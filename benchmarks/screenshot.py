"""Take the picture of the report that the README shows: `python -m benchmarks.screenshot`, after `make run`.

It needs the packages of `.venv-dev`, and Chromium.
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

REPORT, OUT = Path("report/cpu.html"), Path("docs/report.png")
WIDTH, HEIGHT = 1280, 860


def take(report: Path = REPORT, out: Path = OUT) -> None:
    """Take a picture of the first screen of a report."""
    chromium = shutil.which("chromium")
    if chromium is None or not report.is_file():
        raise SystemExit(f"{report} and Chromium are needed: `make run`, `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    take()
    print(f"{OUT} is the first screen of {REPORT}")

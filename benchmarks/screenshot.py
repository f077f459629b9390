"""Take the picture of the report that the README shows, and measure the page.

    python -m benchmarks.screenshot                                                   # after `make run`
    python -m benchmarks.screenshot benchmarks/out/wnut2020_wlp/report/cpu.html --out ""

Printed: the bytes of the page, the screens of 1280 x 900 and 400 x 900 pixels that it takes, and printed pages. It
needs the packages of `.venv-dev`, and Chromium.
"""

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer
from playwright.sync_api import sync_playwright

SIZES = ((1280, 900), (400, 900))


def main(
    report: Annotated[Path, typer.Argument(help="The page")] = Path("report/cpu.html"),
    out: Annotated[str, typer.Option(help="PNG file for its first screen; empty for none")] = "docs/report.png",
) -> None:
    """Take the picture, and print sizes."""
    chromium = shutil.which("chromium")
    if chromium is None or not report.is_file():
        raise SystemExit(f"{report} and Chromium are needed: `make run`, `apt-get install chromium`")
    print(f"{report}: {report.stat().st_size:,} bytes")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, height in SIZES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto(report.resolve().as_uri())
            pixels = page.evaluate("document.documentElement.scrollHeight")
            print(f"{width} pixels wide: {pixels:,} pixels, {pixels / height:.1f} screens")
            if out and (width, height) == SIZES[0]:
                page.screenshot(path=out, clip={"x": 0, "y": 0, "width": 1280, "height": 860})
            if (width, height) == SIZES[0]:
                pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))
                print(f"{pages} printed pages")
        browser.close()


if __name__ == "__main__":
    typer.run(main)

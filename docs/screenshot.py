"""Take the picture of the report that the README shows, from results that are stored in benchmarks/results/report.

    .venv-dev/bin/python -m docs.screenshot                  # after a change of the report
    .venv-dev/bin/python -m docs.screenshot --root FOLDER    # store the results of a project after `make run`

It needs Chromium. What the first screen doesn't show isn't stored.
"""

import json
import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from labelwise.report.page import write_report

STORED = Path("benchmarks/results/report")
PICTURE = Path("docs/report.png")
CASES = 400  # findings that are stored


def render() -> str:
    """Make the page of the stored results: the same bytes anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(STORED, folder, dirs_exist_ok=True)
        write_report(folder, "cpu", Path(folder, "report.html"))
        return Path(folder, "report.html").read_text(encoding="utf8")


def store(root: Path) -> None:
    """Copy the results of a project."""
    for name in ("metrics/cpu.json", "metrics/merge.json", "training/check/findings.jsonl"):
        lines = (root / name).read_text(encoding="utf8").splitlines()
        content = "\n".join(lines[: 1 + CASES]) if name.endswith("l") else json.dumps(json.loads("\n".join(lines)))
        (STORED / name).parent.mkdir(parents=True, exist_ok=True)
        (STORED / name).write_text(content + "\n", encoding="utf8")


def take_picture(page: str, out: Path) -> None:
    """Take the picture of a page's first screen, in few colours."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is needed: `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        view.set_content(page)
        taken = view.screenshot()
        browser.close()
    Image.open(BytesIO(taken)).convert("RGB").quantize(64).save(out, optimize=True)


def main(root: Annotated[Path | None, typer.Option(help="Store the results of this project first")] = None) -> None:
    """Take the picture."""
    if root:
        store(root)
    take_picture(render(), PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    typer.run(main)

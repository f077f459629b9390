"""Memory and time of the converter on 6,000 texts and 20 labels.

    python -m benchmarks.convert

Makes the corpus first, as brat.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import measure, write_result

OUT = Path("benchmarks/out/convert")
LIMIT = 600 * 2**20  # bytes that the converter may use


def main(docs: Annotated[int, typer.Option(help="Number of texts")] = 6000) -> None:
    """Make the corpus, convert it; write what each took."""
    brat, tasks = str(OUT / "brat"), str(OUT / "tasks")
    taken = {
        "make_demo": measure("scripts.make_demo", brat, "--docs", str(docs), "--labels", "20", "--words", "300"),
        "convert_brat": measure("scripts.convert_brat", brat, tasks),
    }
    columns = {"command": "", "seconds": ",.1f", "memory, MB": ",.0f"}
    write_result("convert", columns, [(name, one.seconds, one.megabytes) for name, one in taken.items()])
    if taken["convert_brat"].peak_pss > LIMIT:
        raise SystemExit(f"The converter used more than {LIMIT / 2**20:.0f} MB")


if __name__ == "__main__":
    typer.run(main)

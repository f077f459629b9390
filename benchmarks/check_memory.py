"""Memory of the check: ten times the texts should take little more.

    python -m benchmarks.check_memory             # 2,000 and 20,000 texts of 300 words, without pipelines

Memory is the peak of all processes, PSS. What grows are the counts of distinct forms; the demo
corpus has a limited vocabulary, so it shows that nothing else does.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.evaluate import make_corpus
from benchmarks.measure import Cell, measure, write_result

OUT = Path("benchmarks/out/check_memory")
FLAT_LIMIT = 1.5  # ten times the texts may take this many times the memory


def main(
    docs: Annotated[int, typer.Option(help="Texts of the small corpus; the large one has ten times as many")] = 2000,
) -> None:
    """Measure; fail if the memory isn't flat."""
    OUT.mkdir(parents=True, exist_ok=True)
    corpora = {number: make_corpus(number, OUT) for number in (docs, 10 * docs)}
    rows: list[list[Cell]] = []
    peaks: list[float] = []
    for number, corpus in corpora.items():
        taken = measure("scripts.check_labels", str(corpus), "--out", str(OUT / "check"))
        peaks.append(taken.megabytes)
        rows.append([number, taken.seconds, peaks[-1], peaks[-1] / peaks[0] if len(peaks) > 1 else None])
    columns = {"texts": ",", "seconds": ",.0f", "memory, MB": ",.0f", "of a tenth's memory": ".2f"}
    write_result("check_memory", columns, rows)
    if peaks[1] > FLAT_LIMIT * peaks[0]:
        raise SystemExit(f"ten times the texts take {peaks[1] / peaks[0]:.2f} times the memory")


if __name__ == "__main__":
    typer.run(main)

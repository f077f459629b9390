"""Time and memory (peak of all processes, PSS) of evaluation: fails if three times the texts take more memory.

    python -m benchmarks.evaluate                # 5,000 and 15,000 texts of 300 words and 20 labels: ten minutes

Fewer texts take less memory: the vocabulary, and a partition's rows, grow to their limits first.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import Cell, make_corpus, measure, train_cpu, write_result

OUT = Path("benchmarks/out/evaluate")
MAX_MEMORY_RATIO = 1.1  # three times the texts may take this many times the memory
STEPS = 100


def main(
    docs: Annotated[int, typer.Option(help="Texts of the small corpus; the large one has three times as many")] = 5000,
) -> None:
    """Measure; fail if the memory isn't flat."""
    OUT.mkdir(parents=True, exist_ok=True)
    small, large = (
        make_corpus(number, OUT, labels=20, words=300, dev_ratio=0.02, test_ratio=0.9) for number in (docs, 3 * docs)
    )
    train_cpu(small, OUT, STEPS)
    rows: list[list[Cell]] = []
    failed = []
    for workers in (1, 2):
        peaks: list[float] = []
        for number, corpus in ((docs, small), (3 * docs, large)):
            options = ["cpu", "--split", str((corpus / "test").absolute()), "--workers", str(workers)]
            measured = measure("scripts.evaluate", *options, cwd=OUT)
            peaks.append(measured.megabytes)
            growth = peaks[-1] / peaks[0] if len(peaks) > 1 else None
            rows.append([number, str(workers), measured.seconds, peaks[-1], growth])
        failed += [f"{workers} workers: {peaks[1] / peaks[0]:.2f}"] if peaks[1] > MAX_MEMORY_RATIO * peaks[0] else []
    columns = {"texts": ",", "workers": "", "seconds": ",.0f", "memory, MB": ",.0f", "of a third's memory": ".2f"}
    write_result("evaluate", columns, rows)
    if failed:
        raise SystemExit(f"three times the texts take more memory: {', '.join(failed)}")


if __name__ == "__main__":
    typer.run(main)

"""Memory of training, and of reading alone as training does: ten times the texts should take the same.

python -m benchmarks.loaders              # 6,000 and 60,000 texts of 3,500 characters: 20 GB of disk
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import Cell, measure, write_result
from benchmarks.training import make_corpus, train_steps

OUT = Path("benchmarks/out/loaders")
CONFIG = Path("configs/cpu.cfg")
FLAT_LIMIT = 1.05  # ten times the texts may take this many times the memory


def main(
    docs: Annotated[int, typer.Option(help="Texts of the small corpus; the large one has ten times as many")] = 6000,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
) -> None:
    """Measure; fail if training isn't flat."""
    OUT.mkdir(parents=True, exist_ok=True)
    rows: list[list[Cell]] = []
    peaks = []
    for number in (docs, 10 * docs):
        corpus = make_corpus(number, OUT)
        trained = train_steps(CONFIG, corpus, OUT, steps)
        epoch = measure("benchmarks.read_epoch", str(corpus))
        peaks.append(trained.megabytes)
        rows.append([number, trained.rate, trained.megabytes, epoch.seconds, epoch.megabytes])
    columns = {"texts": ",", "words per second": ",.0f", "memory, MB": ",.0f", "an epoch read, seconds": ",.0f"}
    write_result("training_memory", columns | {"reading's memory, MB": ",.0f"}, rows)
    if peaks[1] > FLAT_LIMIT * peaks[0]:
        raise SystemExit(f"ten times the texts take {peaks[1] / peaks[0]:.2f} of the memory")


if __name__ == "__main__":
    typer.run(main)

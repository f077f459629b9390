"""How fast is training, against `spacy train`, with one process and with two, and what memory does it take?

    python -m benchmarks.training_speed CORPUS     # merged, such as benchmarks/out/wnut2020_wlp/corpus

Everything is trained in turn, round after round: `spacy train` with configs/cpu.cfg, its ner, its own corpus and its
own batches of the same size; then labelwise, with either recognizer. Words a second are those of the steps after the
warm-up, without evaluation; ratios are within a round. A process computes in one thread.
"""

from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.measure import write_result
from benchmarks.training import Trained, train_steps, train_stock

OUT = Path("benchmarks/out/training_speed")
CONFIG = Path("configs/cpu.cfg")
STOCK = "spacy train, ner"


def main(
    corpus: Annotated[Path, typer.Argument(help="Merged corpus")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
    rounds: Annotated[int, typer.Option(help="How often each is trained")] = 3,
) -> None:
    """Train in turn, and write medians."""
    OUT.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[Trained]] = {STOCK: []}
    for _ in range(rounds):
        runs[STOCK].append(train_stock(CONFIG, corpus, OUT, steps))
        for recognizer in ("ner", "per-label"):
            for workers in (1, 2):
                name = f"{recognizer}, {workers} process{'es' if workers > 1 else ''}"
                options = ("--recognizer", recognizer, "--workers", str(workers))
                runs.setdefault(name, []).append(train_steps(CONFIG, corpus, OUT, steps, *options))
    rows = []
    for name, found in runs.items():
        ratios = [one.rate / stock.rate for one, stock in zip(found, runs[STOCK], strict=True)]
        spread = (median(ratios), min(ratios), max(ratios))
        rows.append((name, median(one.rate for one in found), spread, median(one.megabytes for one in found)))
    columns = {"training": "", "words per second": ",.0f", "of spacy train": ".2f", "memory, MB": ",.0f"}
    write_result("training_speed", columns, rows)


if __name__ == "__main__":
    typer.run(main)

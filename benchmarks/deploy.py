"""What does a pipeline take where it is used? Words a second and memory on one core, by the number of texts in a batch.

    python -m benchmarks.deploy training/cpu/model-best assets/wnut2020_wlp/dev
    python -m benchmarks.deploy en_ner texts/          # an installed wheel, in whatever environment this runs in

Each measurement is a process of its own, with one thread, that loads the pipeline and predicts the texts for some
seconds; batch sizes take turns. Memory is the peak of that process. A service that is asked for one text at a time has
batches of 1, and the milliseconds of a text.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

PREDICT = """
import resource, sys, time
from pathlib import Path
import spacy
try:
    import labelwise.recognizer.per_label
    from labelwise.common.device import use_gpu
    use_gpu(-1)  # in the project: numpy multiplies matrices, as a wheel has it do
except ImportError:
    pass
start = time.perf_counter()
nlp = spacy.load(sys.argv[1])
loading = time.perf_counter() - start
size, seconds = int(sys.argv[3]), float(sys.argv[4])
texts = [path.read_text(encoding="utf8") for path in sorted(Path(sys.argv[2]).rglob("*.txt"))]
list(nlp.pipe(texts[:5], batch_size=size))
words = done = 0
start = time.perf_counter()
while time.perf_counter() - start < seconds:  # all texts, as often as that takes
    for doc in nlp.pipe(texts, batch_size=size):
        words += len(doc)
        done += 1
taken = time.perf_counter() - start
print(words / taken, 1000 * taken / done, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, loading)
"""
SIZES = (1, 4, 16, 64, 256)


def main(
    model: Annotated[str, typer.Argument(help="Name or folder of a pipeline")],
    texts: Annotated[Path, typer.Argument(help="Folder with .txt files")],
    rounds: Annotated[int, typer.Option(help="How often each is measured")] = 3,
    seconds: Annotated[float, typer.Option(help="How long it predicts each time")] = 10,
) -> None:
    """Predict in turn, and print the medians."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    found: dict[int, list[list[float]]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, rows in found.items():
            command = [sys.executable, "-c", PREDICT, model, str(texts), str(size), str(seconds)]
            printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            rows.append([float(value) for value in printed.split()])
    print("| texts in a batch | words a second | milliseconds a text | peak memory, MB |\n|---|---|---|---|")
    for size, rows in found.items():
        speed, text, memory, _ = (median(column) for column in zip(*rows, strict=True))
        print(f"| {size} | {speed:,.0f} | {text:.1f} | {memory:,.0f} |")
    print(f"loading takes {median(row[3] for rows in found.values() for row in rows):.1f} seconds")


if __name__ == "__main__":
    typer.run(main)

"""What does a pipeline take where it is used? Words a second and memory on one core, by the number of texts in a batch.

    python -m benchmarks.deploy assets/wnut2020_wlp/dev training/cpu/model-best en_ner   # folders, installed wheels

Each measurement is a process of its own, with one thread, that loads the pipeline and predicts the texts for some
seconds; batch sizes take turns. Memory is the peak of that process. A service that is asked for one text at a time has
batches of 1.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.measure import Cell, write_result

PREDICT = """
import resource, sys, time
from pathlib import Path
import spacy
try:
    import spacy_per_label
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
words = 0
start = time.perf_counter()
while time.perf_counter() - start < seconds:  # all texts, as often as that takes
    for doc in nlp.pipe(texts, batch_size=size):
        words += len(doc)
taken = time.perf_counter() - start
print(words / taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, loading)
"""
SIZES = (1, 4, 16, 64, 256)


def main(
    texts: Annotated[Path, typer.Argument(help="Folder with .txt files")],
    models: Annotated[list[str], typer.Argument(help="Names or folders of pipelines")],
    rounds: Annotated[int, typer.Option(help="How often each is measured")] = 3,
    seconds: Annotated[float, typer.Option(help="How long it predicts each time")] = 10,
) -> None:
    """Predict in turn, and write the medians."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    found: dict[tuple[str, int], list[list[float]]] = {(model, size): [] for model in models for size in SIZES}
    for _ in range(rounds):
        for (model, size), runs in found.items():
            command = [sys.executable, "-c", PREDICT, model, str(texts), str(size), str(seconds)]
            printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            runs.append([float(value) for value in printed.split()])
    rows: list[list[Cell]] = [[*key, *map(median, zip(*runs, strict=True))] for key, runs in found.items()]
    columns = {"pipeline": "", "texts in a batch": ",", "words per second": ",.0f", "memory, MB": ",.0f"}
    write_result("deploy", {**columns, "seconds to load": ".1f"}, rows)


if __name__ == "__main__":
    typer.run(main)

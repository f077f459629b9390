"""Speed and memory of training with each loader, as in Tables 1 to 3 of "Moving Stuff Around", and against spacy train.

    python -m benchmarks.loaders              # 6,000 and 60,000 texts of 3,500 characters: 20 GB of disk, an hour

Câmara and Hauff (ReNeuIR 2022) train a neural ranker on one to eight GPUs with documents in memory, indexed by offset,
or from ir_datasets' compressed blocks. Here it is NER on a CPU: in memory as spaCy has it, indexed, or streamed from
partitions. The tables are printed, and the memory over time drawn to benchmarks/loaders.svg.
"""

import shutil
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer

from benchmarks.measure import measure
from benchmarks.plot import draw_memory
from benchmarks.training import Trained, make_corpus, train_steps, train_stock

OUT = Path("benchmarks/out/loaders")
PLOT = Path("benchmarks/loaders.svg")
CONFIG = Path("configs/cpu.cfg")
RAM_DISK = Path("/dev/shm/labelwise-corpus")
FLAT_LIMIT = 1.05  # ten times the texts may take this many times the memory
LOADERS = ["in_memory", "indexed", "streamed"]


def train(corpus: Path, steps: int, loader: str, module: str = "scripts.train") -> Trained:
    """Train for `steps` steps, evaluating only at the first and the last."""
    taken, seen = train_steps(CONFIG, corpus, OUT, steps, "--loader", loader, module=module)
    return Trained(mean(row["words_per_second"] for row in seen), taken)


def main(
    corpus: Annotated[Path | None, typer.Option(help="Merged corpus of 6,000 texts; made if not given")] = None,
    corpus_large: Annotated[Path | None, typer.Option(help="Merged corpus of 60,000 texts")] = None,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
    rounds: Annotated[int, typer.Option(help="How often the comparison of speeds is repeated, in turn")] = 3,
) -> None:
    """Measure, print the tables, draw the plot; fail if streaming isn't flat."""
    OUT.mkdir(parents=True, exist_ok=True)
    folders = {"6,000": corpus or make_corpus(6000, OUT), "60,000": corpus_large or make_corpus(60000, OUT)}
    small, large = folders.values()
    turns = [
        (*(train(small, steps, loader) for loader in LOADERS), train_stock(CONFIG, small, OUT, steps))
        for _ in range(rounds)
    ]
    names = [*LOADERS, "spacy train"]
    runs = {("6,000", name): median_run(turn[number] for turn in turns) for number, name in enumerate(names)}
    tunings = tune(small, steps)
    epochs = {texts: measure("benchmarks.read_epoch", str(folder)) for texts, folder in folders.items()}
    runs |= {("60,000", loader): train(large, steps, loader) for loader in reversed(LOADERS)}
    print("\n| texts | loader | words per second | of in_memory | peak memory, MB |\n|---|---|---|---|---|")
    for (texts, name), run in runs.items():
        share = median(turn[names.index(name)].rate / turn[0].rate for turn in turns)
        ratio = share if texts == "6,000" else run.rate / runs["60,000", "in_memory"].rate
        print(f"| {texts} | {name} | {run.rate:,.0f} | {ratio:.2f} | {run.megabytes:,.0f} |")
    against = median(turn[2].rate / turn[3].rate for turn in turns)
    growth = {loader: runs["60,000", loader].megabytes / runs["6,000", loader].megabytes for loader in LOADERS}
    print(f"\nstreamed against spacy train: {against:.2f} of the words per second (median of {rounds})")
    print("ten times the texts take", ", ".join(f"{ratio:.2f} ({name})" for name, ratio in growth.items()))
    print("\n| streamed, tuning | words per second | of none | peak memory, MB |\n|---|---|---|---|")
    for tuning, run in tunings.items():
        print(f"| {tuning} | {run.rate:,.0f} | {run.rate / tunings['none'].rate:.2f} | {run.megabytes:,.0f} |")
    print("\n| a whole epoch, read and put into batches | seconds | peak memory, MB |\n|---|---|---|")
    for texts, taken in epochs.items():
        print(f"| {texts} texts | {taken.seconds:.0f} | {taken.peak_pss / 2**20:,.0f} |")
    draw_memory(
        PLOT,
        {f"{loader}, {texts} texts": runs[texts, loader].taken for loader in LOADERS for texts in folders},
        logarithmic="y",
    )
    if growth["streamed"] > FLAT_LIMIT:
        raise SystemExit(f"ten times the texts take {growth['streamed']:.2f} of the memory")


def tune(corpus: Path, steps: int) -> dict[str, Trained]:
    """Train as the study's Table 3 does, as far as it makes sense without GPUs."""
    shutil.copytree(corpus, RAM_DISK, dirs_exist_ok=True)
    try:
        return {
            "none": train(corpus, steps, "streamed"),
            "read-ahead process": train(corpus, steps, "streamed", "benchmarks.read_ahead"),
            "corpus on a RAM disk": train(RAM_DISK, steps, "streamed"),
        }
    finally:
        shutil.rmtree(RAM_DISK)


def median_run(runs: Any) -> Trained:
    """Choose the run whose speed is the median."""
    ordered = sorted(runs, key=lambda run: run.rate)
    return ordered[len(ordered) // 2]


if __name__ == "__main__":
    typer.run(main)

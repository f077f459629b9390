"""F1 on dev against F1 of the same texts when they aren't dev: how much does choosing the best step raise it?

    python -m benchmarks.dev_optimism --corpus assets/prodigy_jsonl/food_data.jsonl

The same training chooses its best step and its calibration once on half A of the held-out texts and once on half B. A's
gain is its F1 in the first training minus that in the second.
"""

import json
import random
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

from benchmarks.measure import Cell, mean_interval, spread, write_result
from benchmarks.public import merge_tasks, read_tasks
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

COLUMNS = {"corpus": "", "texts of train": ",", "texts of dev": ",", "seeds": ",", "F1 on dev": ".3f"}
COLUMNS |= {"gain, F1": "+.4f", "95% low": "+.4f", "95% high": "+.4f"}


def run_seed(corpus: Path, folder: Path, seed: int, size: int, held: int) -> list[tuple[float, float]]:
    """Train twice on random texts, with dev A and with dev B.

    size, held (int): texts of train, and of each half.
    RETURNS (list): by half, F1 as dev and as held-out texts; an earlier call's, if it has ended.
    """
    file = folder / "scores.json"
    if file.exists():
        return [(as_dev, as_test) for as_dev, as_test in json.loads(file.read_bytes())]
    folder.mkdir(parents=True)
    tasks = [*{task["text"]: task for part in read_tasks(corpus, folder) for task in part}.values()]
    random.Random(seed).shuffle(tasks)
    labels = sorted({span["label"] for task in tasks for span in task["spans"]})
    halves = {"A": tasks[:held], "B": tasks[held : 2 * held]}
    scores: dict[str, tuple[float, float]] = {}
    for dev, test in (("A", "B"), ("B", "A")):
        datasets = {"train": tasks[2 * held :][:size], "dev": halves[dev], "test": halves[test]}
        entries = [{"name": name, "labels": labels, "kind": "complete", "split": name} for name in datasets]
        merged, _ = merge_tasks(datasets, entries, folder / dev)
        config = TrainingConfig(default_config("cpu"), merged, seed=seed)
        train_pipeline(config, folder / f"{dev}/model", folder / f"{dev}/curve.tsv")
        metrics = evaluate_pipeline(folder / f"{dev}/model", merged / "test", dev=merged / "dev").metrics
        assert metrics.dev
        scores[dev] = metrics.dev.all_gold.f or 0, metrics.all_gold.f or 0
    gains = [(scores[dev][0], scores[other][1]) for dev, other in (("A", "B"), ("B", "A"))]
    file.write_text(json.dumps(gains), encoding="utf8")
    return gains


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/optimism"),
    seeds: Annotated[int, typer.Option(help="Repetitions, each with other texts")] = 6,
    size: Annotated[int, typer.Option(help="Texts of train")] = 100,
    held: Annotated[int, typer.Option(help="Texts of dev, and as many of test")] = 50,
) -> None:
    """Train all, and write the table."""
    rows: list[list[Cell]] = []
    every: list[float] = []
    for place in corpus:
        results = [run_seed(place, folder / f"{place.stem}-{seed}", seed, size, held) for seed in range(seeds)]
        # Of a seed, the two halves share their trainings: their mean is one observation.
        gains = [mean(as_dev - as_test for as_dev, as_test in halves) for halves in results]
        every += gains
        f1 = spread([as_dev for halves in results for as_dev, _ in halves])
        rows.append([place.stem, size, held, seeds, f1, *mean_interval(gains)])
    rows.append(["all", size, held, len(every), None, *mean_interval(every)])
    write_result("dev_optimism", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)

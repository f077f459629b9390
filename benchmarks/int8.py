"""`small`, trained once and predicting in fp32 and in int8: F1 and speed.

    python -m benchmarks.int8 --corpus assets/prodigy_jsonl/food_data.jsonl

Both predict with the same weights. An interrupted command continues where it stopped.
"""

import json
import shutil
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer

from benchmarks.layers import Scores, merge_words, score
from benchmarks.measure import Cell, spread, write_result
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

COLUMNS = {"corpus": "", "texts": ",", "steps": ",", "predicts in": "", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
COLUMNS |= {"gain over fp32, F1": "", "their mean": "+.4f", "words per CPU second": ",.0f", "times fp32's": ".1f"}


def train(corpus: Path, out: Path, seed: int, steps: int) -> dict[str, Scores]:
    """Train `small`, and score it in fp32 and in int8; or read the kept scores."""
    file = out / "scores.json"
    if not file.exists():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        training = TrainingConfig(default_config("small"), corpus, seed=seed, max_steps=steps)
        train_pipeline(training, out / "model", out / "curve.tsv")
        scores = {"fp32": score(out / "model", corpus, 0)}
        config = out / "model/config.cfg"
        config.write_text(config.read_text(encoding="utf8").replace("int8 = false", "int8 = true"), encoding="utf8")
        scores["int8"] = score(out / "model", corpus, 0)
        file.write_text(json.dumps(scores), encoding="utf8")
        shutil.rmtree(out / "model")
    return {way: Scores(*score) for way, score in json.loads(file.read_bytes()).items()}


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 60,
    folder: Annotated[Path, typer.Option(help="Folder for corpora and scores")] = Path("benchmarks/out/int8"),
    seeds: Annotated[int, typer.Option(help="Trainings, on other texts")] = 3,
) -> None:
    """Train all, and write the table after each corpus."""
    rows: list[list[Cell]] = []
    for place in corpus:
        folders = [folder / f"{place.stem}-{seed}" for seed in range(seeds)]
        merged = [merge_words(place, own, seed) for seed, own in enumerate(folders)]
        texts = round(median(count for _, count in merged))
        scores = [
            train(merged_corpus, own / str(steps), seed, steps)
            for seed, (own, (merged_corpus, _)) in enumerate(zip(folders, merged, strict=True))
        ]
        for way in ("fp32", "int8"):
            way_scores = [by_way[way] for by_way in scores]
            gains = [by_way[way].f1 - by_way["fp32"].f1 for by_way in scores]
            cells = [" ".join(f"{gain:+.3f}" for gain in gains), mean(gains)] if way == "int8" else ["", None]
            f1 = spread([score.f1 for score in way_scores]), spread([score.macro_f1 for score in way_scores])
            times = median(by_way[way].words / by_way["fp32"].words for by_way in scores)
            words = median(score.words for score in way_scores)
            rows.append([place.stem, texts, steps, way, seeds, *f1, *cells, words, times])
        write_result("int8", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)

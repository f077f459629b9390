"""`small`, trained once and predicting in fp32 and in int8: what does int8 cost in F1, and how much faster is it?

    python -m benchmarks.int8 --corpus assets/prodigy_jsonl/food_data.jsonl

Both predict with the same weights. An interrupted command continues where it stopped.
"""

import json
import shutil
import time
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer

from benchmarks.layers import merge_words
from benchmarks.measure import Cell, spread, write_result
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline, predict_each
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

COLUMNS = {"corpus": "", "texts": ",", "steps": ",", "predicts in": "", "seeds": ",", "F1": ".3f", "macro F1": ".3f"}
COLUMNS |= {"gain over fp32, F1": "", "their mean": "+.4f", "words per CPU second": ",.0f", "times fp32's": ".1f"}


def score(model: Path, corpus: Path) -> list[float]:
    """Return F1 and macro F1 on test, and words predicted per CPU second."""
    found = evaluate_pipeline(model, corpus / "test", dev=corpus / "dev").metrics.all_gold
    nlp = load_pipeline(model)
    nlp("Some words, before time counts.")
    texts = [stored for file in find_partitions(corpus / "test") for stored in read_stored_docs(file)]
    began = time.process_time()
    words = sum(len(doc) for _, doc in predict_each(nlp, iter(texts), len))
    return [found.f or 0, found.macro.f or 0, words / (time.process_time() - began)]


def train(corpus: Path, out: Path, seed: int, steps: int) -> dict[str, list[float]]:
    """Train `small`, and score it in fp32 and in int8; or read the kept scores."""
    kept = out / "scores.json"
    if not kept.exists():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        wanted = TrainingConfig(default_config("small"), corpus, seed=seed, max_steps=steps)
        train_pipeline(wanted, out / "model", out / "curve.tsv")
        scores = {"fp32": score(out / "model", corpus)}
        config = out / "model/config.cfg"
        config.write_text(config.read_text(encoding="utf8").replace("int8 = false", "int8 = true"), encoding="utf8")
        scores["int8"] = score(out / "model", corpus)
        kept.write_text(json.dumps(scores), encoding="utf8")
        shutil.rmtree(out / "model")
    return json.loads(kept.read_bytes())


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
            train(made, own / str(steps), seed, steps)
            for seed, (own, (made, _)) in enumerate(zip(folders, merged, strict=True))
        ]
        for way in ("fp32", "int8"):
            *f1, words = zip(*(each[way] for each in scores), strict=True)
            gains = [each[way][0] - each["fp32"][0] for each in scores]
            told = [" ".join(f"{gain:+.3f}" for gain in gains), mean(gains)] if way == "int8" else ["", None]
            times = median(each[way][2] / each["fp32"][2] for each in scores)
            rows.append([place.stem, texts, steps, way, seeds, *map(spread, f1), *told, median(words), times])
        write_result("int8", COLUMNS, rows)


if __name__ == "__main__":
    typer.run(main)

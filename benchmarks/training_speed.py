"""Speed and memory of training, against `spacy train`, with one process and with two.

    python -m benchmarks.training_speed assets/wnut2020_wlp assets/prodigy_jsonl/food_data.jsonl

Several corpora show the effect of texts' length: processes share out the texts of a batch. Trainings alternate: `spacy
train` with configs/ner.cfg and its own corpus; labelwise with configs/ner.cfg and configs/cpu.cfg. Speeds are after the
warm-up; dev has one text, so evaluation takes no time. Ratios are within a round, of words per CPU second of all
processes. Trainings load this module: its batcher records the time of each step.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.util import load_config
from thinc.api import Config

import labelwise.train.registry  # noqa: F401  the corpus's tokenizer
from benchmarks.measure import measure, write_result
from benchmarks.public import merge
from labelwise.corpus.manifest import read_manifest

OUT = Path("benchmarks/out/training_speed")
CONFIGS = Path("configs")
STOCK = "spacy train, ner"
WARM_UP = 10  # steps that aren't counted


class Trained(NamedTuple):
    """Words per second and per CPU second of a training's steps, and its peak of memory."""

    rate: float
    cpu_rate: float
    megabytes: float


def configure(pipeline: str, steps: int) -> Config:
    """Read a config, with a batcher that records the time of its steps."""
    (OUT / "configs").mkdir(parents=True, exist_ok=True)
    for file in OUT.glob("steps.tsv.*"):
        file.unlink()
    config = load_config(CONFIGS / f"{pipeline}.cfg", interpolate=False)
    batcher = {"@batchers": "benchmarks.timed_batch_by_words.v1", "path": str((OUT / "steps.tsv").absolute())}
    batcher["size"] = config["training"]["batcher"]["size"]
    config["training"] |= {"max_steps": steps, "eval_frequency": steps, "batcher": batcher}
    config["corpora"]["dev"]["limit"] = 1
    return config


def train(corpus: Path, steps: int, *options: str, pipeline: str = "cpu", reader: str = "") -> Trained:
    """Train for `steps` steps.

    reader (str): one of `benchmarks.loaders`, in place of the config's.
    """
    config = configure(pipeline, steps)
    config["labelwise"]["epochs"] = 0
    config["training"]["eval_frequency"] = steps // 4
    if reader:
        config["corpora"]["train"]["@readers"] = reader
    config.to_disk(OUT / "configs" / f"{pipeline}.cfg")
    measured = measure("benchmarks.loaded_train", pipeline, "--corpus", str(corpus.absolute()), *options, cwd=OUT)
    return read_steps(measured.megabytes)


def train_stock(corpus: Path, steps: int) -> Trained:
    """Train with `spacy train` as it is: its own corpus, shuffled in memory, and batches of the same size."""
    config = configure("ner", steps)
    for split in ("train", "dev"):
        limit = config["corpora"][split]["limit"]
        config["corpora"][split] = {"@readers": "spacy.Corpus.v1", "path": str(corpus / split), "limit": limit}
    config["training"]["max_epochs"] = 0
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None}
    config["paths"]["corpus"] = str(corpus)
    config.to_disk(OUT / "stock.cfg")
    measured = measure("spacy", "train", str(OUT / "stock.cfg"), "--output", str(OUT / "stock"), "--code", __file__)
    return read_steps(measured.megabytes)


def read_steps(megabytes: float) -> Trained:
    """Read the records of all processes' batchers."""
    seconds, cpu_seconds = [], []
    for file in OUT.glob("steps.tsv.*"):
        rows = [tuple(map(float, line.split("\t"))) for line in file.read_text(encoding="utf8").splitlines()]
        (start, cpu_start, before), (end, cpu_end, words) = rows[WARM_UP], rows[-1]
        seconds.append(end - start)
        cpu_seconds.append(cpu_end - cpu_start)
    return Trained((words - before) / max(seconds), (words - before) / sum(cpu_seconds), megabytes)


@spacy.registry.batchers("benchmarks.timed_batch_by_words.v1")
def make_timed_batcher(size: int, path: Path) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make spaCy's batcher, which also writes a line per batch: seconds, CPU seconds, words until then.

    Each epoch and each process calls it, with a file of its own.
    """
    batch_by_words = spacy.registry.batchers.get("spacy.batch_by_words.v1")(
        size=size, tolerance=0.2, discard_oversize=False
    )
    words = 0

    def batch(examples: Iterable[Any]) -> Iterator[Any]:
        nonlocal words
        with Path(f"{path}.{os.getpid()}").open("a", encoding="utf8") as file:
            for examples_of_batch in batch_by_words(examples):
                print(time.perf_counter(), time.process_time(), words, sep="\t", file=file, flush=True)
                yield examples_of_batch
                words += sum(len(eg) for eg in examples_of_batch)

    return batch


def main(
    corpora: Annotated[list[Path], typer.Argument(help="As `public` says")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
    rounds: Annotated[int, typer.Option(help="How often each is trained")] = 3,
    workers: Annotated[list[int], typer.Option(help="Processes of labelwise's")] = [1, 2],  # noqa: B006
) -> None:
    """Alternate the trainings, and write medians."""
    columns = {"corpus": "", "words of a text": ",.0f", "training": "", "words per CPU second": ",.0f"}
    columns |= {"of spacy train": ".2f", "words per second": ",.0f", "memory, MB": ",.0f"}
    rows: list[tuple[Any, ...]] = []
    for corpus in corpora:
        with TemporaryDirectory() as folder:
            rows += compare(corpus.stem, merge(corpus, "all", Path(folder)), steps, rounds, workers)
    write_result("training_speed", columns, rows)


def compare(name: str, corpus: Path, steps: int, rounds: int, workers: list[int]) -> Iterator[tuple[Any, ...]]:
    """Alternate the trainings on a corpus, and yield a row for each kind."""
    runs: dict[str, list[Trained]] = {STOCK: []}
    for _ in range(rounds):
        runs[STOCK].append(train_stock(corpus, steps))
        for (pipeline, recognizer), count in product((("ner", "ner"), ("cpu", "per-label")), workers):
            kind = f"{recognizer}, {count} process{'es' if count > 1 else ''}"
            run = train(corpus, steps, "--workers", str(count), pipeline=pipeline)
            runs.setdefault(kind, []).append(run)
    split = read_manifest(corpus).splits["train"]
    for kind, trained in runs.items():
        ratios = [
            run_of_round.cpu_rate / stock.cpu_rate for run_of_round, stock in zip(trained, runs[STOCK], strict=True)
        ]
        spread = (median(ratios), min(ratios), max(ratios))
        rate, cpu_rate, memory = (median(values) for values in zip(*trained, strict=True))
        yield name, split.words / split.texts, kind, cpu_rate, spread, rate, memory


if __name__ == "__main__":
    typer.run(main)

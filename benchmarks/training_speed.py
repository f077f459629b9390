"""How fast is training, against `spacy train`, with one process and with two, and what memory does it take?

    python -m benchmarks.training_speed assets/wnut2020_wlp assets/prodigy_jsonl/food_data.jsonl

Several corpora show what the length of texts does: processes share out the texts of a batch, each of them whole.
Everything is trained in turn, round after round: `spacy train` with configs/ner.cfg, its own corpus and its own batches
of the same size; then labelwise, with configs/ner.cfg and configs/cpu.cfg. Words a second are those of the steps after
the warm-up, without evaluation; ratios are within a round. A process computes in one thread. `spacy train` loads this
module as its code: the batcher notes the time of each step.
"""

import csv
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import harmonic_mean, median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import spacy
import typer
from spacy.util import load_config

import labelwise.train.registry  # noqa: F401  the corpus's tokenizer
from benchmarks.measure import measure, write_result
from benchmarks.public import merge
from labelwise.corpus.manifest import read_manifest

OUT = Path("benchmarks/out/training_speed")
CONFIGS = Path("configs")
STOCK = "spacy train, ner"
WARM_UP = 10  # steps that aren't counted


class Trained(NamedTuple):
    """Words per second of a training's steps, and the peak of its memory."""

    rate: float
    megabytes: float


def train(corpus: Path, steps: int, *options: str, pipeline: str = "cpu", reader: str = "") -> Trained:
    """Train for `steps` steps, of which all after the first evaluation count, which comes after the warm-up.

    reader (str): a registered one of `benchmarks.loaders`, in place of the config's.
    """
    (OUT / "configs").mkdir(parents=True, exist_ok=True)
    config = load_config(CONFIGS / f"{pipeline}.cfg", interpolate=False)
    config["training"] |= {"max_steps": steps, "eval_frequency": max(WARM_UP, steps // 4)}
    config["labelwise"]["epochs"] = 0
    if reader:
        config["corpora"]["train"]["@readers"] = reader
    config.to_disk(OUT / "configs" / f"{pipeline}.cfg")
    given = [pipeline, "--corpus", str(corpus.absolute()), *options]
    taken = measure("benchmarks.loaded_train" if reader else "scripts.train", *given, cwd=OUT)
    with (OUT / "training" / pipeline / "resources.tsv").open() as file:
        _, *rows = csv.DictReader(file, delimiter="\t")  # of each evaluation, after as many steps
    return Trained(harmonic_mean([float(row["words_per_second"]) for row in rows]), taken.megabytes)


def train_stock(corpus: Path, steps: int) -> Trained:
    """Train with `spacy train` as it is: its own corpus, shuffled in memory, and its own batches of the same size."""
    OUT.mkdir(parents=True, exist_ok=True)
    config = load_config(CONFIGS / "ner.cfg", interpolate=False)
    for split in ("train", "dev"):
        config["corpora"][split] = {"@readers": "spacy.Corpus.v1", "path": str(corpus / split), "max_length": 0}
    size, times = config["training"]["batcher"]["size"], OUT / "steps.tsv"
    batcher = {"@batchers": "benchmarks.timed_batch_by_words.v1", "size": size, "path": str(times)}
    config["training"] |= {"max_steps": steps, "max_epochs": 0, "eval_frequency": steps, "batcher": batcher}
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None}
    config["paths"]["corpus"] = str(corpus)
    config.to_disk(OUT / "stock.cfg")
    taken = measure("spacy", "train", str(OUT / "stock.cfg"), "--output", str(OUT / "stock"), "--code", __file__)
    rows = [tuple(map(float, line.split("\t"))) for line in times.read_text().splitlines()]
    (start, before), (end, words) = rows[WARM_UP], rows[-1]
    return Trained((words - before) / (end - start), taken.megabytes)


@spacy.registry.batchers("benchmarks.timed_batch_by_words.v1")
def make_timed_batcher(size: int, path: Path) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make spaCy's batcher, which also writes a line for each batch: seconds, and the words trained on until then.

    It is asked for batches once in each epoch.
    """
    batch_by_words = spacy.registry.batchers.get("spacy.batch_by_words.v1")(
        size=size, tolerance=0.2, discard_oversize=False
    )

    Path(path).write_bytes(b"")
    words = 0

    def batch(examples: Iterable[Any]) -> Iterator[Any]:
        nonlocal words
        with Path(path).open("a", encoding="utf8") as file:
            for examples_of_batch in batch_by_words(examples):
                print(time.perf_counter(), words, sep="\t", file=file, flush=True)
                yield examples_of_batch
                words += sum(len(eg) for eg in examples_of_batch)

    return batch


def main(
    corpora: Annotated[list[Path], typer.Argument(help="As `public` says")],
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
    rounds: Annotated[int, typer.Option(help="How often each is trained")] = 3,
) -> None:
    """Train in turn, and write medians."""
    columns = {"corpus": "", "words of a text": ",.0f", "training": ""}
    columns |= {"words per second": ",.0f", "of spacy train": ".2f", "memory, MB": ",.0f"}
    rows: list[tuple[Any, ...]] = []
    for corpus in corpora:
        with TemporaryDirectory() as folder:
            rows += compare(corpus.stem, merge(corpus, "all", Path(folder)), steps, rounds)
    write_result("training_speed", columns, rows)


def compare(name: str, corpus: Path, steps: int, rounds: int) -> Iterator[tuple[Any, ...]]:
    """Train on a corpus in turn, and yield a row for each kind of training."""
    runs: dict[str, list[Trained]] = {STOCK: []}
    for _ in range(rounds):
        runs[STOCK].append(train_stock(corpus, steps))
        for pipeline, recognizer in (("ner", "ner"), ("cpu", "per-label")):
            for workers in (1, 2):
                kind = f"{recognizer}, {workers} process{'es' if workers > 1 else ''}"
                found = train(corpus, steps, "--workers", str(workers), pipeline=pipeline)
                runs.setdefault(kind, []).append(found)
    split = read_manifest(corpus).splits["train"]
    for kind, trained in runs.items():
        ratios = [one.rate / stock.rate for one, stock in zip(trained, runs[STOCK], strict=True)]
        spread = (median(ratios), min(ratios), max(ratios))
        rate, memory = median(one.rate for one in trained), median(one.megabytes for one in trained)
        yield name, split.words / split.texts, kind, rate, spread, memory


if __name__ == "__main__":
    typer.run(main)

"""Train for some steps, and read how fast they were: what the training benchmarks share."""

import csv
import shutil
from pathlib import Path
from typing import NamedTuple

from spacy.util import load_config
from thinc.api import Config

from benchmarks.measure import Measured, measure, project_with

DEV = 300  # texts, roughly
WARM_UP = 10  # steps that aren't counted


class Trained(NamedTuple):
    """What a training took: words per second in its steps, and what was measured from outside."""

    rate: float
    taken: Measured

    @property
    def megabytes(self) -> float:
        """The peak of the memory."""
        return self.taken.megabytes


def make_corpus(docs: int, out: Path, *, words: int = 790, dev_ratio: float = 0.0, test_ratio: float = 0.0) -> Path:
    """Make and merge data sets of 5 labels over `docs` texts, unless that is done.

    dev_ratio (float): of the texts; 0 for as many as make DEV texts.
    """
    corpus = out / f"corpus-{docs}"
    if not (corpus / "manifest.json").exists():
        tasks = out / f"tasks-{docs}"
        measure("scripts.make_demo", str(tasks), *f"--format prodigy --docs {docs} --labels 5 --words {words}".split())
        options = project_with(tasks, near_duplicates="off", dev_ratio=dev_ratio or DEV / docs, test_ratio=test_ratio)
        measure("scripts.merge", str(tasks / "datasets.yml"), str(corpus), *options)
        shutil.rmtree(tasks)
        shutil.rmtree(corpus / ".cache")
    return corpus


def train_steps(config_file: Path, corpus: Path, out: Path, steps: int, *options: str, reader: str = "") -> Trained:
    """Train for `steps` steps, of which all after the first evaluation count, which comes after the warm-up.

    reader (str): a registered one of `benchmarks.loaders`, in place of the config's.
    """
    config = load_config(config_file, interpolate=False)
    config["training"] |= {"max_steps": steps, "eval_frequency": max(WARM_UP, steps // 2)}
    if reader:
        config["corpora"]["train"]["@readers"] = reader
    config.to_disk(out / "config.cfg")
    files = [str(out / "config.cfg"), str(corpus), str(out / "model"), "--curve", str(out / "curve.tsv")]
    taken = measure("benchmarks.loaded_train" if reader else "scripts.train", *files, *options)
    with (out / "resources.tsv").open() as file:
        *_, last = csv.DictReader(file, delimiter="\t")
    return Trained(float(last["words_per_second"]), taken)


def train_stock(config_file: Path, corpus: Path, out: Path, steps: int) -> Trained:
    """Train with `spacy train` as it is: its own corpus, shuffled in memory, and its own batches of the same size."""
    config = stock_config(config_file, corpus)
    config["training"] |= {"max_steps": steps, "eval_frequency": steps}
    size, times = config["training"]["batcher"]["size"], out / "steps.tsv"
    config["training"]["batcher"] = {
        "@batchers": "labelwise.timed_batch_by_words.v1",
        "size": size,
        "path": str(times),
    }
    config.to_disk(out / "stock.cfg")
    options = ["--output", str(out / "stock"), "--code", "benchmarks/stock.py"]
    taken = measure("spacy", "train", str(out / "stock.cfg"), *options)
    rows = [tuple(map(float, line.split("\t"))) for line in times.read_text().splitlines()]
    (start, before), (end, words) = rows[WARM_UP], rows[-1]
    return Trained((words - before) / (end - start), taken)


def stock_config(config_file: Path, corpus: Path) -> Config:
    """Change a config for `spacy train`: its own corpus, shuffled in memory, its own batches of the same size."""
    config = load_config(config_file, interpolate=False)
    for split in ("train", "dev"):
        config["corpora"][split] = {"@readers": "spacy.Corpus.v1", "path": str(corpus / split), "max_length": 0}
    config["training"]["max_epochs"] = 0
    config["training"]["batcher"] = {
        "@batchers": "spacy.batch_by_words.v1",
        "size": config["training"]["batcher"]["size"],
        "tolerance": 0.2,
        "discard_oversize": False,
    }
    config["training"]["logger"] = {"@loggers": "spacy.ConsoleLogger.v3", "progress_bar": None}
    config["paths"]["corpus"] = str(corpus)
    return config

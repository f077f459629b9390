"""What the configs name: give this file to spaCy's commands with `--code labelwise/registry.py`.

All of it is for training only. A trained model holds none of it, and loads where labelwise isn't installed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import spacy
from spacy.language import Language

from labelwise.curve import Curve
from labelwise.errors import InputError
from labelwise.reader import PartitionedCorpus
from labelwise.tokenizer import extend_tokenizer, read_tokenizer

Logger = Callable[[Language, IO[str], IO[str]], tuple[Callable[[dict[str, Any] | None], None], Callable[[], None]]]


@spacy.registry.readers("labelwise.PartitionedCorpus.v1")
def make_partitioned_corpus(path: Path, shuffle: bool, seed: int, limit: int) -> PartitionedCorpus:
    """Make a reader of a folder of partitions; see `reader.PartitionedCorpus`."""
    return PartitionedCorpus(Path(path), shuffle=shuffle, seed=seed, limit=limit)


@spacy.registry.callbacks("labelwise.corpus_tokenizer.v1")
def make_corpus_tokenizer(path: Path) -> Callable[[Language], Language]:
    """Make a `before_init` callback that gives the pipeline the tokenizer that the corpus was merged with.

    path (Path): the corpus's tokenizer.json.
    """

    def set_tokenizer(nlp: Language) -> Language:
        lang, rules = read_tokenizer(Path(path))
        if lang != nlp.lang:
            raise InputError(f"{path}: the corpus is {lang!r}, the pipeline {nlp.lang!r}; set nlp.lang")
        extend_tokenizer(nlp, rules)
        return nlp

    return set_tokenizer


@spacy.registry.loggers("labelwise.TsvLogger.v1")
def make_tsv_logger(path: Path, progress_bar: str | None = None) -> Logger:
    """Make a logger that prints spaCy's table and writes the training curve; see `curve.Curve`.

    path (Path): the TSV file; it is there when training has ended well.
    progress_bar (str | None): None, "train" or "eval", as for `spacy.ConsoleLogger.v3`.
    """
    console = spacy.registry.loggers.get("spacy.ConsoleLogger.v3")(progress_bar=progress_bar)

    def setup(nlp: Language, stdout: IO[str], stderr: IO[str]) -> Any:
        log_console, finish_console = console(nlp, stdout, stderr)
        curve = Curve(nlp, Path(path))

        def log(info: dict[str, Any] | None) -> None:
            log_console(info)
            if info is not None:
                curve.add(info)

        def finish() -> None:
            finish_console()
            curve.close()

        return log, finish

    return setup

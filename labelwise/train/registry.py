"""What the configs name: give this file to spaCy's commands with `--code labelwise/train/registry.py`.

All of it is for training only. A trained model holds none of it, and loads where labelwise isn't installed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import spacy
from spacy.language import Language

import labelwise.recognizer.per_label  # noqa: F401  registers its component
from labelwise.common.errors import InputError
from labelwise.corpus.tokenizer import extend_tokenizer, read_tokenizer
from labelwise.train.batches import CostBatcher
from labelwise.train.loggers import Curve, ProgressTable
from labelwise.train.reader import PartitionedCorpus

Logger = Callable[[Language, IO[str], IO[str]], tuple[Callable[[dict[str, Any] | None], None], Callable[[], None]]]


spacy.registry.readers("labelwise.PartitionedCorpus.v1", func=PartitionedCorpus)
spacy.registry.batchers("labelwise.batch_by_cost.v1", func=CostBatcher)


@spacy.registry.architectures("labelwise.TransformerModel.v1")
def make_transformer_model(
    name: str,
    get_spans: Callable[..., Any],
    tokenizer_config: dict[str, Any],
    transformer_config: dict[str, Any],
    precision: str,
    grad_scaler_config: dict[str, Any],
) -> Any:
    """Make spacy-transformers' TransformerModel.v3 in a precision; see `precision.set_precision`."""
    from spacy_transformers import TransformerModel

    from labelwise.recognizer.precision import set_precision

    model = TransformerModel(name, get_spans, tokenizer_config, transformer_config)
    set_precision(model, precision, grad_scaler_config)
    return model


@spacy.registry.callbacks("labelwise.corpus_tokenizer.v1")
def make_corpus_tokenizer(path: Path) -> Callable[[Language], Language]:
    """Make a `before_init` callback that gives the pipeline the tokenizer that the corpus was merged with.

    path (Path): the corpus's tokenizer.json.
    """

    def set_tokenizer(nlp: Language) -> Language:
        """Give a pipeline the rules of the corpus."""
        lang, rules = read_tokenizer(Path(path))
        if lang != nlp.lang:
            raise InputError(f"{path}: the corpus is {lang!r}, the pipeline {nlp.lang!r}; set nlp.lang")
        extend_tokenizer(nlp, rules)
        return nlp

    return set_tokenizer


@spacy.registry.loggers("labelwise.TsvLogger.v1")
def make_tsv_logger(path: Path | None) -> Logger:
    """Make a logger that prints a table and writes the training curve; see `loggers.ProgressTable` and `loggers.Curve`.

    path (Path | None): the TSV file; None for a logger that does nothing.
    """
    if path is None:
        return lambda nlp, stdout, stderr: (lambda info: None, lambda: None)

    def setup(nlp: Language, stdout: IO[str], stderr: IO[str]) -> Any:
        """Begin the table and the curve of a training."""
        table, curve = ProgressTable(nlp, stdout, stderr), Curve(nlp, Path(path))

        def log(info: dict[str, Any] | None) -> None:
            """Add a step to both; None, or no scores, if it wasn't evaluated."""
            evaluated = info if info and info["other_scores"] else None
            table.step(evaluated)
            if evaluated:
                curve.add(evaluated)

        return log, table.close

    return setup

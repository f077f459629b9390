"""Functions for the configs, which spaCy's commands find by labelwise's entry points.

All are for training only. A trained model has none, and loads without labelwise.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import spacy
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.corpus.manifest import read_manifest
from labelwise.corpus.tokenizer import extend_tokenizer, read_tokenizer
from labelwise.train.logger import make_logger  # noqa: F401  registers it
from labelwise.train.reader import PartitionedCorpus
from spacy_per_label import PerLabelRecognizer  # noqa: F401


@spacy.registry.callbacks("labelwise.corpus_tokenizer.v1")
def make_corpus_tokenizer(path: Path) -> Callable[[Language], Language]:
    """Make a `before_init` callback that sets the tokenizer of the corpus."""

    def set_tokenizer(nlp: Language) -> Language:
        lang, rules = read_tokenizer(Path(path))
        if lang != nlp.lang:
            raise InputError(f"{path}: the corpus is {lang!r}, the pipeline {nlp.lang!r}; set nlp.lang")
        extend_tokenizer(nlp, rules)
        return nlp

    return set_tokenizer


@spacy.registry.schedules("labelwise.warmup_linear.v1")
def make_warmup_linear(initial_rate: float, warmup: float, total_steps: int) -> Iterator[float]:
    """Yield rates that rise to the initial one, and then fall to zero, like `warmup_linear.v1`.

    warmup (float): share of the steps with rising rates.
    """
    rising = max(1, round(warmup * total_steps))
    for step in count():
        factor = step / rising if step < rising else (total_steps - step) / max(1, total_steps - rising)
        yield initial_rate * max(0.0, factor)


@spacy.registry.readers("labelwise.taught_labels.v1")
def read_taught_labels(path: Path, limit: int = 0, leave_out: int = 0, folds: int = 0) -> list[str]:
    """List the labels that some training text is complete for; stops reading when all are.

    With accepted and rejected spans alone, nothing shows where a label isn't, so its head would predict it everywhere.

    RAISES (InputError): if no label is left.
    """
    manifest = read_manifest(Path(path))
    if manifest.settings["coverage"] != "by-label":
        return sorted(manifest.labels)
    untaught = set(manifest.labels)
    for doc in PartitionedCorpus(Path(path) / "train", limit=limit, leave_out=leave_out, folds=folds).texts():
        untaught &= doc.annotation.uncovered.keys()
        if not untaught:
            break
    if untaught and len(untaught) == len(manifest.labels):
        raise InputError(
            f"{path}/train: no text in train is complete for a label. Answers to single spans (ner.teach) "
            "don't show which words aren't entities. Annotate some texts for all of their spans (ner.manual, "
            "ner.correct), and merge again"
        )
    return sorted(set(manifest.labels) - untaught)

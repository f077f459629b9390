"""What the configs name: give this file to spaCy's commands with `--code labelwise/train/registry.py`.

All of it is for training only. A trained model holds none of it, and loads where labelwise isn't installed.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import spacy
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.corpus.tokenizer import extend_tokenizer, read_tokenizer
from labelwise.train.logger import make_logger  # noqa: F401  registers it
from labelwise.train.reader import PartitionedCorpus  # noqa: F401
from spacy_per_label import PerLabelRecognizer  # noqa: F401


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


@spacy.registry.schedules("labelwise.warmup_linear.v1")
def make_warmup_linear(initial_rate: float, warmup: float, total_steps: int) -> Iterator[float]:
    """Yield rates that rise to the initial one, and then fall to zero, as `warmup_linear.v1` does.

    warmup (float): the share of the steps in which they rise.
    """
    rising = max(1, round(warmup * total_steps))
    for step in count():
        factor = step / rising if step < rising else (total_steps - step) / max(1, total_steps - rising)
        yield initial_rate * max(0.0, factor)

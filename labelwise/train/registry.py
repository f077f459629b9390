"""What the configs name: give this file to spaCy's commands with `--code labelwise/train/registry.py`.

All of it is for training only. A trained model holds none of it, and loads where labelwise isn't installed.
"""

from collections.abc import Callable
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

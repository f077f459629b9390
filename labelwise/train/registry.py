"""What the configs name: give this file to spaCy's commands with `--code labelwise/train/registry.py`.

All of it is for training only. A trained model holds none of it, and loads where labelwise isn't installed.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import spacy
from spacy.language import Language

from labelwise.base.errors import InputError
from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions, read_manifest
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


@spacy.registry.readers("labelwise.taught_labels.v1")
def read_taught_labels(path: Path, keep_untaught: bool = False) -> list[str]:
    """List the labels of a corpus that some text of train is complete for; reads until all are.

    Where single spans were judged, nothing says where a label isn't, so its head would mark everything.

    path (Path): the folder that the merge wrote.
    keep_untaught (bool): list all of its labels.
    RAISES (InputError): no label would be left.
    """
    manifest = read_manifest(Path(path))
    untaught = set() if keep_untaught or manifest.settings["coverage"] != "by-label" else set(manifest.labels)
    for file in find_partitions(Path(path) / "train") if untaught else ():
        for doc in read_stored_docs(file):
            if len(doc):
                untaught &= doc.annotation.uncovered.keys()
    if untaught and len(untaught) == len(manifest.labels):
        raise InputError(
            f"{path}/train: no text in train is complete for a label. Where single spans were judged (ner.teach), "
            "nothing says which other words aren't entities. Annotate some texts for all of their spans (ner.manual, "
            "ner.correct), or set keep_untaught = true in the config; it then marks too much"
        )
    return sorted(set(manifest.labels) - untaught)

"""Work through a corpus piece by piece, so that neither texts nor their words pile up."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, TypeVar

from spacy.language import Language

Item = TypeVar("Item")
BATCH_WORDS = 4000  # roughly how many words are predicted at a time
BATCH_TEXTS = 256  # how many short texts, by a transformer
MAX_STRINGS = 30_000  # in a vocabulary, of about half a kilobyte each


def take_batch(items: Iterator[Item], most: int, words: Callable[[Item], int]) -> list[Item]:
    """Take at most `most` items, and stop once they have BATCH_WORDS words."""
    batch, taken = [], 0
    for item in islice(items, most):
        batch.append(item)
        taken += words(item)
        if taken >= BATCH_WORDS:
            break
    return batch


def texts_at_a_time(nlp: Language) -> int:
    """Tell how many texts a pipeline predicts at a time, if they are short.

    Configs of transformers have few, since spaCy holds what they compute of each; here their words limit it.
    """
    return max(nlp.batch_size, BATCH_TEXTS) if "transformer" in nlp.pipe_names else nlp.batch_size


def forgetting(nlp: Language) -> AbstractContextManager[Any]:
    """Make a block whose Docs can't be used once it has ended: if the vocabulary is large, it forgets their words."""
    vocab: Any = nlp.vocab
    large = len(vocab.strings) > MAX_STRINGS and not vocab.in_memory_zone
    return nlp.memory_zone() if large else nullcontext()

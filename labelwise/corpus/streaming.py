"""Work through a corpus piece by piece, so that neither texts nor their words pile up."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, TypeVar

from spacy.language import Language

Item = TypeVar("Item")
BATCH_WORDS = 4000  # roughly how many words are predicted at a time
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


def forgetting(nlp: Language) -> AbstractContextManager[Any]:
    """Make a block whose Docs can't be used once it has ended: if the vocabulary is large, it forgets their words."""
    vocab: Any = nlp.vocab
    large = len(vocab.strings) > MAX_STRINGS and not vocab.in_memory_zone
    return nlp.memory_zone() if large else nullcontext()

"""Batches as the loop takes them: each with its place in the training, shared out to ranks, divided for the device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training import Example

from labelwise.errors import InputError
from labelwise.train.reader import PartitionedCorpus, Text

Batcher = Callable[[Iterable[Any]], Iterable[Sequence[Any]]]


class Batch(NamedTuple):
    """The texts of a step.

    epoch, number (int): it is the epoch's so-manieth, from 1.
    texts (Sequence): texts of a partitioned corpus, or Examples of another reader.
    """

    epoch: int
    number: int
    texts: Sequence[Text | Example]

    @property
    def words(self) -> int:
        """The number of words."""
        return sum(map(len, self.texts))


def read_batches(
    nlp: Language, corpus: Any, batcher: Batcher, max_epochs: int, start: int = 0, skip: int = 0
) -> Iterator[Batch]:
    """Yield batches for `max_epochs` epochs, or without end if it is less than 1.

    corpus, batcher (Callable): the reader, and what makes batches of what it yields.
    start, skip (int): the epoch to begin with, and how many of its batches to leave out.
    RAISES (InputError): the corpus is empty.
    """
    for epoch in count(start):
        if 0 < max_epochs <= epoch:
            return
        texts = corpus(nlp)
        if isinstance(corpus, PartitionedCorpus):
            corpus.epoch = epoch
            texts = corpus.texts(nlp)
        number = 0
        for number, batch in enumerate(batcher(texts), 1):
            if number > skip or epoch > start:
                yield Batch(epoch, number, batch)
        if not number:
            raise InputError("training.train_corpus: the corpus is empty")


def share_of(texts: Sequence[Any], rank: int, ranks: int) -> list[Any]:
    """Take one rank's texts of a batch: they are dealt out by length, so that shares have about equal work."""
    return sorted(texts, key=len)[rank::ranks]


def sub_batches(texts: Sequence[Any], parts: int, most: int) -> list[list[Any]]:
    """Divide a rank's texts, so that the device has few words at a time.

    parts (int): how many there are at least, if there are as many texts.
    most (int): words of each at most, but for a text that is longer by itself; 0 for no limit.
    """
    words = sum(map(len, texts))
    most = min(most or words, -(-words // parts))
    runs: list[list[Any]] = []
    room = -1
    for text in texts:
        if len(text) > room:
            runs.append([])
            room = most
        runs[-1].append(text)
        room -= len(text)
    return runs


def example_of(text: Text | Example) -> Example:
    """Make the Example of a text; another reader's is copied, as the pipeline may write into its predicted Doc."""
    return text.example() if isinstance(text, Text) else Example(text.predicted.copy(), text.reference)

"""Batches as the loop takes them: each with its place in the training, and divided for the device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.train.reader import PartitionedCorpus

Batcher = Callable[[Iterable[Any]], Iterable[Sequence[Any]]]


class Batch(NamedTuple):
    """The texts of a step, as the corpus has them; it is the epoch's so-manieth, from 1."""

    epoch: int
    number: int
    texts: Sequence[StoredDoc]


def read_batches(
    corpus: PartitionedCorpus, batcher: Batcher, max_epochs: int, start: int = 0, skip: int = 0
) -> Iterator[Batch]:
    """Yield batches for `max_epochs` epochs, or without end if it is less than 1.

    start, skip (int): the epoch to begin with, and how many of its batches to leave out.
    """
    for epoch in count(start) if max_epochs < 1 else range(start, max_epochs):
        corpus.epoch = epoch
        for number, texts in islice(enumerate(batcher(corpus.texts()), 1), skip if epoch == start else 0, None):
            yield Batch(epoch, number, texts)


def sub_batches(texts: Sequence[StoredDoc], parts: int, most: int) -> list[list[StoredDoc]]:
    """Divide a rank's texts, so that the device has few words at a time.

    parts (int): how many there are at least, if there are as many texts.
    most (int): words of each at most, but for a text that is longer by itself; 0 for no limit.
    """
    words = sum(map(len, texts))
    most = min(most or words, -(-words // parts))
    found: list[list[StoredDoc]] = []
    room = -1
    for text in texts:
        if len(text) > room:
            found.append([])
            room = most
        found[-1].append(text)
        room -= len(text)
    return found

"""The reader of spaCy's training: texts of a partitioned corpus, in a new order every epoch, and batches."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from labelwise.base.errors import InputError
from labelwise.base.text import text_key
from labelwise.corpus.annotation import GOLD, INCORRECT
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition, find_partitions, read_manifest
from labelwise.corpus.tokenizer import LearningTokenizer
from labelwise.train.long_texts import cut_doc
from spacy_per_label import set_known

Batcher = Callable[[Iterable[Any]], Iterable[Sequence[Any]]]


@spacy.registry.readers("labelwise.PartitionedCorpus.v1")
class PartitionedCorpus:
    """A corpus reader for spaCy's training, which holds one partition in memory.

    Each call is an epoch: partitions in random order, and the texts of each, which are random samples because a hash
    assigns them. The order follows from seed and epoch alone.

    shuffle (bool): False reads in order, for evaluation.
    limit (int): texts to read, the same in all epochs; 0 for all.
    max_words (int): longer texts are cut, see `long_texts.cut_doc`; 0 for no limit.
    leave_out, folds (int): fold to leave out, from 0, by a digest of the text, and number of folds; 0 for none.
    epoch (int): next epoch; can be set.
    counts (Counter[str]): outcomes of the texts in the last whole epoch, or in the first so far.
    """

    def __init__(
        self,
        path: Path,
        *,
        shuffle: bool = False,
        seed: int = 0,
        limit: int = 0,
        max_words: int = 0,
        leave_out: int = 0,
        folds: int = 0,
    ) -> None:
        """Check the arguments.

        RAISES (InputError): if there is no partition (spaCy's loop would wait forever), or an argument is out of range.
        """
        for name, value in {"limit": limit, "max_words": max_words, "leave_out": leave_out, "folds": folds}.items():
            if value < 0:
                raise InputError(f"{name} {value}: give a number from 1, or 0 for none")
        self.path = Path(path)
        self.files = take(find_partitions(self.path), limit)
        self.shuffle, self.seed, self.max_words = shuffle, seed, max_words
        # With the merge's policy "outside", unmarked tokens of train are no entity of any label.
        merged = self.path.name == "train" and (self.path.parent / "manifest.json").is_file()
        self.outside = merged and read_manifest(self.path.parent).settings["coverage"] == "outside"
        self.leave_out, self.folds = leave_out, folds
        self.epoch = 0
        self.counts: Counter[str] = Counter()

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an epoch of Examples, tokenized by the pipeline; texts without tokens are left out.

        RAISES (InputError): if no text is left.
        """
        return map(example_maker(nlp), self.texts())

    def texts(self) -> Iterator[StoredDoc]:
        """Yield one epoch of stored texts, not yet tokenized.

        RAISES (InputError): if no text is left.
        """
        rng = random.Random(f"{self.seed}/{self.epoch}") if self.shuffle else None
        self.epoch += 1
        counts: Counter[str] = Counter()
        self.counts = self.counts or counts
        for file, count in shuffled(self.files, rng):
            for doc in shuffled(list(read_stored_docs(file))[:count], rng):
                if not len(doc):
                    counts["without tokens"] += 1
                elif self.folds and fold_of(doc.text, self.folds) == self.leave_out:
                    counts["left out"] += 1
                else:
                    # Outside, unmarked tokens are no entity of any label.
                    merged = msgspec.structs.replace(doc.annotation, uncovered={}) if self.outside else doc.merged
                    pieces = cut_doc(replace(doc, merged=merged), self.max_words or len(doc))
                    counts["texts"] += 1
                    counts["cut"] += len(pieces) > 1
                    counts["longer, as they couldn't be cut"] += max(map(len, pieces)) > self.max_words > 0
                    yield from pieces
        self.counts = counts
        if not counts["texts"]:
            raise InputError(f"{self.path}: no text is left: {dict(counts)}; see `leave_out` and `limit`")


def example_maker(nlp: Language) -> Callable[[StoredDoc], Example]:
    """Return a function that converts stored texts to Examples, tokenized by the pipeline."""
    tokenize = LearningTokenizer(nlp)
    return lambda doc: Example(tokenize(doc.text), make_reference(doc, nlp.vocab))


def make_reference(stored: StoredDoc, vocab: Vocab) -> Doc:
    """Make a text's gold Doc for a recognizer's training; see `spacy_per_label.known`."""
    doc, merged = stored.to_doc(vocab), stored.merged
    if merged:
        gold = [(start, end, label) for start, end, label, _ in merged.gold]
        set_known(
            doc,
            gold=doc.spans.get(GOLD, ()),
            rejected=doc.spans.get(INCORRECT, ()),
            coverage=merged.uncovered,
            unaligned=[span for span, tokens in zip(gold, stored.in_tokens(gold), strict=True) if tokens is None],
        )
    return doc


class Batch(NamedTuple):
    """A rank's texts of a step.

    number (int): index of the batch in its epoch, from 1.
    words (int): of all ranks.
    texts (Sequence): shortest first; StoredDocs or PreparedTexts.
    """

    epoch: int
    number: int
    words: int
    texts: Sequence[Any]


def read_batches(
    corpus: PartitionedCorpus, batcher: Batcher, epochs: int, start: int = 0, skip: int = 0, rank: int = 0, of: int = 1
) -> Iterator[Batch]:
    """Yield a rank's batches for a number of epochs, or without end if it is below 1.

    start, skip (int): first epoch, and number of its batches to skip.
    rank, of (int): rank and number of ranks.
    """
    for epoch in count_from(start) if epochs < 1 else range(start, epochs):
        corpus.epoch = epoch
        for number, texts in islice(enumerate(batcher(corpus.texts()), 1), skip if epoch == start else 0, None):
            yield Batch(epoch, number, sum(map(len, texts)), deal_out(texts, of)[rank])


def deal_out(texts: Sequence[StoredDoc], ranks: int) -> list[list[StoredDoc]]:
    """Deal out a batch, longest texts first, each to the rank with the fewest words, so all end together.

    RETURNS (list): each rank's texts, shortest first.
    """
    shares: list[list[StoredDoc]] = [[] for _ in range(ranks)]
    for text in sorted(texts, key=len, reverse=True):
        min(shares, key=lambda share: sum(map(len, share))).append(text)
    return [sorted(share, key=len) for share in shares]


def sub_batches(texts: Sequence[Any], parts: int, most: int) -> list[list[Any]]:
    """Divide a rank's texts into micro-batches.

    parts (int): minimum number, if there are enough texts.
    most (int): maximum words of each, except for a longer single text; 0 for no limit.
    """
    words = sum(map(len, texts))
    most = min(most or words, -(-words // parts))
    batches: list[list[Any]] = []
    room = -1
    for text in texts:
        if len(text) > room:
            batches.append([])
            room = most
        batches[-1].append(text)
        room -= len(text)
    return batches


def shuffled(items: Sequence[Any], rng: random.Random | None) -> Sequence[Any]:
    """Return a shuffled copy; without a generator, the sequence itself."""
    return rng.sample(items, len(items)) if rng else items


def take(files: Sequence[Partition], limit: int) -> list[tuple[Partition, int | None]]:
    """Choose the first `limit` texts of a corpus, as counts by file; None for all texts of each."""
    if not limit:
        return [(file, None) for file in files]
    chosen: list[tuple[Partition, int | None]] = []
    for file in files:
        if limit:
            count = min(limit, sum(1 for _ in read_stored_docs(file)))
            chosen.append((file, count))
            limit -= count
    return chosen


def fold_of(text: str, count: int) -> int:
    """Assign a text to a fold by a digest, so it stays there when texts are added."""
    return int.from_bytes(text_key(text)[4:8], "big") % count

"""The reader of spaCy's training: texts of a partitioned corpus, in a new order every epoch, and batches of them."""

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
from spacy.util import resolve_dot_names
from spacy.vocab import Vocab
from thinc.api import Config

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
    """A corpus reader for spaCy's training, which holds a partition at a time.

    Every call is an epoch: partitions come in any order, and the texts within each, which are random samples already,
    as texts get into them by hash. The order follows from seed and epoch, whatever else is random.

    path (Path): folder of `.spacy` files; a config has a string.
    shuffle (bool): False reads in order, as evaluation wants it.
    seed (int): equal seeds give equal orders.
    limit (int): the number of texts to read, the same in all epochs; 0 for all.
    max_words (int): texts of more tokens are cut, see `long_texts.cut_doc`; 0 for no limit.
    leave_out, folds (int): leave one of so many folds out, counted from 0, by a digest of the text; 0 folds for none.
    epoch (int): the number of the next epoch; set it to continue with another.
    counts (Counter[str]): what became of the texts in the last whole epoch; in the first one, so far.
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

        RAISES (InputError): there is no partition, without which spaCy's loop would wait forever; a number or a name is
            out of its range.
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

        RAISES (InputError): no text is left.
        """
        return map(example_maker(nlp), self.texts())

    def texts(self) -> Iterator[StoredDoc]:
        """Yield one epoch of stored texts, not yet tokenized.

        RAISES (InputError): no text is left.
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


def open_corpora(config: Config) -> list[PartitionedCorpus]:
    """Make the readers of train and dev that a config names.

    config (Config): interpolated.
    """
    return [*resolve_dot_names(config, [config["training"]["train_corpus"], config["training"]["dev_corpus"]])]


def example_maker(nlp: Language) -> Callable[[StoredDoc], Example]:
    """Return a function that turns a stored text into an Example, which the pipeline tokenizes."""
    tokenize = LearningTokenizer(nlp)
    return lambda doc: Example(tokenize(doc.text), make_reference(doc, nlp.vocab))


def make_reference(stored: StoredDoc, vocab: Vocab) -> Doc:
    """Make the gold Doc of a text, with what a recognizer learns from; see `spacy_per_label.known`."""
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
    """The texts of a step that are a rank's.

    number (int): index of the batch within its epoch, from 1.
    words (int): of all ranks.
    texts (Sequence): the shortest first: StoredDocs, or PreparedTexts.
    """

    epoch: int
    number: int
    words: int
    texts: Sequence[Any]


def read_batches(
    corpus: PartitionedCorpus, batcher: Batcher, epochs: int, start: int = 0, skip: int = 0, rank: int = 0, of: int = 1
) -> Iterator[Batch]:
    """Yield a rank's batches for so many epochs, or without end if there are less than 1.

    start, skip (int): the epoch to begin with, and how many of its batches to leave out.
    rank, of (int): the rank's number, and how many there are.
    """
    for epoch in count_from(start) if epochs < 1 else range(start, epochs):
        corpus.epoch = epoch
        for number, texts in islice(enumerate(batcher(corpus.texts()), 1), skip if epoch == start else 0, None):
            yield Batch(epoch, number, sum(map(len, texts)), deal_out(texts, of)[rank])


def deal_out(texts: Sequence[StoredDoc], ranks: int) -> list[list[StoredDoc]]:
    """Deal out a batch, the longest texts first, each to the rank that has the fewest words, so that all end together.

    RETURNS (list): each rank's texts, the shortest first.
    """
    shares: list[list[StoredDoc]] = [[] for _ in range(ranks)]
    for text in sorted(texts, key=len, reverse=True):
        min(shares, key=lambda share: sum(map(len, share))).append(text)
    return [sorted(share, key=len) for share in shares]


def sub_batches(texts: Sequence[Any], parts: int, most: int) -> list[list[Any]]:
    """Divide a rank's texts, so that the device has few words at a time.

    parts (int): how many there are at least, if there are as many texts.
    most (int): words of each at most, but for a text that is longer by itself; 0 for no limit.
    """
    words = sum(map(len, texts))
    most = min(most or words, -(-words // parts))
    found: list[list[Any]] = []
    room = -1
    for text in texts:
        if len(text) > room:
            found.append([])
            room = most
        found[-1].append(text)
        room -= len(text)
    return found


def shuffled(items: Sequence[Any], rng: random.Random | None) -> Sequence[Any]:
    """Copy a sequence in another order; without a generator, return it as it is."""
    return rng.sample(items, len(items)) if rng else items


def take(files: Sequence[Partition], limit: int) -> list[tuple[Partition, int | None]]:
    """Choose the first `limit` texts of a corpus: how many of each file; all of each, None, without a limit."""
    if not limit:
        return [(file, None) for file in files]
    chosen: list[tuple[Partition, int | None]] = []
    for file in files:
        count = min(limit, sum(1 for _ in read_stored_docs(file))) if limit else 0
        limit -= count
        if count:
            chosen.append((file, count))
    return chosen


def fold_of(text: str, count: int) -> int:
    """Put a text into one of so many folds, by a digest, so that it stays there when others are added."""
    return int.from_bytes(text_key(text)[4:8], "big") % count

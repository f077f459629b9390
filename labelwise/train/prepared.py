"""Batches as the loop takes them: of Examples, of texts, or prepared, as the arrays that a step needs.

Prepared ones can be made in another process: a step with them makes no Doc, and tokenizes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from spacy.language import Language

from labelwise.common.ahead import made_ahead
from labelwise.common.errors import InputError
from labelwise.corpus.manifest import manifest_digest, pinned
from labelwise.corpus.streaming import forgetting
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp
from labelwise.recognizer.per_label import PerLabelRecognizer, Targets, targets_of
from labelwise.recognizer.transformer import JoinedTransformer
from labelwise.recognizer.wordpieces import Pieces, Wordpieces, wordpieces_of
from labelwise.train.batches import Batch, CostBatcher, Item, word_cost
from labelwise.train.clock import Clock
from labelwise.train.reader import PartitionedCorpus


@dataclass(slots=True)
class PreparedText:
    """A text of which nothing but arrays is left: its wordpieces, and what it teaches."""

    pieces: Pieces
    targets: Targets

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.targets.tags)


class NextBatch(NamedTuple):
    """A batch, and its place in the training.

    epoch, number (int): the batch is the epoch's so-manieth, from 1.
    words (int): of the whole batch.
    share (Batch): the rank's.
    counts (dict[str, int]): what became of the texts of this epoch so far, or of the last whole one.
    """

    epoch: int
    number: int
    words: int
    share: Batch
    counts: dict[str, int]


class Reading(NamedTuple):
    """How the batches of a training are read.

    corpus, batcher (Callable): the reader, and what makes batches of what it yields.
    start, skip (int): the epoch to begin with, and how many of its batches to leave out.
    max_epochs (int): how many there are; less than 1 for no end.
    rank, ranks (int): which of the processes that train together this is, and how many there are.
    """

    corpus: Any
    batcher: Any
    start: int
    skip: int
    max_epochs: int
    rank: int
    ranks: int


def read_batches(nlp: Language, reading: Reading, clock: Clock) -> Iterator[NextBatch]:
    """Yield batches; what is yielded can't be used any more once the next one is asked for.

    RAISES (InputError): the corpus is empty.
    """
    corpus, batcher, start, skip, max_epochs, rank, ranks = reading
    zone: Callable[[], AbstractContextManager[Any]] = nullcontext
    read: Callable[[Language], Iterable[Item]] = corpus
    if isinstance(corpus, PartitionedCorpus) and corpus.loader != "in_memory":
        zone = partial(forgetting, nlp)
        if isinstance(batcher, CostBatcher):
            read = corpus.texts
    for epoch in count(start):
        if 0 < max_epochs <= epoch:
            return
        if isinstance(corpus, PartitionedCorpus):
            corpus.epoch = epoch
        items = clock.during("reading", read(nlp))
        batches = batcher(items, zone) if isinstance(batcher, CostBatcher) else batcher(items)
        number = 0
        for number, made in enumerate(clock.during("batching", batches), 1):
            if number > skip or epoch > start:
                batch = made if isinstance(made, Batch) else Batch(made, map(word_cost, made))
                counts = dict(getattr(corpus, "last_counts", {}) or getattr(corpus, "counts", {}))
                yield NextBatch(epoch, number, sum(map(len, batch)), batch.shares(ranks)[rank], counts)
        if not number:
            raise InputError("training.train_corpus: the corpus is empty")


def prepared(batches: Iterable[NextBatch], wordpieces: Wordpieces, labels: Sequence[str]) -> Iterator[NextBatch]:
    """Prepare the texts of batches.

    labels (Sequence[str]): in the recognizer's order.
    """
    place = {label: number for number, label in enumerate(labels)}
    for batch in batches:
        examples = [text.example() for text in batch.share]
        texts: list[Any] = [PreparedText(wordpieces.of(eg.predicted), targets_of(eg, place)) for eg in examples]
        yield batch._replace(share=Batch(texts, batch.share.costs))


def label_order(nlp: Language) -> tuple[str, ...] | None:
    """Give the labels of a per-label recognizer; None for another one."""
    ner = nlp.get_pipe("ner")
    return ner.labels if isinstance(ner, PerLabelRecognizer) else None


class Preparing(NamedTuple):
    """What another process needs to prepare batches; it can be pickled, which not every tokenizer can."""

    reading: Reading
    lang: str
    rules: TokenizerRules
    tokenizer: bytes
    wordpieces: Wordpieces
    labels: tuple[str, ...]
    digest: str


def preparing(nlp: Language, reading: Reading, wordpieces: Wordpieces, labels: tuple[str, ...]) -> Preparing:
    """Collect what another process needs."""
    digest = manifest_digest(reading.corpus.path.parent)
    rules = TokenizerRules(block=nlp.config["nlp"]["tokenizer"])
    tokenizer: Any = nlp.tokenizer
    content = tokenizer.to_bytes(exclude=["vocab"])
    return Preparing(reading, str(nlp.lang), rules, content, wordpieces, labels, digest)


def pipeline_of(given: Preparing) -> Language:
    """Make a pipeline that makes the same tokens."""
    nlp: Any = make_nlp(given.lang, given.rules)
    nlp.tokenizer.from_bytes(given.tokenizer)
    return nlp


def prepare_batches(given: Preparing) -> Iterator[NextBatch]:
    """Read and prepare batches in a process of their own.

    RAISES (InputError): the corpus isn't the one that the training began with.
    """
    nlp = pipeline_of(given)
    corpus = given.reading.corpus.path.parent
    with pinned(corpus):
        if manifest_digest(corpus) != given.digest:
            raise InputError(f"{corpus}: the corpus was merged anew meanwhile; start again")
        given.reading.batcher.bind(given.wordpieces)
        yield from prepared(read_batches(nlp, given.reading, Clock()), given.wordpieces, given.labels)


@contextmanager
def open_batches(
    nlp: Language, reading: Reading, joint: JoinedTransformer | None, clock: Clock, gpu_id: int
) -> Iterator[Iterator[NextBatch]]:
    """Make a block in which batches are read, and prepared, if arrays are all that a step needs.

    That is so for a per-label recognizer on a transformer that is joined to it. Then for a GPU, another process
    prepares them.
    RAISES (InputError): batches are to be made by wordpieces, and there is no transformer.
    """
    streamed = isinstance(reading.corpus, PartitionedCorpus) and reading.corpus.loader != "in_memory"
    by_cost = isinstance(reading.batcher, CostBatcher)
    labels = label_order(nlp) if joint and streamed and by_cost else None
    if joint and labels and gpu_id >= 0:
        with made_ahead(prepare_batches, preparing(nlp, reading, joint.wordpieces, labels)) as ready:
            yield clock.during("waiting for data", ready)
        return
    if by_cost:
        reading.batcher.bind(joint.wordpieces if joint else wordpieces_of(nlp))
    batches = read_batches(nlp, reading, clock)
    if joint and labels:
        batches = prepared(batches, joint.wordpieces, labels)
    yield batches


def learn_prepared(nlp: Language, batch: Sequence[PreparedText], *, drop: float, losses: dict[str, float]) -> None:
    """Compute the gradients of prepared texts, by a transformer that is joined to its recognizer."""
    transformer: Any = nlp.get_pipe("transformer")
    ner: Any = nlp.get_pipe("ner")
    transformer.update((), losses=losses)
    ner.learn([text.pieces for text in batch], [text.targets for text in batch], drop=drop, losses=losses)

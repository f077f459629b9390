"""The reader of spaCy's training: Examples from a partitioned corpus, in a new order every epoch."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from labelwise.corpus.annotation import Coverage
from labelwise.corpus.docbin_reader import MISSING, OUTSIDE, StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition, find_partitions, read_partition
from labelwise.corpus.tokenizer import LearningTokenizer
from labelwise.errors import InputError
from labelwise.settings import check_choice
from labelwise.text import text_key
from labelwise.train.long_texts import cut_doc


class Text:
    """A text of a corpus, of which an Example is made when it is needed: until then it takes what its arrays take.

    doc (StoredDoc): as the corpus has it; it has the tokens that the pipeline will make of it.
    """

    __slots__ = ("_make", "doc")

    def __init__(self, doc: StoredDoc, make: Callable[[StoredDoc], Example]) -> None:
        """Take the text, and what makes an Example of it."""
        self.doc = doc
        self._make = make

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.doc)

    def example(self) -> Example:
        """Make the Example."""
        return self._make(self.doc)


def read_docs(path: Path, nlp: Language) -> Iterator[Doc]:
    """Yield the gold Docs of a folder of partitions, in order, with all that a merge put into them."""
    for partition in find_partitions(path):
        yield from DocBin().from_bytes(read_partition(partition)).get_docs(nlp.vocab)


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
    coverage (str): what to do with texts that aren't complete for all labels: leave them as the merge made them, where
        it is known "by-label" what is complete; "drop" the text; unmarked tokens are "outside".
    leave_out (str): "0/3" leaves the first of three folds out, by a digest of the text; empty for none.
    epoch (int): the number of the next epoch; set it to continue with another.
    counts (Counter[str]): what became of the texts of this epoch so far.
    last_counts (Counter[str]): the same for the last epoch that was read to its end.
    """

    def __init__(
        self,
        path: Path,
        *,
        shuffle: bool = False,
        seed: int = 0,
        limit: int = 0,
        max_words: int = 0,
        coverage: Coverage = "by-label",
        leave_out: str = "",
    ) -> None:
        """Check the arguments.

        RAISES (InputError): there is no partition, without which spaCy's loop would wait forever; a number or a name is
            out of its range.
        """
        for name, value in (("limit", limit), ("max_words", max_words)):
            if value < 0:
                raise InputError(f"{name} {value}: give a number from 1, or 0 for none")
        check_choice("coverage", coverage, Coverage)
        self.path = Path(path)
        self.files = [(file, 0) for file in find_partitions(self.path)]
        if limit:
            self.files = take(self.files, limit)
        self.shuffle = shuffle
        self.seed = seed
        self.max_words = max_words
        self.coverage: Coverage = coverage
        self.leave_out = parse_fold(leave_out) if leave_out else None
        self.epoch = 0
        self.counts: Counter[str] = Counter()
        self.last_counts: Counter[str] = Counter()

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an epoch of Examples, tokenized by the pipeline; texts without tokens are left out.

        RAISES (InputError): no text is left.
        """
        return (text.example() for text in self.texts(nlp))

    def texts(self, nlp: Language) -> Iterator[Text]:
        """Yield an epoch, in the same order, of which no Example has been made yet.

        RAISES (InputError): no text is left.
        """
        self.epoch += 1
        rng = random.Random(f"{self.seed}/{self.epoch - 1}") if self.shuffle else None
        return self._texts(nlp, rng)

    def _texts(self, nlp: Language, rng: random.Random | None) -> Iterator[Text]:
        counts: Counter[str] = Counter()
        self.counts = counts
        tokenize = LearningTokenizer(nlp)

        def make(doc: StoredDoc) -> Example:
            """Make an Example that is tokenized by the pipeline."""
            return Example(tokenize(doc.text), doc.to_doc(nlp.vocab))

        for doc in self._read(rng, counts):
            yield Text(doc, make)
        self.last_counts = counts
        if not counts["texts"]:
            raise InputError(f"{self.path}: no text is left: {dict(counts)}; see `coverage` and `limit`")

    def _read(self, rng: random.Random | None, counts: Counter[str]) -> Iterator[StoredDoc]:
        """Yield the texts, under the policies, and count what becomes of each."""
        for file, count in shuffled(self.files, rng):
            for doc in shuffled(list(read_stored_docs(file))[: count or None], rng):
                if not len(doc):
                    counts["without tokens"] += 1
                elif self.leave_out and fold_of(doc.text, self.leave_out[1]) == self.leave_out[0]:
                    counts["left out"] += 1
                elif self.coverage == "drop" and doc.annotation.uncovered:
                    counts["not covered"] += 1
                else:
                    counts["texts"] += 1
                    covered = without_missing(doc) if self.coverage == "outside" else doc
                    pieces = cut_doc(covered, self.max_words) if self.max_words else [covered]
                    counts["cut"] += len(pieces) > 1
                    counts["pieces"] += len(pieces)
                    counts["pieces that couldn't be cut"] += sum(len(piece) > self.max_words > 0 for piece in pieces)
                    yield from pieces


def shuffled(items: Sequence[Any], rng: random.Random | None) -> Sequence[Any]:
    """Copy a sequence in another order; without a generator, return it as it is."""
    return rng.sample(items, len(items)) if rng else items


def take(files: Sequence[tuple[Partition, int]], limit: int) -> list[tuple[Partition, int]]:
    """Choose the first `limit` texts of a corpus: how many of each file."""
    chosen: list[tuple[Partition, int]] = []
    for file, _ in files:
        if limit:
            count = min(limit, sum(1 for _ in read_stored_docs(file)))
            chosen.append((file, count))
            limit -= count
    return chosen


def parse_fold(fold: str) -> tuple[int, int]:
    """Parse a fold, such as 0/3, into its number and the number of all.

    RAISES (InputError): it isn't one.
    """
    number, _, count = fold.partition("/")
    if not (number.isdigit() and count.isdigit() and int(number) < int(count)):
        raise InputError(f"leave_out {fold!r}: give a fold such as 0/3, 1/3 or 2/3")
    return int(number), int(count)


def fold_of(text: str, count: int) -> int:
    """Put a text into one of so many folds, by a digest, so that it stays there when others are added."""
    return int.from_bytes(text_key(text.encode("utf8"))[4:8], "big") % count


def without_missing(doc: StoredDoc) -> StoredDoc:
    """Treat unmarked tokens as outside, but for those that touch gold without token boundaries."""
    starts, ends = doc.offsets()
    gold = np.zeros(len(doc), bool)
    for start, end, *_ in doc.annotation.gold:
        if not (start in starts and end in ends):
            gold |= (starts < end) & (ends > start)
    iob = np.where((doc.iob == MISSING) & ~gold, OUTSIDE, doc.iob).astype("<u8")
    return replace(doc, iob=iob, merged=msgspec.structs.replace(doc.annotation, uncovered={}))

"""The reader of spaCy's training: texts of a partitioned corpus, in a new order every epoch."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs
from labelwise.corpus.manifest import Partition, find_partitions, read_partition
from labelwise.corpus.tokenizer import LearningTokenizer
from labelwise.errors import InputError
from labelwise.settings import check_choice
from labelwise.text import text_key
from labelwise.train.long_texts import cut_doc

Unmarked = Literal["by-label", "outside"]


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
    coverage (str): where a text isn't complete for a label, only what was judged is known ("by-label"), or unmarked
        tokens are "outside", as the merge's policy of that name has it.
    leave_out (str): "0/3" leaves the first of three folds out, by a digest of the text; empty for none.
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
        coverage: Unmarked = "by-label",
        leave_out: str = "",
    ) -> None:
        """Check the arguments.

        RAISES (InputError): there is no partition, without which spaCy's loop would wait forever; a number or a name is
            out of its range.
        """
        for name, value in (("limit", limit), ("max_words", max_words)):
            if value < 0:
                raise InputError(f"{name} {value}: give a number from 1, or 0 for none")
        check_choice("coverage", coverage, Unmarked)
        self.path = Path(path)
        self.files = take(find_partitions(self.path), limit)
        self.shuffle, self.seed, self.max_words = shuffle, seed, max_words
        self.outside = coverage == "outside"
        self.leave_out = parse_fold(leave_out) if leave_out else None
        self.epoch = 0
        self.counts: Counter[str] = Counter()

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an epoch of Examples, tokenized by the pipeline; texts without tokens are left out.

        RAISES (InputError): no text is left.
        """
        return map(example_maker(nlp), self.texts())

    def texts(self) -> Iterator[StoredDoc]:
        """Yield an epoch, in the same order, of which no Example has been made yet.

        RAISES (InputError): no text is left.
        """
        rng = random.Random(f"{self.seed}/{self.epoch}") if self.shuffle else None
        self.epoch += 1
        return self._texts(rng)

    def _texts(self, rng: random.Random | None) -> Iterator[StoredDoc]:
        counts: Counter[str] = Counter()
        self.counts = self.counts or counts
        for file, count in shuffled(self.files, rng):
            for doc in shuffled(list(read_stored_docs(file))[:count], rng):
                if not len(doc):
                    counts["without tokens"] += 1
                elif self.leave_out and fold_of(doc.text, self.leave_out[1]) == self.leave_out[0]:
                    counts["left out"] += 1
                else:
                    pieces = self.pieces(doc)
                    counts["texts"] += 1
                    counts["cut"] += len(pieces) > 1
                    counts["longer, as they couldn't be cut"] += max(map(len, pieces)) > self.max_words > 0
                    yield from pieces
        self.counts = counts
        if not counts["texts"]:
            raise InputError(f"{self.path}: no text is left: {dict(counts)}; see `leave_out` and `limit`")

    def pieces(self, doc: StoredDoc) -> list[StoredDoc]:
        """Cut a text if it is too long; if its unmarked tokens are outside, it is complete for all labels."""
        if self.outside:
            doc = replace(doc, merged=msgspec.structs.replace(doc.annotation, uncovered={}))
        return cut_doc(doc, self.max_words) if self.max_words else [doc]


def example_maker(nlp: Language) -> Callable[[StoredDoc], Example]:
    """Make what makes Examples of texts, which the pipeline tokenizes."""
    tokenize = LearningTokenizer(nlp)
    return lambda doc: Example(tokenize(doc.text), doc.to_doc(nlp.vocab))


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

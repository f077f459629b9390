"""Stream the Docs of a partitioned corpus, in a new order every epoch, one partition in memory at a time."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from labelwise.errors import InputError


def find_partitions(path: Path) -> list[Path]:
    """List the `.spacy` files of a folder, sorted.

    RAISES (InputError): there is none.
    """
    files = sorted(path.glob("*.spacy"))
    if not files:
        raise InputError(f"{path}: no .spacy file; run the merge, with a share for this split")
    return files


def read_docs(path: Path, nlp: Language) -> Iterator[Doc]:
    """Yield the gold Docs of a folder of partitions, in order."""
    for file in find_partitions(path):
        yield from DocBin().from_disk(file).get_docs(nlp.vocab)


class PartitionedCorpus:
    """A corpus reader for spaCy's training.

    Every call is an epoch, with a random generator of its own, so that neither other components nor what is read
    elsewhere changes the order: the partitions are shuffled, then the Docs within each.

    path (Path): folder of `.spacy` files.
    shuffle (bool): False reads in order, as evaluation wants it.
    seed (int): equal seeds give equal orders.
    limit (int): the number of Docs to read in all; 0 for all.
    """

    def __init__(self, path: Path, *, shuffle: bool = False, seed: int = 0, limit: int = 0) -> None:
        """Check the arguments.

        RAISES (InputError): there is no partition, without which spaCy's loop would wait forever; a negative limit.
        """
        if limit < 0:
            raise InputError(f"limit {limit}: give a number of texts, or 0 for all")
        self.files = find_partitions(path)
        self.shuffle = shuffle
        self.seed = seed
        self.limit = limit
        self.epoch = 0

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield an epoch of Examples, tokenized anew by the pipeline; Docs without tokens are left out."""
        rng = random.Random(f"{self.seed}/{self.epoch}")
        self.epoch += 1
        files = list(self.files)
        if self.shuffle:
            rng.shuffle(files)
        count = 0
        for file in files:
            docs = DocBin().from_disk(file)
            if self.shuffle:
                shuffle_docs(docs, rng)
            for reference in docs.get_docs(nlp.vocab):
                if self.limit and count == self.limit:
                    return
                if len(reference):
                    yield Example(nlp.make_doc(reference.text), reference)
                    count += 1


def shuffle_docs(docs: DocBin, rng: random.Random) -> None:
    """Shuffle a DocBin's Docs in place, as the arrays that it holds; no Doc is made."""
    order = list(range(len(docs)))
    rng.shuffle(order)
    for name in ("tokens", "spaces", "cats", "span_groups", "user_data", "flags"):
        values: list[Any] = getattr(docs, name)
        if values:
            setattr(docs, name, [values[i] for i in order])

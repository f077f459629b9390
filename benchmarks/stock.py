"""What `spacy train --code` is given so that its steps can be timed: spaCy's own batcher, which also notes the time."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import spacy

import labelwise.train.registry  # noqa: F401  the corpus's tokenizer


@spacy.registry.batchers("labelwise.timed_batch_by_words.v1")
def make_timed_batcher(size: int, path: Path) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make a batcher that writes a line for each batch: seconds, and the words that were trained on until then."""
    batch_by_words = spacy.registry.batchers.get("spacy.batch_by_words.v1")(
        size=size, tolerance=0.2, discard_oversize=False
    )

    def batch(examples: Iterable[Any]) -> Iterator[Any]:
        words = 0
        with Path(path).open("w", encoding="utf8") as file:
            for examples_of_batch in batch_by_words(examples):
                print(time.perf_counter(), words, sep="\t", file=file, flush=True)
                yield examples_of_batch
                words += sum(len(eg) for eg in examples_of_batch)

    return batch

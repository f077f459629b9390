"""What spaCy's update does that isn't needed here, and functions of other modules that are replaced for a while.

Examples needn't be copied for an update, as `Batch.made` gives each update Examples of its own. And what tells a
listener whether a batch is the one it was given needn't look at token after token.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import spacy.language
from spacy.attrs import ORTH
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example


class Replacement(NamedTuple):
    """Something with a name in a module or a class, and what is to be there instead."""

    owner: Any
    name: str
    instead: Any


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Make a block in which all of these are replaced."""
    replacements = list(replacements)
    own = [vars(owner)[name] for owner, name, _ in replacements]
    try:
        for owner, name, instead in replacements:
            setattr(owner, name, instead)
        yield
    finally:
        for (owner, name, _), value in zip(replacements, own, strict=True):
            setattr(owner, name, value)


def same_examples(examples: list[Example]) -> list[Example]:
    """Return the Examples as they are."""
    return examples


def batch_id(docs: Iterable[Doc]) -> int:
    """Compute what is the same for Docs of the same words: the sum of their hashes, modulo 2 ** 64."""
    return int(sum(int(doc.to_array(ORTH).sum(dtype="uint64")) for doc in docs) % 2**64)


SHORTCUTS = (
    Replacement(spacy.language, "_copy_examples", same_examples),
    Replacement(Tok2VecListener, "get_batch_id", staticmethod(batch_id)),
)

"""Choose the split of a text: the one that its data sets declare, or else one by a hash."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from labelwise.corpus.manifest import SPLITS, Split
from labelwise.merge.rules.answers import Answer, left_out
from labelwise.merge.rules.settings import Settings


class SplitGroup(NamedTuple):
    """A group of nearly equal texts, which stay in one split: the key to hash, or the declared split."""

    unit: bytes
    declared: Split | None


def declared_split(answers: Sequence[Answer]) -> Split | None:
    """Return the split that a text's data sets declare, test before dev before train; some answers don't count."""
    declared = {answer.dataset.split for answer in answers if not left_out(answer)}
    return next((split for split in reversed(SPLITS) if split in declared), None)


def hashed_split(unit: str, settings: Settings) -> Split:
    """Choose a split by a hash of the salt and a unit, the text's key or its value of `split_by`.

    Adding texts never moves others.
    """
    digest = hashlib.blake2b(f"{settings.split_salt}/{unit}".encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    if share < settings.test_ratio:
        return "test"
    return "dev" if share < settings.test_ratio + settings.dev_ratio else "train"

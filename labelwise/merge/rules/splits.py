"""Choose the split of a text: declared, or else by hash."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from labelwise.corpus.manifest import SPLITS, Split
from labelwise.datasets.entries import HASHED
from labelwise.merge.rules.answers import Answer, left_out
from labelwise.merge.rules.settings import Settings


class SplitGroup(NamedTuple):
    """Nearly equal texts, which stay in one split: the key to hash, and splits that it doesn't choose."""

    unit: bytes
    declared: Split | None = None
    without: Collection[Split] = ()


def declared_split(answers: Sequence[Answer]) -> Split | None:
    """Return the declared split of a text, test before dev before train; some answers don't count."""
    declared = {one.dataset.split for one in answers if one.dataset.split not in HASHED and not left_out(one)}
    return next((split for split in reversed(SPLITS) if split in declared), None)


def excluded_splits(answers: Sequence[Answer]) -> set[Split]:
    """Return the splits that a hash doesn't choose for a text, by its datasets; some answers don't count."""
    return {split for one in answers for split in HASHED.get(one.dataset.split, ()) if not left_out(one)}


def min_values(answers: Sequence[Answer], settings: Settings) -> dict[str, str]:
    """Return a text's value of each kept key of `meta`; the least of several."""
    found = {key: [one.task.meta[key] for one in answers if key in one.task.meta] for key in settings.kept_meta}
    return {key: min(values) for key, values in found.items() if values}


def unit_of(answers: Sequence[Answer], values: Mapping[str, str], settings: Settings) -> str:
    """Digest what a text shares with others: its `split_by` value or its document; empty without.

    The document includes dataset and file, because CoNLL's are numbered; the least of several counts.
    """
    documents = ([one.dataset.name, one.file.name, one.task.doc] for one in answers if one.task.doc)
    shared = values.get(settings.split_by) or min(documents, default=None)
    return hashlib.blake2b(msgspec.json.encode(shared), digest_size=8).hexdigest() if shared else ""


def hashed_split(unit: str, settings: Settings, without: Collection[Split] = ()) -> Split:
    """Choose a split by a hash, `without` some, whose share is in train; new texts never move others."""
    digest = hashlib.blake2b(f"{settings.split_salt}/{unit}".encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    if share < settings.test_ratio:
        found: Split = "test"
    else:
        found = "dev" if share < settings.test_ratio + settings.dev_ratio else "train"
    return "train" if found in without else found

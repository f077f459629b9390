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
    """Nearly equal texts in one split: the key to hash, and splits that it doesn't choose."""

    unit: bytes
    declared: Split | None = None
    without: Collection[Split] = ()


def declared_split(answers: Sequence[Answer]) -> Split | None:
    """Return a text's declared split, test before dev before train; some answers don't count."""
    declared = {
        answer.dataset.split for answer in answers if answer.dataset.split not in HASHED and not left_out(answer)
    }
    return next((split for split in reversed(SPLITS) if split in declared), None)


def excluded_splits(answers: Sequence[Answer]) -> set[Split]:
    """Return the splits that a hash can't choose for a text, by its datasets; some answers don't count."""
    return {split for answer in answers for split in HASHED.get(answer.dataset.split, ()) if not left_out(answer)}


def min_values(answers: Sequence[Answer], settings: Settings) -> dict[str, str]:
    """Return a text's value of each kept key of `meta`; the least of several."""
    values_of = {
        key: [answer.task.meta[key] for answer in answers if key in answer.task.meta] for key in settings.kept_meta
    }
    return {key: min(values) for key, values in values_of.items() if values}


def unit_of(answers: Sequence[Answer], values: Mapping[str, str], settings: Settings) -> str:
    """Digest a text's `split_by` value, or else its document; "" without.

    The document includes dataset and file, because CoNLL's are numbered; the least of several counts.
    """
    documents = ([answer.dataset.name, answer.file.name, answer.task.doc] for answer in answers if answer.task.doc)
    shared = values.get(settings.split_by) or min(documents, default=None)
    return digest_unit(shared) if shared else ""


def digest_unit(shared: str | list[str]) -> str:
    """Digest a `split_by` value, or dataset, file and name of a document."""
    return hashlib.blake2b(msgspec.json.encode(shared), digest_size=8).hexdigest()


def hashed_split(unit: str, settings: Settings, without: Collection[Split] = ()) -> Split:
    """Choose a split by a hash, `without` some (their share goes to train); new texts never move others."""
    digest = hashlib.blake2b(f"{settings.split_salt}/{unit}".encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    if share < settings.test_ratio:
        split: Split = "test"
    else:
        split = "dev" if share < settings.test_ratio + settings.dev_ratio else "train"
    return "train" if split in without else split

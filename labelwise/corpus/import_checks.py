"""Findings of a merge's import checks, as stored with the corpus: data, not words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.text import DECODE_ERRORS, encode_json

IMPORT_CHECKS = "import_checks.json"
EMPTY_TRAIN, EMPTY_SPLIT = "empty train", "empty split"
NO_TEXT = "No text is in {split}."
FILL_TRAIN = "Lower both ratios in project.yml, or declare a dataset with split: train."
FILL_SPLIT = "Raise {split}_ratio in project.yml, or declare a dataset with split: {split}."
OTHER_HASH = " Or choose by another hash, in the section merge"


class ImportCheck(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A reason to think that data was misread or is unfit for training; `merge.checks` words it.

    dataset (str): "" if the check is about the corpus.
    places (list[str]): up to three examples, such as "person.jsonl:34".
    stops (bool): whether later stages refuse the corpus.
    sample (list[str]): quoted places; not stored.
    where (str): file or section that declares the dataset, relative to the working folder; not stored.
    """

    kind: str
    dataset: str = ""
    n: int = 0
    values: dict[str, Any] = {}
    places: list[str] = []
    stops: bool = False
    sample: list[str] = []
    where: str = ""


def write_checks(corpus: Path, checks: Iterable[ImportCheck]) -> None:
    """Write findings of import checks, without quotes and paths: equal data and settings give equal bytes."""
    stored = [msgspec.structs.replace(check, sample=[], where="") for check in checks]
    (corpus / IMPORT_CHECKS).write_bytes(encode_json(stored, indent=1))


def read_checks(corpus: Path) -> list[ImportCheck]:
    """Read the findings of import checks; refuse a missing or malformed file."""
    file = corpus / IMPORT_CHECKS
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[ImportCheck])
    except (FileNotFoundError, *DECODE_ERRORS) as error:
        raise InputError(f"{file}: not what a merge writes ({error}); run the merge again") from error


def describe_empty(corpus: Path, split: str) -> str:
    """Describe an empty split as its import check does; training can't import `merge`."""
    checks = [check for check in read_checks(corpus) if check.kind in (EMPTY_TRAIN, EMPTY_SPLIT)]
    salts = [check.values["salt"] for check in checks if check.values["split"] == split]
    salt = "".join(f"{OTHER_HASH}: split_salt: '{salt}'" for salt in salts if salt)
    return f"{NO_TEXT} {FILL_TRAIN if split == 'train' else FILL_SPLIT}".format(split=split) + salt

"""Which documents of a brat folder are predictions that nobody has changed: PREDICTED.json has a digest of each.

    {"batch/one.ann": "b5bb9d80…", "batch/two.ann": "7d865e95…"}

Paths are relative to the folder that the list is in. A document whose file differs is gold; deleting the list, or a
line of it, accepts the others as they are.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from labelwise.errors import InputError
from labelwise.sources.files import find_files, printable, read_file
from labelwise.text import DECODE_ERRORS

LIST = "PREDICTED.json"


def digest_of(content: bytes) -> str:
    """Return the digest of an annotation file."""
    return hashlib.sha256(content).hexdigest()


def write_predicted(digests: Mapping[str, str], folder: Path) -> None:
    """Write the list of a folder."""
    (folder / LIST).write_bytes(msgspec.json.format(msgspec.json.encode(digests), indent=1) + b"\n")


def find_predicted(root: Path) -> dict[Path, str]:
    """Read the lists in a folder, and below it: the digests of annotation files.

    RAISES (InputError): one can't be read.
    """
    found: dict[Path, str] = {}
    for file in find_files(root, (LIST,)):
        try:
            digests = msgspec.json.decode(read_file(file), type=dict[str, str])
        except DECODE_ERRORS as error:
            raise InputError(
                f"{printable(file)}: not a list of predictions ({error}); export them again, or delete it, which "
                "accepts them all"
            ) from error
        found |= {file.parent / name: digest for name, digest in digests.items()}
    return found

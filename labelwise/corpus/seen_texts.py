"""The texts that a pipeline was trained on, as digests in its folder: they tell whether it has seen a text.

The file is a map in msgpack: `digests`, the first 8 bytes of the texts' keys, sorted, and `whole`. Whoever has it can
test whether a text was in training, and so a wheel has it only if asked.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import partitions_of
from labelwise.errors import InputError
from labelwise.text import DECODE_ERRORS, text_key

SEEN_TEXTS = "seen_texts.msgpack"
DIGEST = ">u8"


class SeenTexts(NamedTuple):
    """The texts of train and dev of a pipeline, and of the pipelines that it began with.

    digests (np.ndarray): of the texts, each once, sorted.
    whole (bool): these are all; false if it began with a pipeline that has no digests.
    """

    digests: np.ndarray
    whole: bool

    def has(self, key: str) -> bool:
        """Tell whether a text is among them, by its key in hexadecimal."""
        digest = np.uint64(int(key[:16], 16))
        place = np.searchsorted(self.digests, digest)
        return bool(digest in self.digests[place : place + 1])


def collect_seen(corpus: Path) -> SeenTexts:
    """Collect train and dev of a corpus.

    RAISES (InputError): the corpus isn't whole.
    """
    return SeenTexts(np.unique(digests_of(corpus, ("train", "dev"))), True)


def digests_of(corpus: Path, splits: Iterable[str]) -> np.ndarray:
    """Collect the digests of the texts of some splits.

    RAISES (InputError): the corpus isn't whole.
    """
    files = (file for split in splits for file in partitions_of(corpus, split))
    return np.fromiter((digest(doc.text) for file in files for doc in read_stored_docs(file)), np.uint64)


def digest(text: str) -> int:
    """Give the first 8 bytes of a text's key as a number."""
    return int.from_bytes(text_key(text.encode())[:8], "big")


class _Packed(msgspec.Struct):
    digests: bytes
    whole: bool


def write_seen(pipeline: Path, seen: SeenTexts) -> None:
    """Write the file into the folder of a pipeline; equal texts give equal bytes."""
    packed = _Packed(seen.digests.astype(DIGEST).tobytes(), seen.whole)
    (pipeline / SEEN_TEXTS).write_bytes(msgspec.msgpack.encode(packed))


def read_seen(pipeline: Path) -> SeenTexts | None:
    """Read the file from the folder of a pipeline; None if there is none.

    RAISES (InputError): it isn't what `write_seen` writes.
    """
    file = pipeline / SEEN_TEXTS
    if not file.is_file():
        return None
    try:
        packed = msgspec.msgpack.decode(file.read_bytes(), type=_Packed)
        return SeenTexts(np.frombuffer(packed.digests, DIGEST).astype(np.uint64), packed.whole)
    except (*DECODE_ERRORS, ValueError) as error:
        raise InputError(
            f"{file}: not the digests of a training's texts ({error}); train the pipeline again, or delete the file"
        ) from error

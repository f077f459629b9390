"""Two ways to get at the texts of a corpus without holding them: by place in a file, or partition by partition.

Together with holding all of them, which the reader does by itself, these are the loaders that Câmara and Hauff compare
in "Moving Stuff Around" (ReNeuIR 2022), for Docs; `benchmarks/loaders.py` compares ours.
"""

import random
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import StoredDoc, read_stored_docs

Files = Sequence[tuple[Path, int | None]]  # with the number of texts to take from each, None for all


class Indexed:
    """Finds each text by its place in a file: a table of offsets, and a seek for each.

    The file is a temporary one, without a name, in TMPDIR; it has each text with its own strings, compressed.
    """

    def __init__(self, files: Files) -> None:
        """Write the file."""
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this
        offsets = [0]
        for doc in read_all(files):
            offsets.append(offsets[-1] + self.file.write(freeze(doc)))
        self.offsets = np.array(offsets)

    def epoch(self, rng: random.Random | None) -> Iterator[StoredDoc]:
        """Yield every text, in an order that the generator decides; None for the corpus's own."""
        for number in shuffled(range(len(self.offsets) - 1), rng):
            start, end = self.offsets[number : number + 2].tolist()
            self.file.seek(start)
            yield thaw(self.file.read(end - start))


class Streamed:
    """Reads one partition after the other, in any order, and the texts within each in any order.

    Partitions are random samples already, as texts get into them by hash.
    """

    def __init__(self, files: Files) -> None:
        """Take the files."""
        self.files = files

    def epoch(self, rng: random.Random | None) -> Iterator[StoredDoc]:
        """Yield every text, in an order that the generator decides; None for the corpus's own."""
        files = shuffled(self.files, rng)
        return (doc for file in files for doc in shuffled(list(read_all([file])), rng))


def read_all(files: Files) -> Iterator[StoredDoc]:
    """Yield the texts of all files, as many as are to be taken from each."""
    for file, count in files:
        for number, doc in enumerate(read_stored_docs(file)):
            if number == count:
                break
            yield doc


def shuffled(items: Sequence[Any], rng: random.Random | None) -> Sequence[Any]:
    """Copy a sequence in another order; without a generator, return it as it is."""
    return rng.sample(items, len(items)) if rng else items


def freeze(doc: StoredDoc) -> bytes:
    """Serialize a text, with the strings that it has."""
    used = {*doc.words.tolist(), *doc.labels.tolist(), *(label for _, _, label in (*doc.gold, *doc.rejected))}
    arrays = [array.tobytes() for array in (doc.words, doc.spaces, doc.iob, doc.labels)]
    strings = {key: doc.strings[key] for key in used}
    return zlib.compress(msgspec.msgpack.encode([*arrays, doc.gold, doc.rejected, strings, doc.merged]), level=1)


def thaw(frozen: bytes) -> StoredDoc:
    """Read what `freeze` made."""
    words, spaces, iob, labels, gold, rejected, strings, merged = msgspec.msgpack.decode(
        zlib.decompress(frozen), strict=False
    )
    return StoredDoc(
        words=np.frombuffer(words, "<u8"),
        spaces=np.frombuffer(spaces, bool),
        iob=np.frombuffer(iob, "<u8"),
        labels=np.frombuffer(labels, "<u8"),
        gold=[tuple(span) for span in gold],
        rejected=[tuple(span) for span in rejected],
        strings=strings,
        merged=msgspec.convert(merged, Annotation | None),
    )

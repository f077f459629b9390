"""Speed and memory of training with each loader, as in "Moving Stuff Around", and against spacy train.

    python -m benchmarks.loaders              # 6,000 and 60,000 texts of 3,500 characters: 20 GB of disk, an hour

Câmara and Hauff (ReNeuIR 2022) train a neural ranker with documents in memory, indexed by offset, or from ir_datasets'
compressed blocks. Here it is NER on a CPU: in memory as spaCy has it, indexed, or streamed from partitions.
"""

import random
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import msgspec
import numpy as np
import spacy
import typer

from benchmarks.measure import make_corpus, measure, write_result
from benchmarks.training_speed import Trained, train, train_stock
from labelwise.corpus.annotation import Annotation
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.train.reader import PartitionedCorpus, shuffled

OUT = Path("benchmarks/out/loaders")
MAX_MEMORY_RATIO = 1.05  # ten times the texts may take this many times the memory
LOADERS = {"in_memory": "benchmarks.InMemory.v1", "indexed": "benchmarks.Indexed.v1", "streamed": ""}


@spacy.registry.readers("benchmarks.InMemory.v1")
class InMemory(PartitionedCorpus):
    """Holds all texts; `spacy train` holds their Examples, too."""

    held: list[StoredDoc] | None = None

    def texts(self) -> Iterator[StoredDoc]:
        """Yield an epoch in its order."""
        rng = random.Random(f"{self.seed}/{self.epoch}") if self.shuffle else None
        if self.held is None:
            self.held = list(super().texts())
        yield from shuffled(self.held, rng)


@spacy.registry.readers("benchmarks.Indexed.v1")
class Indexed(PartitionedCorpus):
    """Finds texts in a temporary file by a table of offsets."""

    offsets: np.ndarray | None = None

    def texts(self) -> Iterator[StoredDoc]:
        """Yield an epoch in its order."""
        rng = random.Random(f"{self.seed}/{self.epoch}") if self.shuffle else None
        if self.offsets is None:
            self.file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this
            sizes = [self.file.write(freeze(doc)) for doc in super().texts()]
            self.offsets = np.cumsum([0, *sizes])
        for number in shuffled(range(len(self.offsets) - 1), rng):
            start, end = self.offsets[number : number + 2].tolist()
            self.file.seek(start)
            yield thaw(self.file.read(end - start))


def freeze(doc: StoredDoc) -> bytes:
    """Serialize a text with its strings."""
    used = {*doc.words.tolist(), *doc.labels.tolist(), *(label for _, _, label in (*doc.gold, *doc.rejected))}
    arrays = [array.tobytes() for array in (doc.words, doc.spaces, doc.iob, doc.labels)]
    strings = {key: doc.strings[key] for key in used}
    return zlib.compress(msgspec.msgpack.encode([*arrays, doc.gold, doc.rejected, strings, doc.merged]), level=1)


def thaw(frozen: bytes) -> StoredDoc:
    """Read the output of `freeze`."""
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


def main(
    corpus: Annotated[Path | None, typer.Option(help="Merged corpus of 6,000 texts; made if not given")] = None,
    corpus_large: Annotated[Path | None, typer.Option(help="Merged corpus of 60,000 texts")] = None,
    steps: Annotated[int, typer.Option(help="Steps of each training")] = 150,
    rounds: Annotated[int, typer.Option(help="How often the comparison of speeds is repeated, in turn")] = 3,
) -> None:
    """Measure, write the tables; fail if streaming isn't flat."""
    OUT.mkdir(parents=True, exist_ok=True)
    folders = {"6,000": corpus or make_corpus(6000, OUT), "60,000": corpus_large or make_corpus(60000, OUT)}
    small, large = folders.values()
    turns = [
        (*(train(small, steps, reader=reader) for reader in LOADERS.values()), train_stock(small, steps))
        for _ in range(rounds)
    ]
    names = [*LOADERS, "spacy train"]
    runs = {("6,000", name): median_run(turn[number] for turn in turns) for number, name in enumerate(names)}
    epochs = {texts: measure("benchmarks.read_epoch", str(folder)) for texts, folder in folders.items()}
    runs |= {("60,000", loader): train(large, steps, reader=LOADERS[loader]) for loader in reversed(list(LOADERS))}
    rows = []
    for (texts, name), run in runs.items():
        share = median(turn[names.index(name)].rate / turn[0].rate for turn in turns)
        ratio = share if texts == "6,000" else run.rate / runs["60,000", "in_memory"].rate
        rows.append((texts, name, run.rate, ratio, run.megabytes))
    columns = {"texts": "", "loader": "", "words per second": ",.0f", "of in_memory": ".2f", "memory, MB": ",.0f"}
    write_result("loaders", columns, rows)
    columns = {"texts": "", "seconds": ",.0f", "memory, MB": ",.0f"}
    write_result("read_epoch", columns, [(texts, epoch.seconds, epoch.megabytes) for texts, epoch in epochs.items()])
    growth = runs["60,000", "streamed"].megabytes / runs["6,000", "streamed"].megabytes
    if growth > MAX_MEMORY_RATIO:
        raise SystemExit(f"ten times the texts take {growth:.2f} of the memory")


def median_run(runs: Any) -> Trained:
    """Choose the run of median speed."""
    ordered = sorted(runs, key=lambda run: run.rate)
    return ordered[len(ordered) // 2]


if __name__ == "__main__":
    typer.run(main)

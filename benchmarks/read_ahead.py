"""`python -m scripts.train`, except that a separate process reads the texts ahead, as torch's loading workers do."""

import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection

import typer

import labelwise.train.reader
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.train.loaders import Files, Streamed, freeze, thaw
from scripts.train import train_cli

BATCH = 32  # texts that are sent at a time


class ReadAhead(Streamed):
    """Streams through another process; a pipe's buffer holds what is ahead."""

    def epoch(self, rng: random.Random | None) -> Iterator[StoredDoc]:
        """Yield every text, in an order that the generator decides."""
        context = get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=send, args=(self.files, rng, sender), daemon=True)
        process.start()
        sender.close()
        while batch := receiver.recv():
            yield from map(thaw, batch)
        process.join()


def send(files: Files, rng: random.Random | None, sender: Connection) -> None:
    """Read an epoch, and send it in batches, an empty one last."""
    docs = map(freeze, Streamed(files).epoch(rng))
    with suppress(BrokenPipeError):  # training has ended
        while batch := list(islice(docs, BATCH)):
            sender.send(batch)
        sender.send([])


if __name__ == "__main__":
    labelwise.train.reader.Streamed = ReadAhead  # type: ignore[misc]
    typer.run(train_cli)

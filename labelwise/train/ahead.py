"""Prepare batches in another process while a GPU computes, so it needn't wait.

The process reads and tokenizes the texts of the next steps, and makes arrays (`PreparedText`). Training is the same, to
the bit.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from labelwise.base.errors import InputError
from labelwise.base.parallel import open_pool
from labelwise.corpus.pipeline import bounded_vocab
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.train.reader import Batch, PartitionedCorpus, example_maker, read_batches
from labelwise.train.training import Training

AHEAD = 3  # batches
KILLED = (
    "the process that prepares batches was killed, perhaps for lack of memory. Remedy: free some, and run the same "
    "command again, which resumes from the last checkpoint"
)
MIN_GPU_ID = 0  # the first gpu_id that batches are prepared for; -1 is the CPU


@contextmanager
def open_background(gpu_id: int) -> Iterator[Executor | None]:
    """Start a process that prepares batches for a GPU, before CUDA, which forked processes can't share.

    YIELDS (Executor | None): None on the CPU.
    RAISES (InputError): if the process was killed.
    """
    if gpu_id < MIN_GPU_ID:
        yield None
        return
    with open_pool(1) as pool:
        try:
            # Until it answers, nothing else is submitted: of a process that dies at its start, Python 3.11 forgets jobs
            # that come meanwhile, and waits for them forever.
            pool.submit(len, ()).result()
        except BrokenExecutor as error:
            raise InputError(KILLED) from error
        # With the other end open here, too, reading results would wait forever if the process is killed amid a batch.
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
        yield pool


def open_batches(training: Training) -> Iterator[Batch]:
    """Yield this rank's batches from the training's position; prepared, if it has a process and a transformer.

    RAISES (InputError): if that process was killed, or reading fails.
    """
    corpus, settings, state, ranks = training.corpus, training.settings, training.state, training.ranks
    background = training.background
    place = (settings["max_epochs"], state.epoch, state.batches, ranks.rank, ranks.count)
    read = partial(read_batches, corpus, settings["batcher"], *place)
    prepare = getattr(training.nlp.get_pipe("ner"), "preparer", lambda: None)()
    if not background or not prepare:
        yield from read()
        return
    tokenizer = training.nlp.config.interpolate()["nlp"]["tokenizer"]
    try:
        background.submit(_begin, partial(_prepare, corpus, read, tokenizer, prepare)).result()
        waiting = deque(background.submit(_take) for _ in range(AHEAD))
        while ready := waiting.popleft().result():
            waiting.append(background.submit(_take))
            batch, corpus.counts = ready
            yield batch
    except BrokenExecutor as error:
        raise InputError(KILLED) from error


_batches: Iterator[tuple[Batch, Counter[str]]]  # in the other process, as all below


def _begin(batches: Callable) -> None:
    global _batches  # noqa: PLW0603
    _batches = batches()


def _take() -> tuple[Batch, Counter[str]] | None:
    return next(_batches, None)


def _prepare(
    corpus: PartitionedCorpus, read: Callable[[], Iterator[Batch]], tokenizer: dict[str, Any], prepare: Callable
) -> Iterator[tuple[Batch, Counter[str]]]:
    lang, rules = read_tokenizer(corpus.path.parent / "tokenizer.json")
    nlp = make_nlp(lang, replace(rules, block=tokenizer))
    make_example = example_maker(nlp)
    for batch in read():
        with bounded_vocab(nlp):
            texts = [prepare(make_example(text)) for text in batch.texts]
        yield batch._replace(texts=texts), corpus.counts

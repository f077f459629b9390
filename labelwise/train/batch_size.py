"""Find out how much a device can be given at a time: train on the worst texts, more and more, until memory runs out.

Every trial is a process of its own: one that has run out of memory keeps what it can't free, in fragments.
"""

import hashlib
import json
import multiprocessing
import resource
from collections.abc import Callable, Iterable
from heapq import nlargest
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from spacy.training import Example
from spacy.util import registry, resolve_dot_names
from thinc.api import Config

from labelwise.common.device import device_name, use_gpu
from labelwise.common.errors import InputError
from labelwise.common.workers import start_uninterrupted
from labelwise.recognizer.transformer import joined
from labelwise.recognizer.wordpieces import wordpieces_of
from labelwise.train.batches import Batch, Cost, batch_cost
from labelwise.train.out_of_memory import is_out_of_memory
from labelwise.train.pipeline import make_pipeline, read_settings
from labelwise.train.recipe import Recipe

SHARE = 0.85  # of the largest that fits: the rest is for what no trial has seen
PRECISE = 1.05  # the search ends when what fits and what doesn't are this close
MOST = 2**20  # cost of the largest trial
SCANNED = 2000  # texts that the worst are chosen from
WORST = 32  # texts that are chosen


class LargestBatch(NamedTuple):
    """What a device can be given at a time.

    device (str): its name.
    pipeline (str): the digest of the pipeline; see `pipeline_digest`.
    unit (str): what costs are counted in: words or wordpieces, see `batches`.
    largest (int): the cost of the largest batch that fitted.
    size (int): the share of it that is safe.
    """

    device: str
    pipeline: str
    unit: str
    largest: int
    size: int


def find_batch_size(recipe: Recipe, report: Callable[[int, bool], None], *, memory: int = 0) -> LargestBatch:
    """Find the largest batch that fits.

    memory (int): bytes that a trial may have, 0 for no limit: a stand-in for the GPU's memory, on the CPU.
    report (Callable): is told the cost of each trial, and whether it fitted.
    RAISES (InputError): not even one text fits, or a trial fails in another way.
    """

    def fits(cost: int) -> tuple[bool, int]:
        """Try a cost in a process of its own; see `search`."""
        fitted, taken = run_apart(recipe, memory, cost)
        report(taken, fitted)
        return fitted, taken

    largest = search(fits)
    if not largest:
        raise InputError("not even one text fits into memory; set max_words of corpora.train, or use a smaller model")
    settings = read_settings(recipe)
    unit = settings["training"]["batcher"]["unit"]
    return LargestBatch(device_name(recipe.gpu_id), pipeline_digest(settings), unit, largest, int(SHARE * largest))


def read_batch_size(path: Path | None, gpu_id: int, settings: Config) -> int:
    """Read what find-batch-size has found; 0 if there is nothing, or it is for another device or pipeline."""
    if path is None or not path.is_file():
        return 0
    try:
        found = json.loads(path.read_text(encoding="utf8"))
        same = found["device"] == device_name(gpu_id) and found["pipeline"] == pipeline_digest(settings)
        size = found["size"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not what find-batch-size writes ({error!r}); run it again") from error
    return size if same else 0


def pipeline_digest(settings: Config) -> str:
    """Return a digest that is the same for pipelines that need the same memory."""
    facts = [settings["components"], settings["training"]["batcher"].get("unit")]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def search(fits: Callable[[int], tuple[bool, int]]) -> int:
    """Find the largest cost that fits, by doubling and then by bisection; 0 if not even the least does.

    fits (Callable): tries a cost; tells whether it fitted, and what the batch really cost: the least is one text.
    """
    fitted, low = fits(1)
    if not fitted:
        return 0
    high = 2 * low
    while high <= MOST:
        fitted, taken = fits(high)
        if not fitted:
            break
        low, high = taken, 2 * high
    while not fitted and high > PRECISE * low:
        middle = (low + high) // 2
        fits_too, taken = fits(middle)
        if fits_too and taken <= low:  # no text fits in between
            break
        low, high = (taken, high) if fits_too else (low, middle)
    return low


def run_apart(recipe: Recipe, memory: int, cost: int) -> tuple[bool, int]:
    """Run a trial in a process of its own; return whether it fitted, and what the batch cost.

    RAISES (InputError): it failed other than by running out of memory.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=try_out, args=(recipe, memory, cost, sender), daemon=True)
    start_uninterrupted(process)
    sender.close()
    messages = []
    try:
        while True:
            messages.append(receiver.recv())
    except EOFError:
        process.join()
    taken = next((message for message in messages if isinstance(message, int)), 0)
    error = next((message for message in messages if isinstance(message, str)), "")
    if error:
        raise InputError(f"a trial failed: {error}")
    if not taken:
        raise InputError("memory ran out before any text was read: the pipeline alone needs more")
    # A signal ends a process whose library doesn't check its allocations, and one that the kernel kills.
    return process.exitcode == 0, taken


def try_out(recipe: Recipe, memory: int, cost: int, sender: Connection) -> None:
    """Make two updates with a batch of the worst texts, and predict; exit with status 1 when memory runs out."""
    try:
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        use_gpu(recipe.gpu_id)
        nlp = make_pipeline(recipe, read_settings(recipe))
        training = registry.resolve(nlp.config.interpolate()["training"])
        [corpus] = resolve_dot_names(nlp.config.interpolate(), [training["train_corpus"]])
        training["batcher"].bind(wordpieces_of(nlp))
        worst = worst_texts(corpus(nlp), training["batcher"].cost)
        batch = fill(worst, cost)
        sender.send(batch.cost)
        with joined(nlp):
            # First one text, so that gradients and the optimizer's state exist.
            for sub_batch in (worst.take([0]), batch, batch):
                nlp.update(sub_batch, drop=training["dropout"], sgd=training["optimizer"])
            docs = (eg.predicted.copy() for eg in islice(cycle(worst), nlp.batch_size))  # as evaluation does
            list(nlp.pipe(docs))
    except Exception as error:
        # With too little memory, libraries fail to load or to start threads, with all kinds of errors.
        starved = bool(memory) and not isinstance(error, InputError | ValueError)
        if not (is_out_of_memory(error) or starved):
            sender.send(str(error) if isinstance(error, InputError) else repr(error))
        raise SystemExit(1) from None


def worst_texts(examples: Iterable[Example], cost: Callable[[Any], Cost]) -> Batch:
    """Take the widest of the first texts of an epoch, the longest of equally wide ones; the others aren't held."""
    pairs = ((cost(eg), eg) for eg in islice(examples, SCANNED))
    worst = nlargest(WORST, pairs, key=lambda pair: (pair[0].width, pair[0].rows))
    return Batch([eg for _, eg in worst], [cost for cost, _ in worst])


def fill(worst: Batch, cost: int) -> Batch:
    """Repeat texts until they cost `cost`, or one more would exceed it; there is at least one."""
    chosen: list[int] = []
    for number in cycle(range(len(worst))):
        more = [*chosen, number]
        if chosen and batch_cost(worst.costs[one] for one in more) > cost:
            break
        chosen = more
    return worst.take(chosen)

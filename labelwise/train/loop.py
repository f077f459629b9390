"""What labelwise puts into spaCy's own training loop (spacy/training/loop.py), which is neither copied nor changed.

Four functions that the loop calls by name are replaced while it runs:

1. `create_train_batches`: streams whatever `max_epochs` is; texts that are done with are forgotten.
2. `create_evaluation_callback`: the dev set is streamed too, for the same scores.
3. `subdivide_batch`: a batch is divided by what its sub-batches cost, not by the number of its texts.
4. `train_while_improving`: spaCy's generator, within which updates that run out of memory are caught, and around which
   checkpoints are saved.

`shortcuts` has two more, of spaCy's update.

A training resumes from a checkpoint by replaying the earlier steps without their work: the loop is given empty batches
and the scores of that time, so that its own counters and schedules get to where they were. What is random in a step
follows from the seed, the step's number and the rank, so that no generator's state has to be kept.

Several processes, the ranks, each run the loop on the same batches. They share out the texts of each batch, and of dev,
sum gradients and counts, and so take the same steps. Only the first one writes files.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import spacy.training.loop as spacy_loop
from spacy.language import Language
from spacy.training import Example
from thinc.api import Optimizer, fix_random_seed

from labelwise.common.errors import InputError
from labelwise.common.memory import Trimmer
from labelwise.corpus.streaming import forgetting
from labelwise.train.batches import Batch, CostBatcher, Item, word_cost
from labelwise.train.checkpoints import Checkpoints, State, copy, restore
from labelwise.train.clock import Clock
from labelwise.train.dev_scores import EntityCounts, evaluate, weighted_score
from labelwise.train.gradients import Gradients
from labelwise.train.monitor import Monitor
from labelwise.train.out_of_memory import OnOom, Updates, is_out_of_memory
from labelwise.train.parameters import find_scalers
from labelwise.train.ranks import Alone, Ranks
from labelwise.train.reader import PartitionedCorpus
from labelwise.train.shortcuts import SHORTCUTS, Replacement, replaced

SPACY_LOOP = spacy_loop.train_while_improving


class Replayed:
    """A batch of a step that was taken before the checkpoint: a number of words, and nothing to do."""

    def __init__(self, words: int) -> None:
        """Take the number of words."""
        self.words = words

    def __iter__(self) -> Iterator[range]:
        """Yield something whose length is the number of words, which is all that the loop asks."""
        yield range(self.words)


class Run:
    """A training: what the replaced functions share.

    output (Path | None): the folder that spaCy saves to; None in ranks after the first.
    ranks (Ranks): the processes that train together.
    checkpoints (Checkpoints | None): where to save one at each evaluation.
    resumed (tuple | None): the checkpoint to resume from, and its state.
    on_oom (str): when memory runs out, "stop", or "halve" what the device is given at a time, and continue.
    skip_first (bool): after the first step, don't evaluate the pipeline, which has learnt nothing yet.
    updates (Updates): what updates the pipeline, and knows what to do when memory runs out.
    """

    def __init__(
        self,
        output: Path | None,
        *,
        monitor: Monitor,
        ranks: Ranks | None = None,
        checkpoints: Checkpoints | None = None,
        resumed: tuple[Path, State] | None = None,
        on_oom: OnOom = "stop",
        skip_first: bool = False,
    ) -> None:
        """Prepare a training."""
        self.output = output
        self.ranks = ranks or Alone()
        self.monitor = monitor
        self.checkpoints = checkpoints
        self.resumed = resumed
        self.skip_first = skip_first
        self.clock = Clock()
        self.trimmer = Trimmer()
        self.state = resumed[1] if resumed else State()
        self.updates = Updates(self.state, on_oom)
        self.corpus: Any = None
        monitor.begin(self.state.step, self.state.words)
        self._replay = list(self.state.scores)
        self._restore: Callable[[], None] | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make a block in which spaCy's loop calls this training's functions.

        RAISES (InputError): memory ran out.
        """
        names = ("create_train_batches", "create_evaluation_callback", "subdivide_batch", "train_while_improving")
        try:
            with replaced((*(Replacement(spacy_loop, name, getattr(self, name)) for name in names), *SHORTCUTS)):
                yield
        except Exception as error:
            # spaCy saves the pipeline even then, which can fail as well, and hide why.
            if self.updates.failure:
                raise self.updates.failure from error
            raise

    def create_train_batches(
        self, nlp: Language, corpus: Any, batcher: Any, max_epochs: int
    ) -> Iterator[tuple[int, Batch | Replayed]]:
        """Yield (epoch, batch) for each step, for `max_epochs` epochs, or forever if that is less than 1."""
        self.corpus = corpus
        zone: Callable[[], AbstractContextManager[Any]] = nullcontext
        read: Callable[[Language], Iterable[Item]] = corpus
        if isinstance(corpus, PartitionedCorpus) and corpus.loader != "in_memory":
            zone = partial(forgetting, nlp)
            if isinstance(batcher, CostBatcher):
                read = corpus.texts
        start, skip = self.state.epoch, self.state.batches
        seed = nlp.config.interpolate()["training"]["seed"]
        if isinstance(batcher, CostBatcher):
            batcher.bind(nlp)
            self.updates.unit = batcher.unit
            self.state.device_size = min(filter(None, (self.state.device_size, batcher.device_size)), default=0)
        for step in range(self.state.step + 1):
            yield start, Replayed(self.state.words if step == 0 else 0)
        for epoch in count(start):
            if 0 < max_epochs <= epoch:
                return
            if isinstance(corpus, PartitionedCorpus):
                corpus.epoch = epoch
            items = self.clock.during("reading", read(nlp))
            batches = batcher(items, zone) if isinstance(batcher, CostBatcher) else batcher(items)
            number = 0
            for number, batch in enumerate(self.clock.during("batching", batches), 1):
                if number > skip or epoch > start:
                    if self._restore:
                        self._restore()
                        self._restore = None
                    self.state.epoch, self.state.batches = epoch, number
                    fix_random_seed(zlib.crc32(f"{seed}/{self.state.step + 1}/{self.ranks.rank}".encode()))
                    yield epoch, batch
            if not number:
                raise InputError("training.train_corpus: the corpus is empty")

    def create_evaluation_callback(
        self, nlp: Language, dev_corpus: Callable[[Language], Iterable[Example]], weights: Mapping[str, float | None]
    ) -> Callable[[], tuple[float, dict[str, Any]]]:
        """Make a function that computes the scores of the dev set, or returns those of a step that is replayed.

        RAISES (InputError): the dev set is held in memory, where an evaluation would find the last one's entities.
        """
        if getattr(dev_corpus, "loader", "") == "in_memory":
            raise InputError("corpora.dev: the loader in_memory is for training only; the dev set is streamed")

        def callback() -> tuple[float, dict[str, Any]]:
            """Score the pipeline on dev, or repeat the score that it had before training was killed."""
            if self._replay:
                return self._replay.pop(0), {}
            if self.skip_first and not self.state.scores:
                self.state.scores = [0.0]
                return 0.0, {}
            with self.clock.phase("evaluation"):
                scores = self.evaluate(nlp, dev_corpus).scores()
                score = weighted_score(scores, weights)
            self.state.scores = [*self.state.scores, score]
            return score, scores

        return callback

    def evaluate(self, nlp: Language, dev_corpus: Callable[[Language], Iterable[Example]]) -> EntityCounts:
        """Evaluate this rank's texts of dev, and add up what all ranks have counted."""
        rank, count = self.ranks.rank, self.ranks.count
        if isinstance(dev_corpus, PartitionedCorpus):
            texts = islice(dev_corpus.texts(nlp), rank, None, count)
            share: Iterable[Example] = (text.example() for text in texts)
        else:
            share = islice(dev_corpus(nlp), rank, None, count)
        counts = evaluate(nlp, share)
        return EntityCounts.total(self.ranks.exchange(counts))

    def subdivide_batch(self, batch: Any, accumulate_gradient: int) -> Iterator[Batch]:
        """Yield the sub-batches of this rank's share of a batch; then sum the gradients, those of all ranks."""
        if isinstance(batch, Replayed):
            return
        if not isinstance(batch, Batch):
            batch = Batch(batch, map(word_cost, batch))
        self.updates.begin()
        share = batch.shares(self.ranks.count)[self.ranks.rank]
        for sub_batch in share.sub_batches(accumulate_gradient, self.state.device_size):
            with self.clock.phase("reading"):
                made = sub_batch.made()
            yield made
        with self.clock.phase("waiting for the other processes"):
            self.gradients.sum()

    def train_while_improving(
        self, nlp: Language, optimizer: Optimizer, train_data: Any, evaluate: Any, **settings: Any
    ) -> Iterator[tuple[Any, dict[str, Any], bool | None]]:
        """Yield what spaCy's own generator yields, except for replayed steps."""
        if self.resumed:
            checkpoint, state = self.resumed
            if self.output:
                copy(checkpoint / "model-best", self.output / "model-best")
            self._restore = lambda: restore(checkpoint, state, nlp, optimizer)
        self.gradients = Gradients(nlp, self.ranks)
        self.clock = Clock()
        before = self.state.seconds
        start = time.perf_counter()
        update = nlp.update
        nlp.update = lambda *given, **options: self.updates.update(nlp, update, *given, **options)  # type: ignore[method-assign]
        try:
            for batch, info, is_best in SPACY_LOOP(nlp, optimizer, train_data, evaluate, **settings):
                if isinstance(batch, Replayed):
                    continue
                self.trimmer.look()
                self.state.step, self.state.words = info["step"], info["words"]
                self.state.seconds = before + time.perf_counter() - start
                self.monitor.step, self.monitor.words = info["step"], info["words"]
                if is_best is not None:
                    info["losses"] = self.total_losses(info["losses"])
                    info.update(self.progress(nlp, settings["max_steps"]))
                with self.clock.phase("saving"):
                    yield batch, info, is_best
                    if is_best is not None and info["other_scores"] and self.checkpoints and self.output:
                        self.checkpoints.save(self.state, nlp, optimizer, self.output)
        except Exception as error:
            if is_out_of_memory(error):
                self.updates.fail(
                    "in the optimizer or in evaluation. Remedy: a smaller model, or lower nlp.batch_size, or "
                    "max_batch_items of a transformer"
                )
            raise
        finally:
            del nlp.__dict__["update"]

    def total_losses(self, losses: Mapping[str, float]) -> dict[str, float]:
        """Add up the ranks' losses since the last evaluation."""
        told = self.ranks.exchange(dict(losses))
        return {name: sum(one.get(name, 0.0) for one in told) for name in dict.fromkeys(chain(*told))}

    def progress(self, nlp: Language, max_steps: int) -> dict[str, Any]:
        """Compute what spaCy's loop doesn't tell loggers: speed, time left, memory, and the gradient scaler's state."""
        done = self.state.step + 1
        # The first evaluation comes before training: it is slow, and says nothing of what follows.
        left = self.state.seconds / done * (max_steps + 1 - done) if max_steps and self.state.step else None
        scalers = find_scalers(nlp)
        return {
            "words_per_second": self.state.words / self.state.seconds,
            "seconds_left": left,
            "memory": self.monitor.memory,
            "grad_scale": float(scalers[0]._scale) if scalers else None,
            "skipped_steps": getattr(scalers[0], "skipped", 0) if scalers else None,
        }

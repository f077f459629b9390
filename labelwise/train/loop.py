"""The training loop: steps on batches, evaluations on dev, and what is kept of them.

It takes the steps of spaCy's own (spacy/training/loop.py), but streams whatever `max_epochs` is, divides a batch by
what its parts cost rather than by the number of its texts, catches updates that run out of memory, and saves
checkpoints.

What is random in a step follows from the seed, the step's number and the rank, so that no generator's state has to be
kept: a training resumes from a checkpoint by setting the schedules and the place in the corpus, and goes on.

Several processes, the ranks, each run the loop on the same batches. They share out the texts of each batch, and of dev,
sum gradients and counts, and so take the same steps. Only the first one writes files.
"""

import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import create_before_to_disk_callback, update_meta
from spacy.util import registry, resolve_dot_names
from thinc.api import Optimizer, constant, fix_random_seed, set_gpu_allocator

from labelwise.common.errors import InputError
from labelwise.common.memory import Trimmer
from labelwise.recognizer.transformer import joined
from labelwise.train.batches import Batch, CostBatcher
from labelwise.train.checkpoints import Checkpoints, State, copy, restore
from labelwise.train.clock import Clock
from labelwise.train.dev_scores import EntityCounts, count_entities, weighted_score
from labelwise.train.monitor import Monitor
from labelwise.train.out_of_memory import OnOom, Updates, is_out_of_memory
from labelwise.train.parameters import find_scalers, find_slots, sum_gradients
from labelwise.train.prepared import NextBatch, PreparedText, Reading, learn_prepared, open_batches
from labelwise.train.ranks import Alone, Ranks
from labelwise.train.reader import PartitionedCorpus

BEST = "model-best"


class Run:
    """A training: what its steps share.

    output (Path | None): the folder for the best pipeline; None in ranks after the first.
    ranks (Ranks): the processes that train together.
    checkpoints (Checkpoints | None): where to save one at each evaluation.
    resumed (tuple | None): the checkpoint to resume from, and its state.
    on_oom (str): when memory runs out, "stop", or "halve" what the device is given at a time, and continue.
    skip_first (bool): after the first step, don't evaluate the pipeline, which has learnt nothing yet.
    texts (dict[str, int]): what became of the corpus's texts in the last whole epoch, or in the first so far.
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
        self.state = resumed[1] if resumed else State()
        self.updates = Updates(self.state, on_oom)
        self.corpus: Any = None
        self.texts: dict[str, int] = {}
        monitor.begin(self.state.step, self.state.words)

    def train(self, nlp: Language, gpu_id: int, stdout: IO[str], stderr: IO[str]) -> None:
        """Train a pipeline; the best one that was evaluated is saved, as `model-best`.

        stdout, stderr (IO[str]): what the config's logger prints to.
        RAISES (InputError): memory ran out, or the corpus is empty.
        """
        training, self.corpus, dev = resolve_training(nlp, gpu_id)
        optimizer, frozen = training["optimizer"], training["frozen_components"]
        drop = training["dropout"]
        dropouts: Any = constant(drop) if isinstance(drop, float) else drop
        update = partial(update_components, nlp, exclude=frozen, annotates=training["annotating_components"])
        if self.resumed:
            self.resume(nlp, optimizer, dropouts)
        with nlp.select_pipes(disable=frozen):
            log, close = training["logger"](nlp, stdout, stderr)
        self.slots = find_slots(nlp)
        self.clock = Clock()
        trimmer, self.start = Trimmer(), time.perf_counter() - self.state.seconds
        losses: dict[str, float] = {}
        check = partial(self.check, nlp, dev, training, optimizer, losses, log)
        evaluated = True  # a checkpoint's step was
        try:
            # It may have been killed after its last step.
            with self.batches(nlp, training, gpu_id) as batches:
                for step, batch in () if self.is_over(training) else batches:
                    if training["before_update"]:
                        training["before_update"](nlp, {"step": step, "epoch": batch.epoch})
                    self.learn(nlp, batch.share, update, next(dropouts), losses, training["accumulate_gradient"])
                    take_step(nlp, optimizer, frozen)
                    self.state.step, self.state.words = step, self.state.words + batch.words
                    self.monitor.step, self.monitor.words = step, self.state.words
                    if step % training["eval_frequency"] == 0:
                        evaluated = check()
                    else:
                        evaluated = False
                        log(None)
                    trimmer.look()
                    if self.is_over(training):
                        break
                if not evaluated:
                    check()
        except Exception as error:
            if is_out_of_memory(error):
                raise self.updates.fail(
                    "in the optimizer or in evaluation. Remedy: a smaller model, or lower max_batch_items of "
                    "a transformer"
                ) from error
            raise
        finally:
            close()

    def is_over(self, training: Mapping[str, Any]) -> bool:
        """Tell whether the last step has been taken: by `max_steps`, or as no pipeline was better for `patience`.

        Patience ends with an evaluation, which may be the one that finds a better pipeline.
        """
        step, patience, every = self.state.step, training["patience"], training["eval_frequency"]
        if 0 < training["max_steps"] <= step:
            return True
        if step < 0 or step % every or not patience:
            return False
        return step - every * self.state.scores.index(max(self.state.scores)) >= patience

    def resume(self, nlp: Language, optimizer: Optimizer, dropouts: Iterator[float]) -> None:
        """Set parameters, optimizer and schedules to those of the checkpoint."""
        checkpoint, state = self.resumed  # type: ignore[misc]
        if self.output:
            copy(checkpoint / BEST, self.output / BEST)
        restore(checkpoint, state, nlp, optimizer)
        for _ in range(state.step + 1):
            optimizer.step_schedules()
            next(dropouts)

    @contextmanager
    def batches(
        self, nlp: Language, training: Mapping[str, Any], gpu_id: int
    ) -> Iterator[Iterator[tuple[int, NextBatch]]]:
        """Make a block in which the batches come, each with its step, for `max_epochs` epochs, or forever if it is 0.

        RAISES (InputError): the corpus is empty.
        """
        batcher, ranks = training["batcher"], self.ranks
        place = (self.state.epoch, self.state.batches)
        reading = Reading(self.corpus, batcher, *place, training["max_epochs"], ranks.rank, ranks.count)
        if isinstance(batcher, CostBatcher):
            self.updates.unit = batcher.unit
            self.state.device_size = min(filter(None, (self.state.device_size, batcher.device_size)), default=0)
        # A transformer that is frozen gives its vectors by annotating the Docs.
        transformer = nullcontext() if training["frozen_components"] else joined(nlp)
        with transformer as joint, open_batches(nlp, reading, joint, self.clock, gpu_id) as batches:
            yield self.steps(batches, training["seed"])

    def steps(self, batches: Iterable[NextBatch], seed: int) -> Iterator[tuple[int, NextBatch]]:
        """Yield the batch of each step, with the generators seeded; what is random follows from seed, step and rank."""
        for step, batch in enumerate(batches, self.state.step + 1):
            self.state.epoch, self.state.batches = batch.epoch, batch.number
            self.texts = batch.counts
            fix_random_seed(zlib.crc32(f"{seed}/{step}/{self.ranks.rank}".encode()))
            yield step, batch

    def learn(
        self, nlp: Language, share: Batch, update: Callable[..., Any], drop: float, losses: dict[str, float], parts: int
    ) -> None:
        """Compute the gradients of a step: of this rank's share of the batch, part by part; then sum those of all.

        update (Callable): updates the pipeline with a part.
        parts (int): how many there are, at least.
        RAISES (InputError): memory ran out.
        """
        self.updates.begin()
        for sub_batch in share.sub_batches(parts, self.state.device_size):
            with self.clock.phase("reading"):
                made = sub_batch.made()
            self.updates.update(nlp, update, made, losses=losses, drop=drop)
        with self.clock.phase("waiting for the other processes"):
            sum_gradients(self.slots, self.ranks)

    def score(
        self,
        nlp: Language,
        dev: Callable[[Language], Iterable[Example]],
        weights: Mapping[str, float | None],
    ) -> dict[str, Any]:
        """Evaluate the pipeline on dev, and keep the score that decides; no scores if it wasn't evaluated."""
        if self.skip_first and not self.state.scores:
            self.state.scores = [0.0]
            return {}
        with self.clock.phase("evaluation"):
            scores = self.evaluate(nlp, dev).scores()
        self.state.scores = [*self.state.scores, weighted_score(scores, weights)]
        return scores

    def evaluate(self, nlp: Language, dev_corpus: Callable[[Language], Iterable[Example]]) -> EntityCounts:
        """Evaluate this rank's texts of dev, and add up what all ranks have counted."""
        rank, count = self.ranks.rank, self.ranks.count
        if isinstance(dev_corpus, PartitionedCorpus):
            texts = islice(dev_corpus.texts(nlp), rank, None, count)
            share: Iterable[Example] = (text.example() for text in texts)
        else:
            share = islice(dev_corpus(nlp), rank, None, count)
        counts = count_entities(nlp, share)
        return EntityCounts.total(self.ranks.exchange(counts))

    def check(
        self,
        nlp: Language,
        dev: Callable[[Language], Iterable[Example]],
        training: dict[str, Any],
        optimizer: Optimizer,
        losses: dict[str, float],
        log: Callable[[dict[str, Any]], None],
    ) -> bool:
        """Evaluate the pipeline; save it if it is the best one, its scores, and a checkpoint.

        losses (dict[str, float]): those since the last evaluation; they begin anew.
        RETURNS (bool): False if it wasn't evaluated, as it has learnt nothing yet.
        """
        with nlp.use_params(optimizer.averages):
            scores = self.score(nlp, dev, training["score_weights"])
        self.state.seconds = time.perf_counter() - self.start
        info = {"step": self.state.step, "epoch": self.state.epoch, "other_scores": scores}
        info |= {"losses": self.total_losses(losses), **self.progress(nlp, training["max_steps"])}
        losses.clear()
        with self.clock.phase("saving"):
            with nlp.select_pipes(disable=training["frozen_components"]):
                update_meta(training, nlp, info)
            self.save_best(nlp, optimizer, training["before_to_disk"])
            log(info)
            if scores and self.checkpoints and self.output:
                self.checkpoints.save(self.state, nlp, optimizer, self.output)
        return bool(scores)

    def save_best(self, nlp: Language, optimizer: Optimizer, before: Callable[[Language], Language] | None) -> None:
        """Save the pipeline if it is the best so far, with the averages of its parameters."""
        if self.output and self.state.scores[-1] == max(self.state.scores):
            shutil.rmtree(self.output / BEST, ignore_errors=True)
            with nlp.use_params(optimizer.averages):
                create_before_to_disk_callback(before)(nlp).to_disk(self.output / BEST)

    def total_losses(self, losses: Mapping[str, float]) -> dict[str, float]:
        """Add up the ranks' losses since the last evaluation."""
        told = self.ranks.exchange({name: float(loss) for name, loss in losses.items()})
        return {name: sum(one.get(name, 0.0) for one in told) for name in dict.fromkeys(chain(*told))}

    def progress(self, nlp: Language, max_steps: int) -> dict[str, Any]:
        """Compute what loggers are told: score and words, speed, time left, memory, and the gradient scaler's state."""
        done = self.state.step + 1
        # The first evaluation comes before training: it is slow, and says nothing of what follows.
        left = self.state.seconds / done * (max_steps + 1 - done) if max_steps and self.state.step else None
        scalers = find_scalers(nlp)
        return {
            "score": self.state.scores[-1],
            "words": self.state.words,
            "words_per_second": self.state.words / self.state.seconds,
            "seconds_left": left,
            "memory": self.monitor.memory,
            "grad_scale": float(scalers[0]._scale) if scalers else None,
            "skipped_steps": getattr(scalers[0], "skipped", 0) if scalers else None,
        }


def resolve_training(nlp: Language, gpu_id: int) -> tuple[dict[str, Any], Any, Any]:
    """Make what the config's block `training` names; it follows with the readers of train and dev.

    RAISES (InputError): the dev set is held in memory, where an evaluation would find the last one's entities.
    """
    config = nlp.config.interpolate()
    if gpu_id >= 0 and config["training"]["gpu_allocator"]:
        set_gpu_allocator(config["training"]["gpu_allocator"])
    training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    train, dev = resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    if getattr(dev, "loader", "") == "in_memory":
        raise InputError("corpora.dev: the loader in_memory is for training only; the dev set is streamed")
    return training, train, dev


def update_components(
    nlp: Language,
    examples: Sequence[Any],
    *,
    drop: float,
    losses: dict[str, float],
    exclude: Sequence[str] = (),
    annotates: Sequence[str] = (),
) -> None:
    """Compute the gradients of Examples, as `Language.update` does, which would copy them first; or of prepared texts.

    examples (Sequence): those of one update alone, as Examples' predicted Docs are written into.
    """
    if examples and isinstance(examples[0], PreparedText):
        learn_prepared(nlp, examples, drop=drop, losses=losses)
        return
    for name, component in nlp.pipeline:
        if name not in exclude and hasattr(component, "update"):
            component.update(examples, sgd=None, losses=losses, drop=drop)
        if name in annotates:
            docs: Any = (eg.predicted for eg in examples)
            piped = (
                component.pipe(docs, batch_size=nlp.batch_size) if hasattr(component, "pipe") else map(component, docs)
            )
            for eg, doc in zip(examples, piped, strict=True):
                eg.predicted = doc


def take_step(nlp: Language, optimizer: Optimizer, frozen: Sequence[str]) -> None:
    """Have the optimizer change the parameters by their gradients."""
    for name, component in nlp.pipeline:
        trained: Any = component
        if name not in frozen and getattr(trained, "is_trainable", False) and trained.model not in (True, False, None):
            trained.finish_update(optimizer)
    optimizer.step_schedules()

"""The training loop: steps on batches, evaluations on dev, and what is kept of them.

It takes the steps of spaCy's own (spacy/training/loop.py), but streams whatever `max_epochs` is, catches updates that
run out of memory, and saves checkpoints.

What is random in a step follows from the seed, the step's number and the rank, so that no generator's state has to be
kept: a training resumes from a checkpoint by setting the schedules and the place in the corpus, and goes on.

Several processes, the ranks, each run the loop on the same batches. They share out the texts of each batch, and of dev,
sum gradients and counts, and so take the same steps. Only the first one writes files.
"""

import os
import shutil
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import create_before_to_disk_callback, update_meta
from spacy.util import registry, resolve_dot_names
from thinc.api import constant, fix_random_seed, set_gpu_allocator

from labelwise.corpus.pipeline import forgetting
from labelwise.errors import InputError
from labelwise.parallel import give_back, tree_pss
from labelwise.train.batches import Batch, example_of, read_batches, share_of, sub_batches
from labelwise.train.checkpoint import Checkpoints, State, copy, restore
from labelwise.train.dev_scores import EntityCounts, count_entities, weighted_score
from labelwise.train.parameters import find_scalers, find_slots, forget_gradients, is_out_of_memory, set_aside
from labelwise.train.ranks import Alone, sum_gradients

BEST = "model-best"
TRIM = 50  # steps from one to the next after which freed memory is given back


class TooMuch(NamedTuple):
    """Texts for which memory ran out: how many, their words, and the beginning of the first one."""

    texts: int
    words: int
    beginning: str


class Loop:
    """A training.

    output (Path | None): the folder for the best pipeline; None in ranks after the first.
    ranks (Alone): the processes that train together.
    checkpoints (Checkpoints | None): where to save one at each evaluation.
    resumed (tuple | None): the checkpoint to resume from, and its state.
    skip_first (bool): after the first step, don't evaluate the pipeline, which has learnt nothing yet.
    tell (Callable): is told when memory ran out, and training goes on.
    busy (Callable | None): measures how busy the GPU is, in percent.
    peak (int): the most memory that was seen, in bytes.
    """

    def __init__(
        self,
        nlp: Language,
        gpu_id: int,
        output: Path | None,
        *,
        ranks: Alone,
        state: State,
        checkpoints: Checkpoints | None = None,
        resumed: Path | None = None,
        skip_first: bool = False,
        tell: Callable[[str], Any] = lambda message: None,
        busy: Callable[[], float] | None = None,
    ) -> None:
        """Make what the config's block `training` names, and set all to where the checkpoint was."""
        self.nlp, self.output, self.ranks, self.state = nlp, output, ranks, state
        self.checkpoints, self.skip_first, self.tell, self.busy = checkpoints, skip_first, tell, busy
        config = nlp.config.interpolate()
        if gpu_id >= 0 and config["training"]["gpu_allocator"]:
            set_gpu_allocator(config["training"]["gpu_allocator"])
        self.training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        names = [self.training["train_corpus"], self.training["dev_corpus"]]
        self.corpus, self.dev = resolve_dot_names(config, names)
        self.optimizer, self.frozen = self.training["optimizer"], self.training["frozen_components"]
        drop: Any = self.training["dropout"]
        self.dropouts: Iterator[float] = iter(constant(drop) if isinstance(drop, float) else drop)
        self.slots, self.scalers = find_slots(nlp), find_scalers(nlp)
        self.losses: defaultdict[str, float] = defaultdict(float)
        self.spent: defaultdict[str, float] = defaultdict(float)  # since the last evaluation
        self.started, self.first, self.peak = time.perf_counter(), state.step + 1, 0
        if resumed:
            if output:
                copy(resumed / BEST, output / BEST)
            restore(resumed, state, nlp, self.optimizer)
            for _ in range(state.step + 1):
                self.optimizer.step_schedules()
                next(self.dropouts)

    def run(self, stdout: IO[str], stderr: IO[str]) -> None:
        """Take steps until `max_steps`, `max_epochs` or `patience` ends training; the last one is always evaluated.

        stdout, stderr (IO[str]): what the config's logger prints to.
        RAISES (InputError): memory ran out, or the corpus is empty.
        """
        with self.nlp.select_pipes(disable=self.frozen):
            log, close = self.training["logger"](self.nlp, stdout, stderr)
        batcher, epochs = self.training["batcher"], self.training["max_epochs"]
        batches = read_batches(self.nlp, self.corpus, batcher, epochs, self.state.epoch, self.state.batches)
        evaluated = True  # a checkpoint's step was; it may have been killed after its last one
        try:
            while not self.is_over() and (batch := self.next_batch(batches)):
                self.step(batch)
                evaluated = self.state.step % self.training["eval_frequency"] == 0 and self.check(log)
                if not evaluated:
                    log(None)
            if not evaluated:
                self.check(log)
        except Exception as error:
            if is_out_of_memory(error):
                raise InputError(
                    f"Step {self.state.step}: out of memory in the optimizer or in evaluation; take a smaller model"
                ) from error
            raise
        finally:
            close()

    def is_over(self) -> bool:
        """Tell whether the last step has been taken: by `max_steps`, or as no pipeline was better for `patience`.

        Patience ends with an evaluation, which may be the one that finds a better pipeline.
        """
        step, patience, every = self.state.step, self.training["patience"], self.training["eval_frequency"]
        if 0 < self.training["max_steps"] <= step:
            return True
        if step < 0 or step % every or not patience:
            return False
        return step - every * self.state.scores.index(max(self.state.scores)) >= patience

    def next_batch(self, batches: Iterator[Batch]) -> Batch | None:
        """Wait for the next batch; None if there is none."""
        start = time.perf_counter()
        batch = next(batches, None)
        self.spent["seconds"] += self.spent_waiting(start)
        return batch

    def spent_waiting(self, start: float) -> float:
        """Add the seconds since `start` to what was waited for, and return them."""
        seconds = time.perf_counter() - start
        self.spent["waiting"] += seconds
        return seconds

    def step(self, batch: Batch) -> None:
        """Take a step: compute the gradients of this rank's texts, add up all ranks', and change the parameters."""
        start, step = time.perf_counter(), self.state.step + 1
        if self.training["before_update"]:
            self.training["before_update"](self.nlp, {"step": step, "epoch": batch.epoch})
        self.learn(step, share_of(batch.texts, self.ranks.rank, self.ranks.count), next(self.dropouts))
        waited = time.perf_counter()
        sum_gradients(self.slots, self.scalers, self.ranks)
        self.spent_waiting(waited)
        self.state.skipped += any(scaler.found_inf for scaler in self.scalers)
        for name, component in self.nlp.pipeline:
            if name not in self.frozen and getattr(component, "is_trainable", False):
                component.finish_update(self.optimizer)  # type: ignore[attr-defined]
        self.optimizer.step_schedules()
        self.state.step, self.state.epoch, self.state.batches = step, batch.epoch, batch.number
        self.state.words += batch.words
        if step % TRIM == 0:
            give_back()
        self.spent["words"] += batch.words
        self.spent["steps"] += 1
        self.spent["busy"] += self.busy() if self.busy else 0
        self.spent["seconds"] += time.perf_counter() - start

    def learn(self, step: int, texts: Sequence[Any], drop: float) -> None:
        """Compute the gradients of texts; if memory runs out in a rank, all begin anew with fewer texts at a time.

        RAISES (InputError): memory ran out at a single text.
        """
        while True:
            fix_random_seed(zlib.crc32(f"{self.training['seed']}/{step}/{self.ranks.rank}".encode()))
            losses: dict[str, float] = {}
            told = [one for one in self.ranks.exchange(self.update(texts, drop, losses)) if one]
            if not told:
                for name, loss in losses.items():
                    self.losses[name] += float(loss)
                return
            forget_gradients(self.nlp)
            least = min(told, key=lambda one: one.words)
            if least.texts == 1:
                raise InputError(
                    f"Step {step}: out of memory at one text of {least.words:,} words, {least.beginning!r}. Remedy: "
                    f"set max_words of corpora.train below {least.words}, which cuts long texts"
                )
            self.state.sub_batch, self.state.halved = max(1, least.words // 2), self.state.halved + 1
            self.tell(
                f"Step {step}: out of memory at {least.words:,} words at a time; going on with {self.state.sub_batch:,}"
            )

    def update(self, texts: Sequence[Any], drop: float, losses: dict[str, float]) -> TooMuch | None:
        """Compute the gradients of texts, some at a time; tell at which memory ran out."""
        parts, sums = sub_batches(texts, self.training["accumulate_gradient"], self.state.sub_batch), dict[Any, Any]()
        options = {"exclude": self.frozen, "annotates": self.training["annotating_components"]}
        for part in parts:
            try:
                with forgetting(self.nlp):
                    examples = [example_of(text) for text in part]
                    self.nlp.update(examples, sgd=False, drop=drop, losses=losses, **options)  # type: ignore[arg-type]
                    del examples
                if self.scalers and len(parts) > 1:
                    set_aside(self.slots, sums)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                first = example_of(part[0]).text[:40]
                return TooMuch(len(part), sum(map(len, part)), first)
        for slot in self.slots:
            if slot.key in sums:
                slot.set_gradient(sums[slot.key])
        return None

    def check(self, log: Callable[[dict[str, Any]], None]) -> bool:
        """Evaluate the pipeline; save it if it is the best one, its scores, and a checkpoint.

        RETURNS (bool): False if it wasn't evaluated, as it has learnt nothing yet.
        """
        with self.nlp.use_params(self.optimizer.averages):
            scores = self.score()
        told = self.ranks.exchange(dict(self.losses))
        losses = {name: sum(one.get(name, 0.0) for one in told) for name in dict.fromkeys(chain(*told))}
        self.state.seconds += self.spent["seconds"]
        info = {"step": self.state.step, "epoch": self.state.epoch, "words": self.state.words, "losses": losses}
        info |= {"score": self.state.scores[-1], "other_scores": scores, **self.resources()}
        self.losses.clear()
        self.spent.clear()
        with self.nlp.select_pipes(disable=self.frozen):
            update_meta(self.training, self.nlp, info)
        self.save_best()
        log(info)
        if scores and self.checkpoints and self.output:
            self.checkpoints.save(self.state, self.nlp, self.optimizer, self.output)
        return bool(scores)

    def score(self) -> dict[str, Any]:
        """Evaluate the pipeline on dev, and keep the score that decides; no scores if it wasn't evaluated."""
        if self.skip_first and not self.state.scores:
            self.state.scores = [0.0]
            return {}
        scores = self.evaluate().scores()
        self.state.scores = [*self.state.scores, weighted_score(scores, self.training["score_weights"])]
        return scores

    def evaluate(self) -> EntityCounts:
        """Evaluate this rank's texts of dev, and add up what all ranks have counted."""
        texts: Iterable[Any] = self.dev.texts(self.nlp) if hasattr(self.dev, "texts") else self.dev(self.nlp)
        share = map(example_of, islice(texts, self.ranks.rank, None, self.ranks.count))
        return EntityCounts.total(self.ranks.exchange(count_entities(self.nlp, share)))

    def save_best(self) -> None:
        """Save the pipeline if it is the best so far, with the averages of its parameters."""
        if self.output and self.state.scores[-1] == max(self.state.scores):
            shutil.rmtree(self.output / BEST, ignore_errors=True)
            with self.nlp.use_params(self.optimizer.averages):
                create_before_to_disk_callback(self.training["before_to_disk"])(self.nlp).to_disk(self.output / BEST)

    def resources(self) -> Mapping[str, Any]:
        """Tell what the steps since the last evaluation took, and how long those that are left will take."""
        memory = tree_pss(os.getpid()) if self.output else 0
        self.peak = max(self.peak, memory)
        spent, seconds = self.spent, max(self.spent["seconds"], 1e-9)
        used = {"seconds": f"{self.state.seconds:.1f}", "step": self.state.step}
        used |= {"words_per_second": round(spent["words"] / seconds), "memory_mb": round(memory / 2**20)}
        used |= {"waiting_percent": round(100 * spent["waiting"] / seconds)}
        if self.busy:
            used["gpu_percent"] = round(spent["busy"] / max(1, spent["steps"]))
        done, steps = self.state.step + 1 - self.first, self.training["max_steps"]
        # The first evaluation comes before training: it is slow, and says nothing of what follows.
        each = (time.perf_counter() - self.started) / done if done > 1 else None
        told: dict[str, Any] = {"resources": used}
        told["seconds_left"] = each * (steps - self.state.step) if each and steps else None
        if self.scalers:
            told["scaler"] = {"grad_scale": f"{float(self.scalers[0]._scale):g}", "skipped_steps": self.state.skipped}
        return told

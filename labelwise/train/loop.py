"""The training loop: spaCy's own (spacy/training/loop.py, train_while_improving), streamed, in one process or more.

Whatever `max_epochs` is, texts are streamed, and an update that runs out of memory is begun anew with fewer words at a
time. What is random in a step follows from the seed, the step's number and the rank, so that no generator's state has
to be kept: a training resumes from a checkpoint by setting the schedules and the place in the corpus, and goes on.

Several processes, the ranks, each run the loop on the same batches. They share out the texts of each batch, and of dev,
sum gradients and counts, and so take the same steps.
"""

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry
from thinc.api import constant, fix_random_seed, set_gpu_allocator

from labelwise.base.errors import InputError
from labelwise.base.parallel import give_back
from labelwise.corpus.docbin_reader import StoredDoc
from labelwise.corpus.pipeline import forgetting, predict_each, untaught_labels
from labelwise.train.checkpoint import State
from labelwise.train.dev_scores import Counts, count_entities, scores_of, weighted_score
from labelwise.train.parameters import find_scalers, find_slots, forget_gradients, is_out_of_memory, set_aside
from labelwise.train.ranks import Alone, sum_gradients
from labelwise.train.reader import Batch, deal_out, example_maker, open_corpora, read_batches, sub_batches

TRIM = 50  # steps from one to the next after which freed memory is given back


class Loop:
    """A training.

    state (State): where it is; it changes with every step.
    ranks (Alone): the processes that train together.
    tell (Callable): is told when memory ran out, and training goes on.
    spent (Counter[str]): since the last evaluation: words, seconds of all steps, and those of waiting.
    """

    def __init__(
        self, nlp: Language, gpu_id: int, state: State, ranks: Alone, tell: Callable[[str], Any] = lambda message: None
    ) -> None:
        """Make what the config's block `training` names.

        RAISES (InputError): a corpus isn't read by our reader; see `open_corpora`.
        """
        self.nlp, self.state, self.ranks, self.tell = nlp, state, ranks, tell
        config = nlp.config.interpolate()
        if gpu_id >= 0 and config["training"]["gpu_allocator"]:
            set_gpu_allocator(config["training"]["gpu_allocator"])
        self.training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        self.corpus, self.dev = open_corpora(config)
        self.optimizer = self.training["optimizer"]
        self.make_example = example_maker(nlp)
        self.slots, self.scalers = find_slots(nlp), find_scalers(nlp)
        self.losses: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()

    def run(self) -> Iterator[dict[str, Any]]:
        """Take steps until `max_steps`, `max_epochs` or `patience` ends training; the last one is always evaluated.

        YIELDS (dict[str, Any]): after each step, what spaCy's loop tells its logger; of one that wasn't evaluated,
            `score` is None.
        RAISES (InputError): memory ran out, or the corpus is empty.
        """
        state, training = self.state, self.training
        drop, evaluated = training["dropout"], state.step
        dropouts = islice(constant(drop) if isinstance(drop, float) else drop, state.step + 1, None)
        batches = read_batches(self.corpus, training["batcher"], training["max_epochs"], state.epoch, state.batches)
        while not self.is_over():
            with self.timed("seconds"):
                with self.timed("waiting"):
                    batch = next(batches, None)
                if batch is None:
                    break
                self.take_step(batch, next(dropouts))
            if state.step and state.step % training["eval_frequency"] == 0:
                evaluated = state.step
                yield self.evaluated()
            else:
                yield {"step": state.step, "score": None}
        if state.step > evaluated:
            yield self.evaluated()

    def is_over(self) -> bool:
        """Tell whether the last step was taken: by `max_steps`, or as no evaluation was better for `patience` steps."""
        step, every = self.state.step, self.training["eval_frequency"]
        scores = [0.0, *self.state.scores]  # after step 0, nothing has been learnt
        waited = step - every * scores.index(max(scores)) if step % every == 0 else 0
        return 0 < self.training["max_steps"] <= step or 0 < self.training["patience"] <= waited

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that a block takes to what was spent."""
        start = time.perf_counter()
        yield
        self.spent[name] += time.perf_counter() - start  # type: ignore[assignment]

    def take_step(self, batch: Batch, drop: float) -> None:
        """Compute the gradients of this rank's texts, add up all ranks', and change the parameters."""
        state, step, words = self.state, self.state.step + 1, sum(map(len, batch.texts))
        self.learn(step, deal_out(batch.texts, self.ranks.count)[self.ranks.rank], drop)
        with self.timed("waiting"):
            sum_gradients(self.slots, self.scalers, self.ranks)
        for _, component in self.nlp.pipeline:
            if getattr(component, "is_trainable", False):
                component.finish_update(self.optimizer)  # type: ignore[attr-defined]
        self.optimizer.step_schedules()
        state.step, state.epoch, state.batches = step, batch.epoch, batch.number
        state.words += words
        self.spent["words"] += words
        if step % TRIM == 0:
            give_back()

    def learn(self, step: int, texts: Sequence[StoredDoc], drop: float) -> None:
        """Compute the gradients of texts; if memory runs out in a rank, all begin anew with fewer words at a time."""
        while True:
            fix_random_seed(zlib.crc32(f"{self.training['seed']}/{step}/{self.ranks.rank}".encode()))
            losses: dict[str, float] = {}
            too_many = list(filter(None, self.ranks.exchange(self.update(step, texts, drop, losses))))
            if not too_many:
                self.losses.update({name: float(loss) for name, loss in losses.items()})
                return
            forget_gradients(self.nlp)
            self.state.sub_batch = min(too_many) // 2
            self.tell(
                f"Step {step}: out of memory at {min(too_many):,} words at a time; going on with "
                f"{self.state.sub_batch:,}"
            )

    def update(self, step: int, texts: Sequence[StoredDoc], drop: float, losses: dict[str, float]) -> int:
        """Compute the gradients of texts, some at a time.

        RETURNS (int): the words that were too many for the memory; 0 if it sufficed.
        RAISES (InputError): a single text was too much.
        """
        parts, sums = sub_batches(texts, self.training["accumulate_gradient"], self.state.sub_batch), dict[Any, Any]()
        for part in parts:
            try:
                with forgetting(self.nlp):
                    examples = list(map(self.make_example, part))
                    self.nlp.update(examples, sgd=False, drop=drop, losses=losses)  # type: ignore[arg-type]
                    del examples
                if self.scalers and len(parts) > 1:
                    set_aside(self.slots, sums)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if len(part) > 1:
                    return sum(map(len, part))
                raise InputError(
                    f"Step {step}: out of memory at one text of {len(part[0]):,} words, {part[0].text[:40]!r}. Remedy: "
                    f"set max_words of corpora.train below {len(part[0])}, which cuts long texts"
                ) from error
        for slot in self.slots:
            if slot.key in sums:
                slot.tensor.grad = sums[slot.key]
        return 0

    def evaluated(self) -> dict[str, Any]:
        """Evaluate the pipeline, and tell what the steps since the last evaluation took."""
        with self.nlp.use_params(self.optimizer.averages):
            score, scores = self.score_dev()
        state, losses = self.state, Counter[str]()
        for given in self.ranks.exchange(self.losses):
            losses.update(given)
        state.scores.append(score)
        state.seconds += self.spent["seconds"]
        info = {name: getattr(state, name) for name in ("step", "epoch", "words")}
        info |= {"score": state.scores[-1], "other_scores": scores, "losses": losses, "spent": self.spent}
        self.losses, self.spent = Counter(), Counter()
        return info

    def score_dev(self) -> tuple[float, dict[str, Any]]:
        """Score dev by the weights of the config; each rank counts the entities of its own texts."""
        share = islice(self.dev.texts(), self.ranks.rank, None, self.ranks.count)
        counts = count_entities(predict_each(self.nlp, share, len))
        return self.score(sum(self.ranks.exchange(counts), Counter()))

    def score(self, counts: Counts) -> tuple[float, dict[str, Any]]:
        """Score counts of entities by the weights of the config; labels that the pipeline leaves out don't count."""
        untaught = untaught_labels(self.nlp)
        scores = scores_of(Counter({key: n for key, n in counts.items() if key[0] not in untaught}))
        return weighted_score(scores, self.training["score_weights"]), scores

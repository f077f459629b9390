"""One training: its config, pipeline, state, and objects of each step."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry, resolve_dot_names
from thinc.api import set_gpu_allocator

from labelwise.base.device import use_gpu
from labelwise.train.config import fit_config, make_pipeline
from labelwise.train.parameters import find_parameters
from labelwise.train.ranks import SingleProcess
from labelwise.train.reader import example_maker
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.operating_point import Goal

Log = Callable[[str], Any]


class State(msgspec.Struct):
    """The state of a training: all that a checkpoint keeps besides arrays.

    digest (str): digest of all that its steps depend on; see `digest_training`.
    step (int): last step, from 0.
    epoch, batches (int): epoch, and number of its used batches.
    words (int): of all batches so far.
    seconds (float): of all steps so far.
    scores (list[float]): of all evaluations so far.
    sub_batch (int): words of a micro-batch, since memory ran out; 0 for the whole batch.
    skipped, skipped_in_a_row (int): steps with a non-finite loss: all, and the last ones.
    updates (list[int]): number of updates of each parameter.
    goals (dict): goals of the pipeline; see `goals`.
    """

    digest: str = ""
    step: int = -1
    epoch: int = 0
    batches: int = 0
    words: int = 0
    seconds: float = 0.0
    scores: list[float] = []
    sub_batch: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    updates: list[int] = []
    goals: dict[str, Goal] = {}


class Training:
    """A training, from its first step or a checkpoint to its end.

    state (State): changes with every step.
    log (Callable): takes messages: memory ran out, or a step was skipped.
    folder, curve (Path): rank 0's best pipeline and its scores over time.
    seen (np.ndarray): digests of the corpus's texts; see `seen_texts`.
    record (Mapping): changes to the config, digest of the corpus, and a student's raw texts; see `write_record`.
    ranks (SingleProcess): processes that train together.
    background (Executor | None): process that prepares batches; see `ahead`.
    settings (dict): objects of the config's block `training`.
    losses (Counter[str]): since the last evaluation.
    spent (Counter[str]): since then: words, seconds of all steps, and of waiting for texts and other ranks.
    """

    folder: Path
    curve: Path
    seen: np.ndarray
    record: Mapping[str, Any]
    background: Executor | None = None

    def __init__(
        self,
        config: TrainingConfig,
        nlp: Language,
        state: State | None = None,
        checkpoint: Path = Path(),
        log: Log = lambda message: None,
    ) -> None:
        self.config, self.nlp, self.checkpoint, self.log = config, nlp, checkpoint, log
        self.state, self.ranks = state or State(), SingleProcess()
        spacy_config = nlp.config.interpolate()
        if config.gpu_id >= 0 and spacy_config["training"]["gpu_allocator"]:
            set_gpu_allocator(spacy_config["training"]["gpu_allocator"])
        self.settings = registry.resolve(spacy_config["training"], schema=ConfigSchemaTraining)
        self.corpus, self.dev = resolve_dot_names(
            spacy_config, [spacy_config["training"][f"{name}_corpus"] for name in ("train", "dev")]
        )
        self.optimizer = self.settings["optimizer"]
        self.make_example = example_maker(nlp)
        self.parameters = find_parameters(nlp)
        self.losses, self.spent = Counter[str](), Counter[str]()

    def __reduce__(self) -> tuple[Callable[..., "Training"], tuple[Any, ...]]:
        """Pickle the arguments of `remake`, because pipelines can't be pickled."""
        return remake, (self.config, self.state, self.checkpoint)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to `spent`."""
        start = time.perf_counter()
        yield
        self.spent[name] += time.perf_counter() - start  # type: ignore[assignment]


def remake(config: TrainingConfig, state: State, checkpoint: Path) -> Training:
    """Rebuild rank 0's training in another process, with its own pipeline."""
    use_gpu(config.gpu_id)
    return Training(config, make_pipeline(fit_config(config)), state, checkpoint)

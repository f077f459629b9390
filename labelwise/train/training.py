"""One training: what is asked for, the pipeline, where it is, where it is saved, and what each step needs."""

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
from spacy.util import registry
from thinc.api import set_gpu_allocator

from labelwise.base.device import use_gpu
from labelwise.train.config import make_pipeline, read_settings
from labelwise.train.parameters import find_parameters
from labelwise.train.ranks import SingleProcess
from labelwise.train.reader import example_maker, open_corpora
from labelwise.train.training_config import TrainingConfig
from spacy_per_label.operating_point import Goal

Log = Callable[[str], Any]


class State(msgspec.Struct):
    """Where a training is: all that a checkpoint keeps besides arrays.

    digest (str): digest of all that its steps depend on; see `digest_training`.
    step (int): the last one that was taken, counted from 0.
    epoch, batches (int): the epoch, and the batches that were taken from it.
    words (int): of all batches so far.
    seconds (float): of all steps so far.
    scores (list[float]): of all evaluations so far.
    sub_batch (int): the words that the device is given at a time, since memory ran out; 0 for all of a batch.
    skipped, skipped_in_a_row (int): steps that changed no parameter, as a loss wasn't finite: all, and the last ones.
    updates (list[int]): how often each parameter was updated.
    goals (dict): what the pipeline was fitted for at the end; see `goals`.
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

    wanted (TrainingConfig): the config, the corpus, and what differs from the config.
    nlp (Language): the pipeline; its config is the one that is trained.
    state (State): changes with every step.
    checkpoint (Path): folder of the last checkpoint.
    log (Callable): called with messages: memory ran out, or a step was skipped.
    folder, curve (Path): where rank 0 writes the best pipeline and its scores over time.
    changed (Mapping): what training changed of the config; see `changed_keys`.
    seen (np.ndarray): digests of the corpus's texts; see `seen_texts`.
    learned (str): digest of the splits that it learns from.
    raw (Mapping | None): what a student learns from besides gold; see `RawTexts`.
    ranks (SingleProcess): the processes that train together.
    background (Executor | None): process that prepares batches; see `ahead`.
    settings (dict): the objects that the config's block `training` names.
    losses (Counter[str]): since the last evaluation.
    spent (Counter[str]): since the last evaluation: words, seconds of all steps, and seconds of waiting for texts to be
        read and tokenized, and for other ranks.
    """

    folder: Path
    curve: Path
    changed: Mapping[str, tuple[Any, Any]]
    seen: np.ndarray
    learned: str
    raw: Mapping[str, Any] | None
    background: Executor | None = None

    def __init__(
        self,
        wanted: TrainingConfig,
        nlp: Language,
        state: State | None = None,
        checkpoint: Path = Path(),
        log: Log = lambda message: None,
    ) -> None:
        self.wanted, self.nlp, self.checkpoint, self.log = wanted, nlp, checkpoint, log
        self.state, self.ranks = state or State(), SingleProcess()
        config = nlp.config.interpolate()
        if wanted.gpu_id >= 0 and config["training"]["gpu_allocator"]:
            set_gpu_allocator(config["training"]["gpu_allocator"])
        self.settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        self.corpus, self.dev = open_corpora(config)
        self.optimizer = self.settings["optimizer"]
        self.make_example = example_maker(nlp)
        self.parameters = find_parameters(nlp)
        self.losses, self.spent = Counter[str](), Counter[str]()

    def __reduce__(self) -> tuple[Callable[..., "Training"], tuple[Any, ...]]:
        """Pickle what another process makes the training from anew: pipelines hold what can't be sent."""
        return remake, (self.wanted, self.state, self.checkpoint)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that a block takes to what was spent."""
        start = time.perf_counter()
        yield
        self.spent[name] += time.perf_counter() - start  # type: ignore[assignment]


def remake(wanted: TrainingConfig, state: State, checkpoint: Path) -> Training:
    """Make rank 0's training in another process, with a pipeline of its own."""
    use_gpu(wanted.gpu_id)
    return Training(wanted, make_pipeline(wanted, read_settings(wanted)), state, checkpoint)

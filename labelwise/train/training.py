"""What each step of a training needs, made of the config."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry
from thinc.api import set_gpu_allocator

from labelwise.train.checkpoint import State
from labelwise.train.gpu import GpuMeter
from labelwise.train.parameters import find_parameters
from labelwise.train.ranks import SingleProcess
from labelwise.train.reader import example_maker, open_corpora


class Training:
    """A training.

    settings (dict): what the config's block `training` names.
    state (State): where it is; it changes with every step.
    ranks (SingleProcess): the processes that train together.
    log (Callable): is told when memory ran out, and training goes on.
    losses (Counter[str]): since the last evaluation.
    spent (Counter[str]): since the last evaluation: words, seconds of all steps, and those of waiting: for texts to be
        read and tokenized, and for other ranks.
    meter (GpuMeter): measures the GPU.
    """

    def __init__(
        self,
        nlp: Language,
        gpu_id: int,
        state: State,
        ranks: SingleProcess,
        log: Callable[[str], Any] = lambda message: None,
    ) -> None:
        """Resolve the config's block `training`."""
        self.nlp, self.state, self.ranks, self.log = nlp, state, ranks, log
        config = nlp.config.interpolate()
        if gpu_id >= 0 and config["training"]["gpu_allocator"]:
            set_gpu_allocator(config["training"]["gpu_allocator"])
        self.settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
        self.corpus, self.dev = open_corpora(config)
        self.optimizer = self.settings["optimizer"]
        self.make_example = example_maker(nlp)
        self.parameters = find_parameters(nlp)
        self.losses, self.spent = Counter[str](), Counter[str]()
        self.meter = GpuMeter(gpu_id)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that a block takes to what was spent."""
        start = time.perf_counter()
        yield
        self.spent[name] += time.perf_counter() - start  # type: ignore[assignment]

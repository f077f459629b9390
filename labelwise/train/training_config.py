"""The description of a training."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from labelwise.base.errors import InputError
from labelwise.base.files import PACKAGE
from labelwise.base.parallel import check_workers


def default_config(name: str) -> Path:
    """Find one of the project's configs by name, such as cpu."""
    return PACKAGE.parent / "configs" / f"{name}.cfg"


@dataclass(frozen=True)
class TrainingConfig:
    """Config, corpus and changes of a training, without its output: folds and shares of a corpus have one.

    max_steps (int): updates, at most the config's; 0 for the config's.
    limit (int): texts of train with the lowest keys, so a larger number includes a smaller one's; 0 for all.
    gpu_id (int): number of the GPU; -1 for the CPU.
    workers (int): processes that share each batch, on the CPU of this machine. Their number changes the result like
        another seed: by the composition of computations, and dropout.
    resume (bool): resume from the checkpoint beside the pipeline, if config, corpus and code are the same. After
        training, it has what another goal needs.
    overrides (Mapping): other values of the config, by dotted name, such as "training.dropout".
    RAISES (InputError): if a number is out of range.
    """

    config: Path
    corpus: Path
    _: KW_ONLY
    seed: int = 0
    max_steps: int = 0
    limit: int = 0
    gpu_id: int = -1
    workers: int = 1
    resume: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("config", "corpus"):
            object.__setattr__(self, name, Path(getattr(self, name)))
        if self.max_steps < 0:
            raise InputError(f"--max-steps {self.max_steps}: give a number of updates, or 0 for the config's")
        if self.limit < 0:
            raise InputError(f"--limit {self.limit}: give a number of texts, or 0 for all")
        check_workers(self.workers, self.gpu_id)

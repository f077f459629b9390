"""What a training is: described once, for all that train."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from labelwise.base.errors import InputError
from labelwise.base.files import PACKAGE
from labelwise.base.parallel import check_workers


def default_config(name: str) -> Path:
    """Find one of the project's own configs, by its name, such as cpu."""
    return PACKAGE.parent / "configs" / f"{name}.cfg"


@dataclass(frozen=True)
class TrainingConfig:
    """What is trained, of what, and how. Where it goes isn't part of it: folds and shares of a corpus have one.

    Paths may be given as strings.

    config (Path): a spaCy config.
    corpus (Path): the folder that the merge wrote.
    seed (int): of all that is random.
    max_steps (int): updates, at most those of the config; 0 leaves them to the config.
    limit (int): texts of train, those with the lowest keys, so that a larger number has all texts of a smaller one; 0
        for all.
    gpu_id (int): the number of the GPU; -1 for the CPU.
    workers (int): processes that share each batch, on the CPU of this machine. Their number changes the result no more
        than another seed would: by which texts are computed with, and what dropout draws.
    resume (bool): resume from the checkpoint, if there is one of a training with the same config, corpus and code. It
        is in a folder beside the pipeline. When training has ended well, the folder has what another goal needs.
    overrides (Mapping): other values of the config, by dotted name, such as "training.dropout".
    RAISES (InputError): a number is out of its range.
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
            raise InputError(f"--max-steps {self.max_steps}: give a number of updates, or 0 for what the config says")
        if self.limit < 0:
            raise InputError(f"--limit {self.limit}: give a number of texts, or 0 for all")
        check_workers(self.workers, self.gpu_id)

    def all_overrides(self) -> dict[str, Any]:
        """List the values of the config that differ, by dotted name."""
        changed: dict[str, Any] = {}
        if self.seed:
            changed["system.seed"] = self.seed
        if self.limit:
            changed["corpora.train.limit"] = self.limit
        return {**changed, **self.overrides}

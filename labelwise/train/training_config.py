"""What a training is: described once, for all that train."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from labelwise.base.errors import InputError
from labelwise.base.files import PACKAGE
from labelwise.base.parallel import check_workers
from labelwise.base.sections import PipelineName
from labelwise.base.settings import check_choice, check_choices

Recognizer = Literal["per-label", "ner"]
Precision = Literal["", "fp16", "bf16", "fp32"]


def default_config(name: PipelineName) -> Path:
    """Find one of labelwise's own configs.

    RAISES (InputError): there is none of that name.
    """
    check_choice("config", name, PipelineName)
    installed = PACKAGE / "project" / "clone"
    return (installed if installed.is_dir() else PACKAGE.parent) / "configs" / f"{name}.cfg"


@dataclass(frozen=True)
class TrainingConfig:
    """What is trained, of what, and how. Where it goes isn't part of it: folds and shares of a corpus have one.

    Paths may be given as strings.

    config (Path): a spaCy config.
    corpus (Path): the folder that the merge wrote.
    seed (int | None): None for the config's.
    max_steps (int): updates; 0 for the config's.
    limit (int): texts of train, those with the lowest keys, so that a larger number has all texts of a smaller one; 0
        for all.
    gpu_id (int): the number of the GPU; -1 for the CPU.
    transformer_name (str): on the hub, or a folder; empty for the config's.
    precision (str): of a transformer on a GPU: fp16, bf16 or fp32; empty for the config's. The CPU computes in fp32.
    recognizer (str): what the component `ner` is: one with a head for each label ("per-label"), or spaCy's "ner".
    vectors (Path | None): a table that `vectors.make_vectors` has made, for tok2vec; an empty one is none.
    workers (int): processes that share each batch, on the CPU of this machine. Their number changes the result no more
        than another seed would: by which texts are computed with, and what dropout draws.
    resume (bool): resume from the checkpoint, if there is one of a training with the same config, corpus and code. It
        is in a folder beside the pipeline, and deleted when training has ended well.
    overrides (Mapping): other values of the config, by dotted name, such as "training.dropout".
    RAISES (InputError): a number is out of its range, or there is no such recognizer.
    """

    config: Path
    corpus: Path
    _: KW_ONLY
    seed: int | None = None
    max_steps: int = 0
    limit: int = 0
    gpu_id: int = -1
    transformer_name: str = ""
    precision: Precision = ""
    recognizer: Recognizer = "per-label"
    vectors: Path | None = None
    workers: int = 1
    resume: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make paths of strings, and check the values."""
        for name in ("config", "corpus"):
            object.__setattr__(self, name, Path(getattr(self, name)))
        check_choices(self)
        if self.max_steps < 0:
            raise InputError(f"--max-steps {self.max_steps}: give a number of updates, or 0 for what the config says")
        if self.limit < 0:
            raise InputError(f"--limit {self.limit}: give a number of texts, or 0 for all")
        check_workers(self.workers, self.gpu_id)

    def all_overrides(self) -> dict[str, Any]:
        """List the values of the config that differ, by dotted name."""
        changed: dict[str, Any] = {}
        if self.seed is not None:
            changed["system.seed"] = self.seed
        if self.max_steps:
            changed["training.max_steps"] = self.max_steps
        if self.limit:
            changed["corpora.train.limit"] = self.limit
        if self.transformer_name:
            changed["system.transformer"] = self.transformer_name
        # fp16 is mixed precision with a gradient scaler, bf16 the same without it; see `spacy_per_label.shim`.
        if self.precision or self.gpu_id < 0:
            changed["system.mixed_precision"] = self.gpu_id >= 0 and self.precision != "fp32"
            changed["system.grad_scaler"] = self.gpu_id >= 0 and self.precision == "fp16"
        return {**changed, **self.overrides}

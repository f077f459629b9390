"""Sections of project.yml, as Structs for `settings.read_section`."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
from packaging.version import InvalidVersion, Version

from labelwise.base.errors import InputError

CONFIGS = Path("configs")
DEFAULT_TARGET_F1 = 0.8  # lower end of the interval of F1
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class VarsSection(msgspec.Struct, frozen=True):
    """`vars` of project.yml, where a comment explains each key."""

    data: str = "assets/demo"
    pipeline: str = "cpu"
    seed: int = 0
    seeds: Annotated[int, msgspec.Meta(ge=2)] = 3
    teacher: str = "small"
    steps: Annotated[int, msgspec.Meta(ge=0)] = 0
    workers: Annotated[int, msgspec.Meta(ge=1)] = 2
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 1


class DvcSection(msgspec.Struct, frozen=True):
    """`dvc` of project.yml: pipelines, pipelines with other seeds, students."""

    pipelines: list[str] = msgspec.field(default_factory=lambda: ["cpu"])
    seeds: list[str] = []
    students: list[str] = []


def is_student(name: str, root: Path = Path()) -> bool:
    """Return whether a pipeline's config names the corpus that `label_raw` makes for it."""
    config, pattern = root / CONFIGS / f"{name}.cfg", rf'(?m)^corpus *= *"training/{re.escape(name)}/corpus"'
    return config.is_file() and bool(re.search(pattern, config.read_text(encoding="utf8", errors="replace")))


def stage_of(kind: str, pipeline: str) -> str:
    """Return the name of a pipeline's stage in dvc.yaml, by kind, such as "evaluate"."""
    return f"{kind}-student@{pipeline}" if is_student(pipeline) else f"{kind}@{pipeline}"


def check_pipeline(name: str, root: Path = Path()) -> None:
    """Refuse a pipeline without a config, configs/NAME.cfg."""
    if not re.fullmatch(r"\w[\w.-]*", name) or not (root / CONFIGS / f"{name}.cfg").is_file():
        names = ", ".join(sorted(path.stem for path in (root / CONFIGS).glob("*.cfg"))) or "none"
        raise InputError(f"pipeline {name!r}: there is no {CONFIGS / name}.cfg; there are {names}")


class CheckSection(msgspec.Struct, frozen=True):
    """`check` of project.yml: folds, and training steps of each; 0 for the config's."""

    folds: int = 3
    steps: Annotated[int, msgspec.Meta(ge=0)] = 400


class ReportSection(msgspec.Struct, frozen=True):
    """`report` of project.yml (docs/settings.md)."""

    baseline: str = ""
    target_f1: Annotated[float, msgspec.Meta(ge=0, le=1)] = DEFAULT_TARGET_F1
    annotators: bool = False


class PackageName(msgspec.Struct, frozen=True):
    """`package` of project.yml, where a comment explains each key."""

    name: str = "ner"
    version: str = "0.1.0"
    license: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"name: {self.name!r}: write small letters, digits and single underscores, such as ner_lab"
            )
        try:
            as_pip_writes_it = str(Version(self.version)) == self.version
        except InvalidVersion:
            as_pip_writes_it = False
        if not as_pip_writes_it:
            raise InputError(f"version: {self.version!r}: write it as pip does, such as 1.0.0 or 2.1.0rc1")

"""Sections of project.yml that a command reads by itself, as Structs; `settings.read_section` reads them."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
from packaging.version import InvalidVersion, Version

from labelwise.base.errors import InputError

CONFIGS = Path("configs")
DEFAULT_TARGET_F1 = 0.8  # what the lower end of the interval of F1 must reach
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class VarsSection(msgspec.Struct, frozen=True):
    """The section `vars` of project.yml.

    data (str): the folder of the data, with brat/ and prodigy/ in it.
    pipeline (str): the pipeline that seeds, train-curve, compare, predict and package are about.
    seed (int): of a training.
    seeds (int): trainings that differ by their seed alone.
    teacher (str): the pipeline that annotates raw texts for a student.
    steps (int): of a training; 0 leaves them to the config.
    workers, gpus (int): processes on the CPU, and GPUs, that train.
    """

    data: str = "assets/demo"
    pipeline: str = "cpu"
    seed: int = 0
    seeds: Annotated[int, msgspec.Meta(ge=2)] = 3
    teacher: str = "small"
    steps: Annotated[int, msgspec.Meta(ge=0)] = 0
    workers: Annotated[int, msgspec.Meta(ge=1)] = 2
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 1


class DvcSection(msgspec.Struct, frozen=True):
    """The section `dvc` of project.yml: the pipelines that `dvc repro` trains, those with other seeds, and students."""

    pipelines: list[str] = msgspec.field(default_factory=lambda: ["cpu"])
    seeds: list[str] = []
    students: list[str] = []


def is_student(name: str, root: Path = Path()) -> bool:
    """Return whether the config of a pipeline names the corpus that `label_raw` makes for it."""
    config, own = root / CONFIGS / f"{name}.cfg", rf'(?m)^corpus *= *"training/{re.escape(name)}/corpus"'
    return config.is_file() and bool(re.search(own, config.read_text(encoding="utf8", errors="replace")))


def stage_of(kind: str, pipeline: str) -> str:
    """Return the name of a pipeline's stage in dvc.yaml.

    kind (str): such as "evaluate".
    """
    return f"{kind}-student@{pipeline}" if is_student(pipeline) else f"{kind}@{pipeline}"


def check_pipeline(name: str, root: Path = Path()) -> None:
    """Check that a pipeline has a config, configs/NAME.cfg.

    RAISES (InputError): it has none.
    """
    if not re.fullmatch(r"\w[\w.-]*", name) or not (root / CONFIGS / f"{name}.cfg").is_file():
        there = ", ".join(sorted(path.stem for path in (root / CONFIGS).glob("*.cfg"))) or "none"
        raise InputError(f"pipeline {name!r}: there is no {CONFIGS / name}.cfg; there are {there}")


class CheckSection(msgspec.Struct, frozen=True):
    """The section `check` of project.yml.

    folds (int): pipelines, each trained without a part of train.
    steps (int): updates of each; 0 for what the config says.
    """

    folds: int = 3
    steps: Annotated[int, msgspec.Meta(ge=0)] = 400


class ReportSection(msgspec.Struct, frozen=True):
    """The section `report` of project.yml.

    baseline (str): a git revision, such as main, to tell the difference to; empty for the last commit
        with other scores.
    target_f1 (float): what the lower end of a label's interval of F1 must reach for it to be used.
    annotators (bool): name the people who annotated.
    """

    baseline: str = ""
    target_f1: Annotated[float, msgspec.Meta(ge=0, le=1)] = DEFAULT_TARGET_F1
    annotators: bool = False


class PackageName(msgspec.Struct, frozen=True):
    """What a package is called: the section `package` of project.yml.

    name (str): without the language, which spaCy puts before it.
    license (str): an identifier, such as mit, that the hub knows; empty for none.
    description (str): what it is for; empty if there is nothing to say.
    """

    name: str = "ner"
    version: str = "0.1.0"
    license: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        """Check that a package can be called that.

        RAISES (InputError): it can't.
        """
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

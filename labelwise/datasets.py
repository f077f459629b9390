"""The data sets to merge, as declared in `datasets.yml` files.

- name: person            # also the data set's name inside Prodigy
  path: person.jsonl      # relative to this file
  labels: [PERSON]        # what the annotators were shown: a complete task covers all of these, spans or none
  kind: auto              # auto | complete | binary
  split: auto             # auto | train | dev | test   (auto: by hash)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from labelwise.errors import InputError

Split = Literal["train", "dev", "test"]
AnySplit = Literal["auto", "train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


SYNTAX = (
    "write a list of `{name: person, path: person.jsonl, labels: [PERSON]}`, if need be with "
    "`kind: auto | complete | binary` and `split: auto | train | dev | test`"
)


class DataSet(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One declared data set; `path` is absolute once loaded."""

    name: str
    path: Path
    labels: tuple[str, ...]
    kind: Literal["auto", "complete", "binary"] = "auto"
    split: AnySplit = "auto"


def load_datasets(files: Sequence[Path]) -> list[DataSet]:
    """Read the declarations, in order.

    RAISES (InputError): a file is no list of declarations, a name or a path comes twice, labels are missing.
    RAISES (FileNotFoundError): a declared file isn't there.
    """
    datasets: list[DataSet] = []
    for file in files:
        try:
            declared = msgspec.yaml.decode(
                file.read_bytes(), type=list[DataSet], dec_hook=lambda type, value: type(value)
            )
        except FileNotFoundError as error:
            raise InputError(f"{file}: there is no such file; it declares data sets, see the README") from error
        except msgspec.MsgspecError as error:
            raise InputError(f"{file}: {error}; {SYNTAX}") from error
        datasets += [
            msgspec.structs.replace(dataset, path=(file.parent / dataset.path).resolve()) for dataset in declared
        ]
    names: dict[str, DataSet] = {}
    paths: dict[Path, DataSet] = {}
    for dataset in datasets:
        if not all(label.strip() for label in dataset.labels):
            raise InputError(f"data set {dataset.name!r}: an empty label; name it")
        if not dataset.labels:
            raise InputError(f"data set {dataset.name!r}: no labels; list those that its annotators were shown")
        if dataset.name in names:
            raise InputError(f"data set {dataset.name!r} is declared twice; give each its own name")
        if dataset.path in paths:
            raise InputError(
                f"data sets {paths[dataset.path].name!r} and {dataset.name!r} are one file, {dataset.path}"
            )
        if not dataset.path.is_file():
            raise FileNotFoundError(f"data set {dataset.name!r}: there is no file {dataset.path}")
        names[dataset.name] = paths[dataset.path] = dataset
    if not datasets:
        raise InputError(f"no data set is declared in {', '.join(map(str, files))}")
    return datasets


def all_labels(datasets: Sequence[DataSet]) -> list[str]:
    """List the labels of all data sets, in the order of declaration: the order that breaks ties."""
    return list(dict.fromkeys(label for dataset in datasets for label in dataset.labels))

"""Find a model's folder, and read its files in the Hugging Face hub's formats, without PyTorch."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}


class NoModelError(ValueError):
    """A model is missing or unusable; the message has a remedy."""


class SettingError(NoModelError):
    """A layer's argument, `key = value`, can't be used; `problem` says why, with a remedy."""

    def __init__(self, key: str, value: Any, problem: str) -> None:
        self.key, self.value, self.problem = key, value, " ".join(problem.removeprefix(f"{value}: ").split())
        super().__init__(f"{key} = {value}: {self.problem}")


@contextmanager
def setting_named(key: str, value: Any) -> Iterator[None]:
    """Name the argument that a model was read for.

    RAISES (SettingError): if there is no such model.
    """
    try:
        yield
    except SettingError:
        raise
    except (NoModelError, OSError) as error:
        raise SettingError(key, value, str(error)) from error


def check_layers(name: str, layers: int, available: int) -> int:
    """Return the number of layers to keep.

    layers (int): requested number; 0 for all.
    available (int): the transformer's number.
    RAISES (SettingError): if it has fewer.
    """
    if not 0 <= layers <= available:
        raise SettingError("layers", layers, f"{name} has {available} layers; write 1 to {available}, or 0 for all")
    return layers or available


def find_root(name: str) -> Path:
    """Find an installed package's folder; return another name as a path."""
    module = name.replace("-", "_")
    spec = find_spec(module) if module.isidentifier() and not Path(name).is_dir() else None
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else Path(name)


def read_tensors(
    file: Path, selects: Callable[[str, list[int]], Any] = lambda name, shape: True
) -> dict[str, np.ndarray]:
    """Read float tensors of a safetensors file, in single precision, sorted by name.

    The format: https://github.com/huggingface/safetensors

    selects (Callable): selects tensors by name and shape.
    """
    content = np.memmap(file, np.uint8, "r")
    begin = 8 + int(content[:8].view("<u8")[0])
    tensors = {}
    for name, entry in sorted(json.loads(content[8:begin].tobytes()).items()):
        if name == "__metadata__" or entry["dtype"] not in TYPES or not selects(name, entry["shape"]):
            continue
        first, end = entry["data_offsets"]
        table = np.frombuffer(content[begin + first : begin + end].tobytes(), TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":  # the upper half of a float32
            table = (table.astype("<u4") << 16).view("<f4")
        tensors[name] = table.reshape(entry["shape"]).astype("float32")
    return tensors

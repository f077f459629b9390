"""Read tensors from a safetensors file, without PyTorch: https://github.com/huggingface/safetensors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}


def read_tensors(
    file: Path, wanted: Callable[[str, list[int]], Any] = lambda name, shape: True
) -> dict[str, np.ndarray]:
    """Read the tensors of floats, in single precision, by name and in the order of the names.

    wanted (Callable): tells by its name and shape whether a tensor is read.
    """
    content = np.memmap(file, np.uint8, "r")
    begin = 8 + int(content[:8].view("<u8")[0])
    found = {}
    for name, about in sorted(json.loads(content[8:begin].tobytes()).items()):
        if name == "__metadata__" or about["dtype"] not in TYPES or not wanted(name, about["shape"]):
            continue
        first, end = about["data_offsets"]
        table = np.frombuffer(content[begin + first : begin + end].tobytes(), TYPES[about["dtype"]])
        if about["dtype"] == "BF16":  # the upper half of a float32
            table = (table.astype("<u4") << 16).view("<f4")
        found[name] = table.reshape(about["shape"]).astype("float32")
    return found

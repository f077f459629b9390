"""A pretended GPU: arrays that refuse to meet numpy's, as cupy's do, and that count what a device would be asked to do.

In a block `pretended()`, thinc takes these arrays for cupy's, so that whatever computes on them would on a GPU; the
results are numpy's. What cupy refuses is a TypeError: numpy's arrays beside its own, a conversion that isn't said, a
kernel that is given something not contiguous. It can't tell what a kernel computes there, nor how long it takes.
"""

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import thinc.backends
from numpy.lib.mixins import NDArrayOperatorsMixin
from thinc.api import NumpyOps
from thinc.backends import context_ops
from thinc.backends.cupy_ops import CupyOps

import spacy_per_label.transformer  # noqa: F401  what is loaded later would keep what is pretended

VIEWS = ("reshape", "view", "transpose", "ravel", "split", "array_split", "broadcast_to", "expand_dims", "shape")
FROM_HERE = ("asarray", "array", "ascontiguousarray", "asfortranarray")
KERNELS = (
    "maxout backprop_maxout seq2col backprop_seq2col reduce_mean backprop_reduce_mean reduce_sum backprop_reduce_sum "
    "hash gather_add mish backprop_mish adam"
)
# Kernels of thinc that check what they are given, and wait for the device to know: how often.
WAITING = {"reduce_mean": 2, "backprop_reduce_mean": 2, "reduce_sum": 2, "backprop_reduce_sum": 2}
WAITING |= {"backprop_maxout": 1, "gather_add": 1}
CPU = NumpyOps(use_blis=False)

Line = str  # of code that asked for something, such as "spacy_per_label/loss.py:20"


class Counts(SimpleNamespace):
    """What a device was asked to do, by the line that did: kernels to launch, copies to it, and waits for it."""

    def __init__(self) -> None:
        super().__init__(launches=Counter(), copies=Counter(), waits=Counter())

    def clear(self) -> None:
        for counter in vars(self).values():
            counter.clear()


COUNTS = Counts()


def here() -> Line:
    """The innermost line of labelwise that is running, or else of whatever isn't numpy or this file."""
    frames = [
        frame for frame in traceback.extract_stack() if frame.filename != __file__ and "/numpy/" not in frame.filename
    ]
    own = [
        frame for frame in frames if "labelwise/" in frame.filename or "spacy_per_label/" in frame.filename
    ] or frames
    return f"{own[-1].filename}:{own[-1].lineno}"


def given(value: Any) -> Any:
    """Take the device's arrays out of what a function is given; numpy's are refused."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}: numpy's array beside the device's, at {here()}")
    if isinstance(value, list | tuple):
        return type(value)(map(given, value))
    return value.array if isinstance(value, Array) else value


def made(value: Any) -> Any:
    """Put the arrays of a result onto the device."""
    if isinstance(value, list | tuple):
        return type(value)(map(made, value))
    return Array(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def waiting(name: str) -> Callable[..., Any]:
    """Make a method for whose result the device is waited for."""

    def method(self: "Array", *options: Any, **named: Any) -> Any:
        COUNTS.waits[here()] += 1
        return self.array.copy() if name == "get" else getattr(self.array, name)(*options, **named)

    return method


class Array(NDArrayOperatorsMixin):
    """An array of the device."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, *options: Any, **named: Any) -> np.ndarray:
        raise TypeError(f"Implicit conversion to a NumPy array is not allowed, at {here()}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        COUNTS.launches[here()] += 1
        if out is not None:
            named["out"] = given(out)
        result = getattr(ufunc, method)(*given(inputs), **named)
        return made(result) if out is None else out[0]

    def __array_function__(self, function: Callable, types: Any, inputs: Any, named: Any) -> Any:
        COUNTS.launches[here()] += function.__name__ not in VIEWS
        return made(function(*given(inputs), **{name: given(value) for name, value in named.items()}))

    def _key(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        arrays = [one for one in keys if isinstance(one, Array | np.ndarray | list)]
        COUNTS.copies[here()] += sum(not isinstance(one, Array) for one in arrays)
        COUNTS.waits[here()] += any(isinstance(one, Array) and one.array.dtype == bool for one in arrays)
        COUNTS.launches[here()] += bool(arrays)
        return tuple(one.array if isinstance(one, Array) else one for one in keys)

    def __getitem__(self, key: Any) -> Any:
        return made(self.array[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        COUNTS.launches[here()] += 1
        self.array[self._key(key)] = given(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.array, name)
        if not callable(value):
            return made(value) if isinstance(value, np.ndarray) else value

        def method(*options: Any, **named: Any) -> Any:
            COUNTS.launches[here()] += name not in VIEWS
            return made(value(*given(options), **{key: given(one) for key, one in named.items()}))

        return method


for _name in ("__float__", "__int__", "__index__", "__bool__", "item", "tolist", "get"):
    setattr(Array, _name, waiting(_name))


class Cupy:
    """The module, as far as it is needed."""

    ndarray = Array
    __version__ = "14.0.0"

    @staticmethod
    def scatter_add(table: Array, key: Any, values: Any) -> None:
        COUNTS.launches[here()] += 1
        np.add.at(given(table), table._key(key), given(values))

    def __getattr__(self, name: str) -> Any:
        own = getattr(np, name)
        if isinstance(own, type) or not callable(own):
            return own

        def function(*inputs: Any, **named: Any) -> Any:
            if name == "save":
                return own(*inputs, **named)  # takes either
            if name in FROM_HERE and isinstance(inputs[0], np.ndarray | list):
                COUNTS.copies[here()] += 1
                return made(own(*inputs, **named))
            if name in VIEWS:  # where a split cuts is told by numbers of this side
                return made(own(given(inputs[0]), *inputs[1:], **named))
            COUNTS.launches[here()] += name not in FROM_HERE
            return made(own(*given(inputs), **{key: given(value) for key, value in named.items()}))

        if name == "add":
            function.at = self.scatter_add  # type: ignore[attr-defined]
        return function


CUPY = Cupy()


class DeviceOps(CupyOps):
    """thinc's for cupy, with kernels that numpy computes; they are strict as to where arrays are, and their layout."""

    xp = CUPY
    _xp2 = CUPY

    def clip_gradient(self, gradient: Any, threshold: float) -> Any:
        COUNTS.launches[here()] += 1
        norm = max(float(np.linalg.norm(gradient.array)), 1e-12)
        gradient.array *= min(threshold, norm) / norm
        return gradient


def kernel(name: str) -> Callable[..., Any]:
    """Make a method that launches one kernel."""

    def contiguous(value: Any) -> Any:
        if isinstance(value, Array) and not value.array.flags.c_contiguous:
            raise ValueError(f"{name} was given an array that isn't contiguous, at {here()}")
        return given(value)

    def method(self: DeviceOps, *inputs: Any, **named: Any) -> Any:
        waits = 2 if named.get("lengths") is not None else WAITING.get(name, 0)
        COUNTS.launches[here()] += 1 + waits
        COUNTS.waits[here()] += waits
        return made(
            getattr(CPU, name)(*map(contiguous, inputs), **{key: contiguous(one) for key, one in named.items()})
        )

    return method


for _name in KERNELS.split():
    setattr(DeviceOps, _name, kernel(_name))


def from_torch(tensor: Any, *, ops: Any = None) -> Array:
    """Take a tensor that PyTorch has on the device; it stays where it is."""
    return Array(tensor.detach().numpy())


def to_torch(array: Any, requires_grad: bool = False, device: Any = None) -> Any:
    """Give PyTorch an array; one of numpy's is copied to the device."""
    COUNTS.copies[here()] += isinstance(array, np.ndarray)
    tensor = sys.modules["torch"].from_numpy(array.array if isinstance(array, Array) else array)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@contextmanager
def pretended() -> Iterator[Counts]:
    """Make a block in which models that are made are on the device, and give the counts, which begin at none."""
    names = {"cupy": CUPY, "has_cupy": True, "has_cupy_gpu": False, "torch2xp": from_torch, "xp2torch": to_torch}
    names["get_torch_default_device"] = lambda: sys.modules["torch"].device("cpu")
    packages = ("thinc.", "spacy.", "spacy_transformers.", "labelwise.", "spacy_per_label.")
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(packages)]
    fakes = [(module, name, fake) for module in modules for name, fake in names.items() if name in vars(module)]
    fakes.append((thinc.backends, "CupyOps", DeviceOps))
    before, ops = [(module, name, getattr(module, name)) for module, name, _ in fakes], context_ops.get()
    for module, name, fake in fakes:
        setattr(module, name, fake)
    thinc.backends.set_current_ops(DeviceOps())
    COUNTS.clear()
    try:
        yield COUNTS
    finally:
        for module, name, own in before:
            setattr(module, name, own)
        context_ops.set(ops)

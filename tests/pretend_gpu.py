"""A pretended GPU: arrays that refuse to meet numpy's, as cupy's do.

In a block `pretended()`, thinc takes these arrays for cupy's and runs its code for GPUs, with numpy's results. A
TypeError stands for cupy's refusals: of numpy's arrays, implicit conversions, and noncontiguous arrays for kernels. It
can't show a kernel's result or time.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import thinc.backends
from numpy.lib.mixins import NDArrayOperatorsMixin
from thinc.api import NumpyOps
from thinc.backends import context_ops, context_pools
from thinc.backends.cupy_ops import CupyOps

import spacy_per_label.transformer

with suppress(ImportError):  # it needs PyTorch
    import spacy_per_label.shim  # noqa: F401

FROM_HERE = ("asarray", "array", "ascontiguousarray", "asfortranarray")  # these copy numpy's arrays to the device
KERNELS = "get_dropout_mask maxout backprop_maxout seq2col backprop_seq2col hash gather_add adam"
KERNELS += " reduce_mean backprop_reduce_mean reduce_sum backprop_reduce_sum"
CPU = NumpyOps(use_blis=False)


def held(value: Any) -> Any:
    """Return a device array's numpy array; other values unchanged."""
    return value.array if isinstance(value, Array) else value


def unwrapped(value: Any) -> Any:
    """Unwrap device arrays in arguments; refuse numpy's."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}: numpy's array beside the device's")
    if isinstance(value, list | tuple):
        return type(value)(map(unwrapped, value))
    return held(value)


def wrapped(value: Any) -> Any:
    """Wrap a result's arrays."""
    if isinstance(value, list | tuple):
        return type(value)(map(wrapped, value))
    return Array(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def on_device(function: Callable[..., Any], take: Callable[[Any], Any] = unwrapped) -> Callable[..., Any]:
    """Wrap a function of numpy's arrays for the device."""
    return lambda *inputs, **named: wrapped(
        function(*map(take, inputs), **{key: take(value) for key, value in named.items()})
    )


def from_device(name: str) -> Callable[..., Any]:
    """Make a method whose result is copied to the host."""
    return lambda self, *options: getattr(self.array, name)(*options)


class Array(NDArrayOperatorsMixin):
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def get(self) -> np.ndarray:
        return self.array.copy()

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, *options: Any, **named: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        if out is not None:
            named["out"] = unwrapped(out)
        result = getattr(ufunc, method)(*unwrapped(inputs), **named)
        return wrapped(result) if out is None else out[0]

    def _key(self, key: Any) -> Any:
        return tuple(map(held, key if isinstance(key, tuple) else (key,)))

    def __getitem__(self, key: Any) -> Any:
        return wrapped(self.array[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[self._key(key)] = unwrapped(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.array, name)
        if not callable(value):
            return wrapped(value) if isinstance(value, np.ndarray) else value
        return on_device(value)


for _name in ("__float__", "__int__", "__index__", "__bool__", "item", "tolist"):
    setattr(Array, _name, from_device(_name))


class Cupy:
    """The parts of the module that thinc needs."""

    ndarray = Array

    @staticmethod
    def scatter_add(table: Array, key: Any, values: Any) -> None:
        np.add.at(unwrapped(table), table._key(key), unwrapped(values))

    def __getattr__(self, name: str) -> Any:
        own = getattr(np, name)
        if isinstance(own, type) or not callable(own):
            return own
        if name in ("split", "array_split"):  # the places of cuts are numbers of the host
            return lambda array, *places: wrapped(own(unwrapped(array), *places))
        return on_device(own, held if name in FROM_HERE else unwrapped)


CUPY = Cupy()


class DeviceOps(CupyOps):
    """thinc's ops for cupy, strict about devices and layout, with numpy's kernels."""

    xp = CUPY
    _xp2 = CUPY

    def clip_gradient(self, gradient: Any, threshold: float) -> Any:
        norm = max(float(np.linalg.norm(gradient.array)), 1e-12)
        gradient.array *= min(threshold, norm) / norm
        return gradient


def kernel(name: str) -> Any:
    def contiguous(value: Any) -> Any:
        if isinstance(value, Array) and not value.array.flags.c_contiguous:
            raise ValueError(f"{name} was given an array that isn't contiguous")
        return unwrapped(value)

    return staticmethod(on_device(getattr(CPU, name), contiguous))


for _name in KERNELS.split():
    setattr(DeviceOps, _name, kernel(_name))


def from_torch(tensor: Any, *, ops: Any = None) -> Array:
    """Wrap a tensor of the device, without a copy."""
    return Array(tensor.detach().numpy())


def to_torch(array: Any, requires_grad: bool = False, device: Any = None) -> Any:
    """Return a tensor; copy numpy's to the device."""
    tensor = sys.modules["torch"].from_numpy(held(array))
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


@contextmanager
def pretended() -> Iterator[None]:
    names = {"cupy": CUPY, "has_cupy": True, "has_cupy_gpu": False, "torch2xp": from_torch, "xp2torch": to_torch}
    names["get_torch_default_device"] = lambda: sys.modules["torch"].device("cpu")
    packages = ("thinc.", "spacy.", "spacy_transformers.", "labelwise.", "spacy_per_label.")
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(packages)]
    fakes = [(module, name, fake) for module in modules for name, fake in names.items() if name in vars(module)]
    fakes.append((thinc.backends, "CupyOps", DeviceOps))
    before, ops = [(module, name, getattr(module, name)) for module, name, _ in fakes], context_ops.get()
    for module, name, fake in fakes:
        setattr(module, name, fake)
    # PyTorchShim asks cupy, where it is installed, for a pool, unless there is one; without a driver that fails.
    pools, pretended_pools = context_pools.get(), {**context_pools.get(), "pytorch": MagicMock()}
    context_pools.set(pretended_pools)
    thinc.backends.set_current_ops(DeviceOps())
    try:
        yield
    finally:
        for module, name, own in before:
            setattr(module, name, own)
        context_ops.set(ops)
        context_pools.set(pools)

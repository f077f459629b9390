"""The parameters of a pipeline's thinc models and shims, and their gradients."""

import gc
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from thinc.api import Model, torch2xp
from thinc.backends import context_pools, get_array_ops
from thinc.shims import Shim


class Parameter(NamedTuple):
    """A parameter of a thinc model, or of a PyTorch module in a shim. Arrays are numpy's or cupy's, not copies.

    key (tuple): optimizer's key: the owner's id, which differs between runs, and the name.
    tensor (Any): PyTorch's parameter; None for a thinc model's.
    """

    key: tuple[int, str]
    owner: Any
    tensor: Any

    @property
    def array(self) -> Any:
        """Its value."""
        return self.owner.get_param(self.key[1]) if self.tensor is None else torch2xp(self.tensor.data)

    def get(self) -> np.ndarray:
        """Copy its value to numpy."""
        return copied(self.array)

    def has_gradient(self) -> bool:
        """Return whether a gradient was computed, even zero."""
        return self.owner.has_grad(self.key[1]) if self.tensor is None else self.tensor.grad is not None

    def gradient(self) -> Any:
        """Return the gradient; create a zero one if missing."""
        if self.tensor is None:
            if not self.has_gradient():
                self.owner.set_grad(self.key[1], self.owner.ops.alloc(self.array.shape))
            return self.owner.get_grad(self.key[1])
        if self.tensor.grad is None:
            self.tensor.grad = self.tensor.new_zeros(self.tensor.shape)
        return torch2xp(self.tensor.grad)


def copied(array: Any) -> np.ndarray:
    """Copy a numpy or cupy array to numpy."""
    return array.copy() if isinstance(array, np.ndarray) else get_array_ops(array).to_numpy(array)


def find_owners(nlp: Language) -> Iterator[Any]:
    """Yield a pipeline's thinc models and shims, each once."""
    models = [getattr(pipe, "model", None) for _, pipe in nlp.pipeline]
    nodes = {node.id: node for model in models if isinstance(model, Model) for node in model.walk()}
    for node in nodes.values():
        yield node
        yield from node.shims


def find_parameters(nlp: Language) -> list[Parameter]:
    """List the parameters of a pipeline, in the same order in every run."""
    parameters = []
    for owner in find_owners(nlp):
        if isinstance(owner, Shim):
            tensors = owner._model.named_parameters() if hasattr(owner._model, "named_parameters") else ()
            parameters += [Parameter((owner.id, name), owner, tensor) for name, tensor in tensors]
        else:
            parameters += [
                Parameter((owner.id, name), owner, None) for name in owner.param_names if owner.has_param(name)
            ]
    return parameters


def find_scalers(nlp: Language) -> list[Any]:
    """List the active gradient scalers of a pipeline's PyTorch modules."""
    scalers = [getattr(owner, "_grad_scaler", None) for owner in find_owners(nlp)]
    return [scaler for scaler in scalers if scaler is not None and scaler._enabled]


def clear_gradients(nlp: Language) -> None:
    """Clear gradients and listener caches after an aborted update; free the device's memory."""
    for parameter in find_parameters(nlp):
        if parameter.tensor is not None:
            parameter.tensor.grad = None
        elif parameter.has_gradient():
            parameter.gradient()[...] = 0
    for owner in find_owners(nlp):
        if hasattr(owner, "_backprop"):  # a listener
            owner._batch_id = owner._outputs = owner._backprop = None
    gc.collect()
    # cupy's pools hold blocks of PyTorch's memory, where gpu_allocator is "pytorch".
    for pool in context_pools.get().values():
        pool.free_all_blocks()
    if (torch := sys.modules.get("torch")) and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out in numpy, cupy or PyTorch."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    signs = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "ALLOCATION_FAILED", "create a primitive")
    return isinstance(error, RuntimeError) and any(words in str(error) for words in signs)

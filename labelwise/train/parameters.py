"""The parameters of a pipeline, thinc's and those of other frameworks' modules within shims, and their gradients."""

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from thinc.api import Model
from thinc.backends import context_pools
from thinc.shims import Shim


class Slot(NamedTuple):
    """A parameter: a thinc model's, or a PyTorch module's within a shim.

    key (tuple): what the optimizer calls it: the owner's id, which differs from run to run, and the name.
    owner (Any): the thinc model or the shim.
    tensor (Any): PyTorch's parameter; None for a thinc model's.
    """

    key: tuple[int, str]
    owner: Any
    tensor: Any

    def get(self) -> np.ndarray:
        """Copy its value."""
        if self.tensor is not None:
            return self.tensor.detach().cpu().numpy().copy()
        return self.owner.ops.to_numpy(self.owner.get_param(self.key[1])).copy()

    def set(self, value: np.ndarray) -> None:
        """Change its value."""
        if self.tensor is not None:
            import torch

            self.tensor.data = torch.tensor(value, device=self.tensor.device)
        else:
            self.owner.set_param(self.key[1], self.owner.ops.asarray(value))

    def has_gradient(self) -> bool:
        """Tell whether a gradient was computed, be it zero."""
        return self.owner.has_grad(self.key[1]) if self.tensor is None else self.tensor.grad is not None

    def gradient(self) -> Any:
        """Give its gradient: an array of numpy or cupy, or PyTorch's tensor; zeros if there is none."""
        if self.tensor is not None:
            return self.tensor.grad if self.has_gradient() else self.tensor.detach().clone().zero_()
        value = self.owner.get_param(self.key[1])
        return self.owner.get_grad(self.key[1]) if self.has_gradient() else self.owner.ops.alloc(value.shape)

    def set_gradient(self, value: Any) -> None:
        """Replace its gradient with an array, or a tensor, of the kind that `gradient` gives."""
        if self.tensor is not None:
            self.tensor.grad = value
        else:
            self.owner.set_grad(self.key[1], value)


def find_owners(nlp: Language) -> Iterator[Any]:
    """Yield the thinc models of a pipeline, and the shims around other frameworks' modules, each once."""
    seen = set()
    for _, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            if node.id not in seen:
                seen.add(node.id)
                yield node
                yield from node.shims


def find_slots(nlp: Language) -> list[Slot]:
    """List the parameters of a pipeline, in an order that is the same in every run."""
    slots = []
    for owner in find_owners(nlp):
        if isinstance(owner, Shim):
            tensors = owner._model.named_parameters() if hasattr(owner._model, "named_parameters") else ()
            slots += [Slot((owner.id, name), owner, tensor) for name, tensor in tensors]
        else:
            slots += [Slot((owner.id, name), owner, None) for name in owner.param_names if owner.has_param(name)]
    return slots


def find_scalers(nlp: Language) -> list[Any]:
    """List the gradient scalers of a pipeline's PyTorch modules that are in use."""
    scalers = [getattr(owner, "_grad_scaler", None) for owner in find_owners(nlp) if isinstance(owner, Shim)]
    return [scaler for scaler in scalers if scaler is not None and scaler._enabled]


def set_aside(slots: Sequence[Slot], sums: dict[Any, Any]) -> None:
    """Add PyTorch's gradients to sums, and clear them: a scaler unscales all there are after each backward pass."""
    for slot in slots:
        if slot.tensor is not None and slot.tensor.grad is not None:
            sums[slot.key] = slot.tensor.grad + sums.get(slot.key, 0)
            slot.tensor.grad = None


def forget_gradients(nlp: Language) -> None:
    """Forget all gradients, and what listeners hold for a backward pass that won't come; free the device's memory."""
    for owner in find_owners(nlp):
        if isinstance(owner, Shim):
            for tensor in owner._model.parameters():
                tensor.grad = None
        else:
            for name in owner.grad_names:
                if owner.has_grad(name):
                    owner.set_grad(name, owner.ops.alloc(owner.get_grad(name).shape))
            if hasattr(owner, "_backprop"):  # a listener
                owner._batch_id = owner._outputs = owner._backprop = None
    gc.collect()
    # cupy's pools hold blocks of PyTorch's memory, where gpu_allocator is "pytorch".
    for pool in context_pools.get().values():
        pool.free_all_blocks()
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, in any of the libraries: numpy, cupy, PyTorch on a CPU or a GPU."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    said = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "ALLOCATION_FAILED")
    return isinstance(error, RuntimeError) and any(words in str(error) for words in said)

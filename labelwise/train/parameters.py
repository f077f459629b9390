"""The parameters of a pipeline, thinc's and those of other frameworks' modules within shims, and their gradients."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from thinc.api import Model
from thinc.shims import Shim

from labelwise.train.ranks import Ranks


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

    def set(self, value: np.ndarray) -> None:
        """Change its value."""
        if self.tensor is not None:
            import torch

            self.tensor.data = torch.tensor(value, device=self.tensor.device)
        else:
            self.owner.set_param(self.key[1], self.owner.ops.asarray(value))


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


def sum_gradients(slots: Sequence[Slot], ranks: Ranks) -> None:
    """Wait for all ranks, and give each parameter the sum of its gradients in all of them.

    A parameter that has a gradient in one of them has one in all, which may be zero: a rank may have no text, or none
    that a parameter sees. Those that are scaled, of a transformer in fp16, are summed as they are; what overflows in
    one rank overflows in the sum, so that all of them skip the step.
    """
    if ranks.count == 1:
        return
    told = ranks.exchange([slot.has_gradient() for slot in slots])
    slots = [slot for slot, has in zip(slots, zip(*told, strict=True), strict=True) if any(has)]
    for slot, total in zip(slots, ranks.sum([slot.gradient() for slot in slots]), strict=True):
        slot.set_gradient(total)


def share_parameters(slots: Sequence[Slot], ranks: Ranks) -> None:
    """Give the pipelines of all ranks the parameters of the first one's."""
    if ranks.count > 1:
        shared = ranks.sum([slot.get() * (ranks.rank == 0) for slot in slots])
        for slot, value in zip(slots, shared, strict=True):
            slot.set(value)


def find_scalers(nlp: Language) -> list[Any]:
    """List the gradient scalers of a pipeline's PyTorch modules that are in use."""
    scalers = [getattr(owner, "_grad_scaler", None) for owner in find_owners(nlp) if isinstance(owner, Shim)]
    return [scaler for scaler in scalers if scaler is not None and scaler._enabled]


def used_torch() -> Any:
    """Return the module torch if this process has imported it, else None."""
    return sys.modules.get("torch")

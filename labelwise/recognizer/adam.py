"""Adam for all parameters of a PyTorch module at a time.

thinc's optimizer takes one parameter after the other: a dozen small tasks for a GPU, a conversion and a check for each
of some two hundred. PyTorch has operations on lists of tensors. Formulas, settings and state are those of thinc's
(thinc/optimizers.py, and thinc/backends/cupy_ops.py for the kernel), so that checkpoints have what they had.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import torch
from thinc.api import Optimizer, torch2xp, xp2torch

LEAST_NORM = 1e-12


class Adam:
    """Takes a thinc optimizer's steps; its moments' arrays and PyTorch's tensors of them are the same memory."""

    def __init__(self) -> None:
        """Begin without moments: those of a restored optimizer are adopted."""
        self.held: dict[tuple[str, Any], tuple[Any, torch.Tensor]] = {}

    def step(self, optimizer: Optimizer, owner: int, parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> None:
        """Change parameters by their gradients, which are zeros afterwards.

        owner (int): the id by which the optimizer knows them, beside their names.
        """
        with torch.no_grad():
            given = [((owner, name), tensor) for name, tensor in parameters if tensor.grad is not None]
            for key, _ in given:
                optimizer.nr_update[key] += 1
            given.sort(key=lambda item: optimizer.nr_update[item[0]])
            for updates, group in groupby(given, key=lambda item: optimizer.nr_update[item[0]]):
                keys, tensors = zip(*group, strict=True)
                self._step(optimizer, keys, tensors, updates)

    def _step(self, optimizer: Optimizer, keys: Any, tensors: Any, updates: int) -> None:
        """Take the step of those that were updated equally often."""
        weights = [tensor.data.view(-1) for tensor in tensors]
        gradients = [tensor.grad.reshape(-1) for tensor in tensors]
        rate, beta1, beta2, decay = optimizer.learn_rate, optimizer.b1, optimizer.b2, optimizer.L2
        if decay and not optimizer.L2_is_weight_decay:
            torch._foreach_add_(gradients, weights, alpha=decay)
        if optimizer.grad_clip:
            norms = torch.stack(torch._foreach_norm(gradients)).clamp_min(LEAST_NORM)
            torch._foreach_mul_(gradients, list((norms.clamp_max(optimizer.grad_clip) / norms).unbind()))
        first = [self._moment(optimizer, "mom1", key, one) for key, one in zip(keys, weights, strict=True)]
        second = [self._moment(optimizer, "mom2", key, one) for key, one in zip(keys, weights, strict=True)]
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_lerp_(second, torch._foreach_mul(gradients, gradients), 1 - beta2)
        divisors = torch._foreach_sqrt(second)
        torch._foreach_add_(divisors, optimizer.eps)
        corrected = rate * (1 - beta2**updates) ** 0.5 / (1 - beta1**updates)
        torch._foreach_addcdiv_(weights, first, divisors, value=-corrected)
        if decay and optimizer.L2_is_weight_decay:
            torch._foreach_mul_(weights, 1 - rate * decay)
        torch._foreach_zero_([tensor.grad for tensor in tensors])

    def _moment(self, optimizer: Optimizer, name: str, key: Any, like: torch.Tensor) -> torch.Tensor:
        """Give a moment of a parameter, as the optimizer has it now."""
        moments = getattr(optimizer, name)
        array, tensor = self.held.get((name, key), (None, like))
        if key not in moments:
            tensor = torch.zeros_like(like)
            moments[key] = torch2xp(tensor)
        elif moments[key] is not array:  # it was restored from a checkpoint
            tensor = xp2torch(moments[key], device=like.device)
        self.held[name, key] = moments[key], tensor
        return tensor


def takes_at_once(optimizer: Optimizer) -> bool:
    """Tell whether an optimizer is one of these: Adam, without averages, which would copy each parameter."""
    return not optimizer.use_radam and optimizer.b1 > 0 and optimizer.b2 > 0 and optimizer.averages is None

"""What holds a transformer's PyTorch module: spacy-transformers' own, but for how it computes and is updated.

How a transformer is loaded, saved and tokenized for stays the library's. It is a module of its own because it needs
PyTorch and spacy-transformers when it is imported, and pipelines without a transformer have neither.
"""

from collections.abc import Callable
from typing import Any

import torch
from spacy_transformers.layers.hf_shim import HFShim
from thinc.api import Optimizer, torch2xp

HALF = ("cuda",)  # the devices that compute in half precision


class TransformerShim(HFShim):
    """Holds a transformer; see `HFShim`.

    - Mixed precision is fp16 if gradients are scaled, else bf16, in training and in prediction alike.
    - Gradients of several backward passes add up, scaled, until `finish_update` unscales them once.
    - Parameters are updated in place. `PyTorchShim` wraps the array of the last step in each one, and so keeps nearly a
      kilobyte of the host's memory for each tensor and step.
    """

    def _autocast(self) -> torch.autocast:
        """Make a block that computes in the shim's precision."""
        dtype = torch.float16 if self._grad_scaler._enabled else torch.bfloat16
        device = self.device.type
        return torch.autocast(device, dtype=dtype, enabled=self._mixed_precision and device in HALF)

    def predict(self, inputs: Any) -> Any:
        """Compute the module's output."""
        self._model.eval()
        with torch.no_grad(), self._autocast():
            output = self._model(*inputs.args, **inputs.kwargs)
        self._model.train()
        return output

    def begin_update(self, inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Compute the module's output, and return it with what adds up gradients, which has nothing to give back."""
        self._model.train()
        with self._autocast():
            output = self._model(*inputs.args, **inputs.kwargs)

        def backprop(gradients: Any) -> Any:
            """Add the gradients of the parameters to those there are."""
            scaled = self._grad_scaler.scale(gradients.kwargs["grad_tensors"], inplace=True)
            torch.autograd.backward(gradients.args, list(scaled))
            return inputs

        return output, backprop

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the parameters, unless a scaled gradient has overflowed; clear the gradients, adjust the scale."""
        trained = [(name, one) for name, one in self._model.named_parameters() if one.grad is not None]
        if not self._grad_scaler.unscale([one.grad for _, one in trained]):
            for name, one in trained:
                array, gradient = (torch2xp(each) for each in (one.data, one.grad))  # type: Any, Any
                array[...], _ = optimizer((self.id, name), array, gradient)
        for _, one in trained:
            one.grad.zero_()
        self._grad_scaler.update()

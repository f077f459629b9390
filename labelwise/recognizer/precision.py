"""Transformers in mixed precision: fp16 with a gradient scaler, bf16, or fp32.

spacy-transformers has fp16 on CUDA only. What is here works on any device that PyTorch can autocast on, so that tests
can run it on a CPU, and has bf16. It is for training: the saved pipeline names spacy-transformers' own architecture.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from spacy.language import Language
from spacy_transformers import TransformerModel
from spacy_transformers.layers.hf_shim import HFShim
from thinc.api import ArgsKwargs, Optimizer, PyTorchGradScaler, get_torch_default_device

from labelwise.common.errors import InputError
from labelwise.recognizer.adam import Adam, takes_at_once

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
META = "precision"  # the key in the meta.json of a pipeline with a transformer
SAVED_ARCHITECTURE = "spacy-transformers.TransformerModel.v3"


class GradScaler(PyTorchGradScaler):
    """thinc's gradient scaler, on any device, for gradients that are summed; it counts the steps that it skipped.

    thinc unscales all gradients after every backward pass, so that those of a batch's first sub-batch would be divided
    by the scale again for each further one. Here that is done once, before the optimizer's step.

    The scale grows when gradients haven't overflowed for some time. When they have, it is halved, and the transformer's
    step is skipped, while other components take theirs.
    """

    skipped = 0

    def _scale_tensor(self, tensor: Any, scale_per_device: Any, inplace: bool) -> Any:
        scale = self._scale.to(tensor.device)
        return tensor.mul_(scale) if inplace else tensor * scale

    def unscale(self, tensors: Any) -> bool:
        """Do nothing yet, after a backward pass."""
        return False

    def unscale_sum(self, tensors: Iterable[Any]) -> None:
        """Unscale gradients, and find out whether one has overflowed."""
        super().unscale(tensors)

    def update(self) -> None:
        """Update the scale, after each step."""
        self.skipped += self.found_inf
        super().update()


class PrecisionShim(HFShim):
    """A transformer whose forward pass is autocast to a precision; its outputs and its parameters are in fp32."""

    dtype: torch.dtype | None = None
    single = True  # the model's own outputs were in single precision, as those of a last LayerNorm are
    _adam: Adam
    _grad_scaler: GradScaler

    def predict(self, inputs: ArgsKwargs) -> Any:
        """Run the transformer for prediction."""
        with self._autocast():
            return super().predict(inputs)

    def begin_update(self, inputs: ArgsKwargs) -> Any:
        """Run the transformer for training."""
        with self._autocast():
            return super().begin_update(inputs)

    def finish_update(self, optimizer: Optimizer) -> None:
        """Take the optimizer's step with the sum of the gradients, unless it has overflowed."""
        gradients = [tensor.grad for tensor in self._model.parameters() if tensor.grad is not None]
        self._grad_scaler.unscale_sum(gradients)
        if self.device.type != "cuda" or not takes_at_once(optimizer):
            super().finish_update(optimizer)
            return
        if self._grad_scaler.found_inf:
            torch._foreach_zero_(gradients)
        else:
            self._adam.step(optimizer, self.id, self._model.named_parameters())
        self._grad_scaler.update()

    @contextmanager
    def _autocast(self) -> Iterator[None]:
        """Make a block in which the transformer's own forward pass is autocast.

        thinc's shim has an autocast of its own around it, which is off; this one is inside it. NumPy and CuPy have no
        bf16, so outputs become fp32 before they leave PyTorch.
        """
        if self.dtype is None:
            yield
            return
        module = self._model
        forward = module.forward

        def autocast_forward(*args: Any, **kwargs: Any) -> Any:
            """Compute in the precision, and return single precision."""
            with torch.autocast(self.device.type, dtype=self.dtype):
                output = forward(*args, **kwargs)
            for name, value in output.items():
                if torch.is_tensor(value) and value.is_floating_point():
                    self.single &= value.dtype == torch.float32 or name != "last_hidden_state"
                    output[name] = value.float()
            return output

        module.forward = autocast_forward
        try:
            yield
        finally:
            del module.forward  # the instance's, which hides the class's


def set_precision(model: TransformerModel, precision: str, grad_scaler_config: Mapping[str, Any]) -> None:
    """Have a transformer trained in a precision, in place.

    precision (str): "fp32"; "fp16", with a gradient scaler; "bf16".
    grad_scaler_config (Mapping): arguments of thinc's PyTorchGradScaler except `enabled`: only fp16 has one.
    RAISES (InputError): there is no such precision, or the scale isn't a float, which PyTorch would refuse later.
    """
    if precision not in ("fp32", *DTYPES):
        raise InputError(f"precision {precision!r}: give fp32, fp16 or bf16")
    scaler = {"init_scale": 2.0**16, **grad_scaler_config}
    scaler.pop("enabled", None)  # of spacy-transformers' configs; the precision says it
    if not isinstance(scaler["init_scale"], float):
        raise InputError(f"grad_scaler_config: init_scale {scaler['init_scale']} isn't a float; write a decimal point")
    own: Any = model.layers[0].shims[0]
    shim = PrecisionShim(own._hfmodel, grad_scaler_config={"enabled": False})
    shim.dtype = DTYPES.get(precision)
    shim._adam = Adam()
    shim._grad_scaler = GradScaler(enabled=precision == "fp16", **scaler)
    shim._grad_scaler.to_(get_torch_default_device())
    model.layers[0].shims[0] = shim


def predict_as_trained(nlp: Language) -> None:
    """Have a loaded pipeline predict in bf16, if it was trained in it, where the GPU can."""
    model: Any = nlp.get_pipe("transformer").model  # type: ignore[attr-defined]
    gpu = get_torch_default_device().type == "cuda"
    loaded = not isinstance(model.layers[0].shims[0], PrecisionShim)
    if loaded and nlp.meta.get(META) == "bf16" and gpu and torch.cuda.is_bf16_supported():
        set_precision(model, "bf16", {})


def as_saved(block: dict[str, Any], precision: str, single: bool) -> None:
    """Rewrite the config of a model that was trained in a precision, in place, so that it loads without labelwise.

    After fp16 it predicts in fp16 on a GPU, as it was trained; otherwise in fp32.

    single (bool): its last layer gave single precision: where it doesn't, thinc's kernels can't take what it predicts.
    """
    half = precision == "fp16" and single
    block.pop("precision", None)
    block |= {"@architectures": SAVED_ARCHITECTURE, "mixed_precision": half}
    block.setdefault("grad_scaler_config", {})["enabled"] = half

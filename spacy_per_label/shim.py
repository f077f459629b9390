"""The PyTorch backend of `transformer`: spacy-transformers' shim with mixed precision and its own fused AdamW."""

import math
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import srsly
import torch
from spacy_transformers.layers.hf_shim import HFShim
from spacy_transformers.layers.transformer_model import huggingface_from_pretrained
from thinc.api import Optimizer, torch2xp, xp2torch
from thinc.types import ArgsKwargs
from torch.optim.adamw import adamw
from transformers import AutoModel

from spacy_per_label.bert_weights import first_position
from spacy_per_label.hub_files import NoModelError, check_layers, find_root
from spacy_per_label.layer_rates import layer_rates
from spacy_per_label.windows import Window, make_tables

HALF = ("cuda",)  # the devices that compute in half precision


class TransformerShim(HFShim):
    """Holds a transformer; see `HFShim`.

    - Mixed precision is fp16 if gradients are scaled, else bf16, in training and in prediction alike.
    - Gradients of several backward passes add up, scaled, until `finish_update` unscales them once.
    - PyTorch's AdamW updates all tensors at once; thinc's Adam launches eleven kernels for each. It uses the settings
      and moments of the optimizer given to `finish_update`, so saving that optimizer saves all.
    - Parameters are updated in place. `PyTorchShim` wraps each parameter's array at each step, and so keeps nearly a
      kilobyte of the host's memory for each tensor and step.
    """

    def __init__(
        self, hf_objects: Any, *, half_weights: bool = False, rate: float = 1.0, decay: float = 1.0, **options: Any
    ) -> None:
        """hf_objects (HFObjects): none yet, but the options that its config is read with.
        half_weights (bool): save weights in fp16; computation doesn't change.
        """
        super().__init__(hf_objects, **options)
        self.half_weights, self.rate, self.decay = half_weights, rate, decay
        self.transformer_config = hf_objects._init_transformer_config
        self._listed: tuple[Any, list[tuple[str, Any]], dict[str, float]] | None = None
        self._states: dict[str, tuple[tuple[Any, Any], tuple[torch.Tensor, ...]]] = {}

    def read(self, name: str, layers: int) -> tuple[str, int, int]:
        """Read a transformer; return its tokenizer.json, width, and number of positions.

        name (str): a folder, a package or a name on the hub.
        layers (int): layers to keep, the lowest ones; 0 for all.
        RAISES (NoModelError): if its tokenizer isn't a fast one, or it has fewer layers.
        """
        folders = sorted(file.parent for file in find_root(name).rglob("config.json"))
        source = str(folders[0]) if folders else name
        self._hfmodel = huggingface_from_pretrained(source, {}, dict(self.transformer_config))
        self._model, tokenizer = self._hfmodel.transformer, self._hfmodel.tokenizer
        if not tokenizer.is_fast:
            raise NoModelError(f"{name} has no fast tokenizer (tokenizer.json); take another transformer")
        config = self._model.config
        if layers:
            config.num_hidden_layers = check_layers(name, layers, config.num_hidden_layers)
            state, cut = self._model.state_dict(), AutoModel.from_config(config)
            cut.load_state_dict({key: state[key] for key in cut.state_dict()})
            self._model = self._hfmodel.transformer = cut.to(self._model.device)
        positions = getattr(config, "max_position_embeddings", None) or 10**6  # relative ones have no end
        return tokenizer.backend_tokenizer.to_str(), config.hidden_size, positions - first_position(config.to_dict())

    def encode(
        self, ops: Any, windows: Sequence[Window], own: np.ndarray, is_train: bool
    ) -> tuple[Any, Callable[[Any], None]]:
        """Compute the vectors of the windows' own wordpieces; see `NumpyShim.encode`."""
        tables, cell_of_piece = make_tables(windows, self._hfmodel.tokenizer.pad_token_id or 0)
        # A copy to a GPU waits for its computations, so all tables are copied before the first is computed.
        inputs = [self._copied(*table) for table in tables]
        with self.autocast():  # weights are cast to half precision once for all tables
            outputs, backprops = zip(*(self(table, is_train) for table in inputs), strict=True)
        hidden = [output.last_hidden_state for output in outputs]  # each (rows, longest row, width)
        # thinc's kernels need single precision.
        X: Any = torch2xp(torch.cat([table.detach().float().flatten(0, 1) for table in hidden]), ops=ops)
        cells = ops.asarray(cell_of_piece[own])  # (own wordpieces,)

        def backprop(gradient: Any) -> None:
            dX = ops.alloc_f(X.shape)  # (cells, width)
            dX[cells] = gradient
            parts = xp2torch(dX).split([len(table.flatten(0, 1)) for table in hidden])
            for table, part, backprop_table in zip(hidden, parts, backprops, strict=True):
                backprop_table(ArgsKwargs((table,), {"grad_tensors": [part.reshape(table.shape).to(table.dtype)]}))

        return X[cells], backprop

    def _copied(self, ids: Any, mask: Any) -> ArgsKwargs:
        device = self._model.device
        inputs = {"input_ids": xp2torch(ids, device=device), "attention_mask": xp2torch(mask, device=device)}
        return ArgsKwargs((), inputs)

    def autocast(self) -> torch.autocast:
        """Return a context manager that computes in the shim's precision."""
        dtype = torch.float16 if self._grad_scaler._enabled else torch.bfloat16
        device = self.device.type
        return torch.autocast(device, dtype=dtype, enabled=self._mixed_precision and device in HALF)

    def predict(self, inputs: Any) -> Any:
        """Compute the module's output."""
        self._model.eval()
        with torch.no_grad(), self.autocast():
            output = self._model(*inputs.args, **inputs.kwargs)
        self._model.train()
        return output

    def begin_update(self, inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Compute the module's output; return it with backprop, which adds up the weights' gradients."""
        self._model.train()
        with self.autocast():
            output = self._model(*inputs.args, **inputs.kwargs)

        def backprop(gradients: Any) -> Any:
            scaled = self._grad_scaler.scale(gradients.kwargs["grad_tensors"], inplace=True)
            torch.autograd.backward(gradients.args, list(scaled))
            return inputs

        return output, backprop

    def halve(self) -> None:
        """Round the weights to half precision, and save them in it from now on."""
        self.half_weights = True
        self._model.load_state_dict(self._halved(), strict=False)

    def _halved(self) -> dict[str, torch.Tensor]:
        """Return the weights in fp16, except tensors out of its range."""
        state = self._model.state_dict().items()
        halved = {name: value.half() for name, value in state if value.is_floating_point()}
        return {name: value for name, value in halved.items() if value.isfinite().all()}

    def to_bytes(self) -> bytes:
        """Save the transformer without its local path."""
        if self._model is not None:
            self._model.config.name_or_path = ""
        saved = super().to_bytes()
        if not self.half_weights or self._model is None:
            return saved
        file = BytesIO()
        torch.save({**self._model.state_dict(), **self._halved()}, file)
        return srsly.msgpack_dumps(srsly.msgpack_loads(saved) | {"state": file.getvalue()})

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the parameters, unless a scaled gradient has overflowed; clear the gradients, adjust the scale."""
        parameters, rates = self._parameters()
        trained = [(name, parameter) for name, parameter in parameters if parameter.grad is not None]
        if not self._grad_scaler.unscale([parameter.grad for _, parameter in trained]):
            (self._adamw if is_adamw(optimizer) else self._thincs)(optimizer, trained, rates)
        if trained:
            torch._foreach_zero_([parameter.grad for _, parameter in trained])
        self._grad_scaler.update()

    def _parameters(self) -> tuple[list[tuple[str, Any]], dict[str, float]]:
        """List the module's parameters and their shares of the learning rate; cached."""
        if self._listed is None or self._listed[0] is not self._model:
            parameters = list(self._model.named_parameters())
            self._listed = (self._model, parameters, layer_rates(dict(parameters), self.rate, self.decay))
        return self._listed[1:]

    def _thincs(self, optimizer: Optimizer, trained: list[tuple[str, Any]], rates: dict[str, float]) -> None:
        for name, parameter in trained:
            array, gradient = (torch2xp(tensor) for tensor in (parameter.data, parameter.grad))  # type: Any, Any
            array[...], _ = optimizer((self.id, name), array, gradient, lr_scale=rates[name])

    def _adamw(self, optimizer: Optimizer, trained: list[tuple[str, Any]], rates: dict[str, float]) -> None:
        """Update parameters as thinc's Adam does: it clips each tensor, and doesn't correct the bias for eps."""
        groups: dict[tuple[int, float], list[tuple[str, Any]]] = {}
        for name, parameter in trained:
            groups.setdefault((optimizer.nr_update[self.id, name] + 1, rates[name]), []).append((name, parameter))
        for (count, rate), group in groups.items():
            self._update(optimizer, group, rate, optimizer.eps / math.sqrt(1 - optimizer.b2**count))
            for name, _ in group:
                optimizer.nr_update[self.id, name] = count

    def _update(self, optimizer: Optimizer, trained: list[tuple[str, Any]], rate: float, eps: float) -> None:
        """Clip the gradients of parameters with equally many updates, and update them at a share of the rate."""
        parameters = [parameter.data for _, parameter in trained]
        gradients = [parameter.grad for _, parameter in trained]
        steps, firsts, seconds = zip(
            *(self._state(optimizer, name, parameter.data) for name, parameter in trained), strict=True
        )
        if optimizer.grad_clip:
            norms = torch.stack(torch._foreach_norm(gradients)).clamp_min(1e-12)
            torch._foreach_mul_(gradients, (optimizer.grad_clip / norms).clamp_max(1).unbind())
        adamw(
            parameters,
            gradients,
            list(firsts),
            list(seconds),
            [],
            list(steps),
            fused=True,
            amsgrad=False,
            maximize=False,
            lr=optimizer.learn_rate * rate,
            beta1=optimizer.b1,
            beta2=optimizer.b2,
            eps=eps,
            weight_decay=optimizer.L2,
        )

    def _state(self, optimizer: Optimizer, name: str, parameter: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the optimizer's state of a parameter as tensors: number of updates, and both moments.

        The moments share memory with the optimizer's arrays, until these are replaced.
        """
        key = (self.id, name)
        for moments in (optimizer.mom1, optimizer.mom2):
            if key not in moments:
                moments[key] = torch2xp(torch.zeros_like(parameter))  # type: ignore[assignment]
        arrays = (optimizer.mom1[key], optimizer.mom2[key])
        cached = self._states.get(name)
        if cached is None or any(old is not new for old, new in zip(cached[0], arrays, strict=True)):
            step = torch.tensor(float(optimizer.nr_update[key]), device=parameter.device)
            tensors = (xp2torch(array, device=parameter.device).reshape(parameter.shape) for array in arrays)
            cached = self._states[name] = (arrays, (step, *tensors))
        return cached[1]


def is_adamw(optimizer: Optimizer) -> bool:
    """Return whether a thinc optimizer is Adam whose L2 is weight decay, without averages."""
    adam = optimizer.b1 > 0 and optimizer.b2 > 0 and not optimizer.use_radam
    return adam and optimizer.averages is None and bool(optimizer.L2_is_weight_decay or not optimizer.L2)

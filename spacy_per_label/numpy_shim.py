"""The numpy backend of `transformer`; its weights are parameters of the layer."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from thinc.api import Optimizer
from thinc.shims import Shim

from spacy_per_label import int8
from spacy_per_label.bert import encode
from spacy_per_label.bert_weights import read_encoder
from spacy_per_label.layer_rates import layer_rates
from spacy_per_label.windows import Window, batch_windows


class NumpyShim(Shim):
    """Computes a transformer on the CPU; embeddings don't learn.

    loaded (bool): whether the weights are a saved pipeline's, which predicts in int8 if `in_int8`.
    encoder (Any): their int8 encoder; None until it is needed.
    """

    def __init__(self, model: Any, rate: float, decay: float, in_int8: bool = False) -> None:
        super().__init__(model)
        self.rate, self.decay, self.in_int8 = rate, decay, in_int8
        self.loaded, self.encoder = False, None

    def read(self, name: str, layers: int) -> tuple[str, int, int]:
        """Read a transformer; return its tokenizer.json, width, and number of positions; see `read_encoder`."""
        encoder, model = read_encoder(name, layers), self._model
        for key, array in encoder.weights.items():
            model.set_param(key, model.ops.asarray(array))
        for key in ("layers", "heads", "eps", "first_position"):
            model.attrs[key] = getattr(encoder, key)
        positions, width = encoder.weights["position"].shape
        return encoder.tokenizer, width, positions - encoder.first_position

    def encode(
        self, ops: Any, windows: Sequence[Window], own: np.ndarray, is_train: bool
    ) -> tuple[Any, Callable[[Any], None]]:
        """Compute the vectors of the windows' own wordpieces.

        own (np.ndarray): shape (own wordpieces,); see `find_own_pieces`.
        RETURNS (tuple): vectors, shape (own wordpieces, width); and backprop, which adds up the weights' gradients.
        """
        model = self._model
        if model.get_param("word").dtype == np.float16:  # as it was saved
            for name in model.param_names:
                model.set_param(name, model.get_param(name).astype("float32"))
        W = {name: ops.to_numpy(model.get_param(name)) for name in model.param_names}
        batches = [windows] if is_train else list(batch_windows(windows))
        if self.in_int8 and self.loaded and not is_train:
            self.encoder = self.encoder or int8.quantize(W, model.attrs)
            X = np.concatenate([int8.encode(self.encoder, batch) for batch in batches])
            return ops.asarray(X[own]), lambda gradient: None
        outputs, backprops = zip(*(encode(W, model.attrs, batch, is_train) for batch in batches), strict=True)
        X = np.concatenate(outputs)  # (wordpieces, width)
        shape = X.shape

        def backprop(gradient: Any) -> None:
            dX = np.zeros(shape, "float32")
            dX[own] = ops.to_numpy(gradient)
            [backprop_batch] = backprops
            for name, dW in backprop_batch(dX):
                model.inc_grad(name, ops.asarray(dW))

        return ops.asarray(X[own]), backprop

    def halve(self) -> None:
        """Round the weights to half precision."""
        for name in self._model.param_names:
            self._model.set_param(name, self._model.get_param(name).astype("float16"))

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the parameters with gradients; delete these, or thinc would apply them again."""
        model = self._model
        self.loaded, self.encoder = False, None
        for name, rate in layer_rates(model.param_names, self.rate, self.decay).items():
            if model.has_grad(name):
                update = (model.id, name), model.get_param(name), model.get_grad(name)
                array, _ = optimizer(*update, lr_scale=rate)
                model.set_param(name, array)
                del model._params._grads[model.id, name]

    def to_bytes(self) -> bytes:
        """Save nothing: the layer has the weights, and the config the rates."""
        return b""

    def from_bytes(self, bytes_data: bytes) -> "NumpyShim":
        """Load nothing: the weights are loaded."""
        self.loaded, self.encoder = True, None
        return self

"""A small transformer as the layer that gives tokens their vectors, trained and used on the CPU, without PyTorch.

Texts are given to it in windows of wordpieces; see `windows`. A token has the mean of its wordpieces' vectors.

The layers have rates of their own; see `layer_rates`. The embeddings stay.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, NumpyOps, Optimizer
from thinc.shims import Shim
from thinc.types import Floats2d

from spacy_per_label.bert import drop_inplace, encode_layer, normalize
from spacy_per_label.bert_weights import read_encoder
from spacy_per_label.hub_files import NoModelError
from spacy_per_label.layer_rates import layer_rates
from spacy_per_label.windows import LONGEST, Window, batch_windows, find_windows, read_tokenizer

CPU = NumpyOps()
READ = ("tokenizer", "layers", "heads", "eps", "first_position")  # attributes that an Encoder gives


@registry.architectures("spacy-per-label.SmallTransformer.v1")
def make_small_transformer(
    name: str, window: int = 128, context: int = 16, rate: float = 0.1, decay: float = 0.9
) -> Model[list[Doc], list[Floats2d]]:
    """Make a layer that gives each token the mean of its wordpieces' vectors.

    name (str): of a folder, a package or a model on the hub; see `read_encoder`.
    window (int): wordpieces that are given to the transformer at a time, about.
    context (int): of these, those before and after a window's own, in texts that are longer.
    rate (float): the rate at which the highest layer learns, as a share of the optimizer's.
    decay (float): the rate of each layer, as a share of that above it.
    """
    model: Model[list[Doc], list[Floats2d]] = Model(
        "small_transformer",
        _forward,
        init=partial(_init, name),
        dims={"nO": None},
        attrs={"window": window, "context": context, **dict.fromkeys(READ), "dropout_rate": 0.0},
    )
    model.shims.append(LayerRates(model, rate, decay))
    return model


class LayerRates(Shim):
    """Updates the layers of a transformer, each at its rate, before thinc would update all at one rate."""

    def __init__(self, model: Any, rate: float, decay: float) -> None:
        """Take the transformer, the rate of its highest layer, and what is left of a layer's rate in the one below."""
        super().__init__(model)
        self.rate, self.decay = rate, decay

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the parameters that have gradients, and forget these, or thinc would update with them, too."""
        model = self._model
        for name, rate in layer_rates(model.param_names, self.rate, self.decay).items():
            if model.has_grad(name):
                given = (model.id, name), model.get_param(name), model.get_grad(name)
                array, _ = optimizer(*given, lr_scale=rate)
                model.set_param(name, array)
                del model._params._grads[model.id, name]

    def to_bytes(self) -> bytes:
        """Save nothing: the config has the rates."""
        return b""

    def from_bytes(self, bytes_data: bytes) -> "LayerRates":
        """Load nothing."""
        return self


def _init(name: str, model: Any, X: Any = None, Y: Any = None) -> None:
    """Read the transformer; what was learnt is forgotten."""
    encoder, window, context = read_encoder(name), model.attrs["window"], model.attrs["context"]
    least, most = 2 * context + 3, len(encoder.weights["position"]) - encoder.first_position - LONGEST
    if not least <= window <= most:
        raise NoModelError(f"window = {window}: with context = {context}, {name} needs {least} to {most}")
    for key, array in encoder.weights.items():
        model.set_param(key, model.ops.asarray(array))
    for key in READ:
        model.attrs[key] = getattr(encoder, key)
    model.set_dim("nO", encoder.weights["word"].shape[1], force=True)


def _forward(model: Any, docs: list[Doc], is_train: bool) -> tuple[list[Any], Callable]:
    """Return the vectors of the tokens of each text."""
    sizes = [len(doc) for doc in docs]
    tokenizer = read_tokenizer(model.attrs["tokenizer"])
    window, context = model.attrs["window"], model.attrs["context"]
    windows = [found for doc in docs for found in find_windows(doc, tokenizer, window, context)]
    if not windows:
        return [model.ops.alloc_f((size, model.get_dim("nO"))) for size in sizes], lambda gradients: []
    batches = [windows] if is_train else list(batch_windows(windows))
    outputs, backprops = zip(*(encode(model, batch, is_train) for batch in batches), strict=True)

    def backprop(dYs: list[Any]) -> list[Any]:
        """Give the transformer the gradients of the tokens' vectors."""
        [backprop_windows] = backprops
        backprop_windows(model.ops.to_numpy(model.ops.flatten(dYs)))
        return []

    return model.ops.unflatten(model.ops.asarray(np.concatenate(outputs)), np.array(sizes, "int32")), backprop


def halve(model: Any, file: Path) -> None:
    """Save a model again, with the weights of its small transformer, if it has one, in half precision.

    In memory, they are in single precision whenever they are computed with, but have lost what was rounded.
    """
    small = [node for node in model.walk() if node.name == "small_transformer"]
    for node in small:
        for name in node.param_names:
            node.set_param(name, node.get_param(name).astype("float16"))
    if small:
        file.unlink()  # a checkpoint may share it
        model.to_disk(file)


def encode(model: Any, windows: Sequence[Window], is_train: bool) -> tuple[np.ndarray, Callable[[np.ndarray], None]]:
    """Compute the vectors of the windows' own tokens, on the CPU, wherever the model's weights are.

    RETURNS (tuple): the vectors, of the shape (tokens, width), and what adds up the gradients of the layers' weights.
    """
    attrs, lengths = model.attrs, np.array([len(window.ids) for window in windows])
    rate = attrs["dropout_rate"]
    drop: Any = (lambda X: CPU.get_dropout_mask(X.shape, rate) if rate else None) if is_train else None
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths) + attrs["first_position"]
    if model.get_param("word").dtype == np.float16:  # as it was saved
        for name in model.param_names:
            model.set_param(name, model.get_param(name).astype("float32"))
    W = {name: model.ops.to_numpy(model.get_param(name)) for name in model.param_names}
    X = W["word"][np.concatenate([window.ids for window in windows])] + W["position"][places]
    X, _ = normalize(X, W["norm_g"], W["norm_b"], attrs["eps"], False)
    drop_inplace(X, drop)
    backprops: list[Any] = []
    for number in range(attrs["layers"]):
        prefix = f"{number}."
        layer = {name.removeprefix(prefix): array for name, array in W.items() if name.startswith(prefix)}
        X, backprop_layer = encode_layer(layer, X, ends.tolist(), attrs["heads"], attrs["eps"], drop)
        backprops.append(backprop_layer)
    counts = np.concatenate([window.counts for window in windows])
    firsts = [window.first + np.cumsum(window.counts) - window.counts for window in windows]
    starts = np.concatenate(firsts) + np.repeat(ends - lengths, [len(window.counts) for window in windows])
    pieces = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    tokens = np.repeat(np.arange(len(counts), dtype="int32"), counts)
    shares = (1 / np.maximum(counts, 1))[:, None].astype("float32")
    Y = np.zeros((len(counts), X.shape[1]), "float32")
    CPU.scatter_add(Y, tokens, X[pieces] * shares[tokens])
    shape = X.shape

    def backprop(dY: np.ndarray) -> None:
        """Add up the gradients of the layers that learn."""
        dX = np.zeros(shape, "float32")
        dX[pieces] = (dY * shares)[tokens]
        for number, backprop_layer in reversed([*enumerate(backprops)]):
            dX, gradients = backprop_layer(dX)
            for name, gradient in gradients.items():
                model.inc_grad(f"{number}.{name}", model.ops.asarray(gradient))

    return Y, backprop

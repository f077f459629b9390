"""A transformer as embedding layer: a token's vector is the mean of its wordpieces' vectors.

The layer has two backends, its shims: numpy (`numpy_shim`), on the CPU without PyTorch; and PyTorch (`shim`), for any
transformer and for GPUs. Both use the same `windows`.
"""

import importlib.util
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from spacy_per_label.bert_weights import adapt_tokenizer
from spacy_per_label.hub_files import SettingError, setting_named
from spacy_per_label.numpy_shim import NumpyShim
from spacy_per_label.windows import MAX_TOKEN_PIECES, Window, find_own_pieces, find_windows

NUMPY, TORCH = "small_transformer", "torch_transformer"  # names of the layer, by its backend
Vectors = Model[list[Doc], list[Floats2d]]


@registry.architectures("spacy-per-label.SmallTransformer.v1")
def make_small_transformer(
    name: str,
    window: int = 128,
    context: int = 16,
    rate: float = 0.1,
    decay: float = 0.9,
    layers: int = 0,
    int8: bool = False,
) -> Vectors:
    """Make a transformer in numpy, on the CPU.

    name (str): folder, package or name on the hub; see `read_encoder`.
    window (int): approximate wordpieces of a window.
    context (int): of these, wordpieces before and after a window's own, in longer texts.
    rate, decay (float): see `layer_rates`.
    layers (int): layers to keep, the lowest ones; 0 for all.
    int8 (bool): predict in int8 once it is trained.
    RAISES (SettingError): if `int8` and CTranslate2 isn't installed.
    """
    if int8 and not importlib.util.find_spec("ctranslate2"):
        raise SettingError("int8", int8, 'it needs CTranslate2: pip install "ctranslate2>=4.8,<5"')
    model = _make_layer(NUMPY, name, window, context, layers)
    model.attrs.update(layers=0, heads=0, eps=0.0, first_position=0, dropout_rate=0.0)
    model.shims.append(NumpyShim(model, rate, decay, int8))
    return model


@registry.architectures("spacy-per-label.Transformer.v2")
def make_transformer(
    name: str,
    window: int = 128,
    context: int = 16,
    rate: float = 0.1,
    decay: float = 0.9,
    mixed_precision: bool = False,
    transformer_config: dict[str, Any] = {},  # noqa: B006  registered functions take no None for it
    grad_scaler_config: dict[str, Any] = {},  # noqa: B006
    layers: int = 0,
) -> Vectors:
    """Make a transformer in PyTorch, with a fast tokenizer; embeddings learn, too.

    name, window, context, rate, decay, layers: see `make_small_transformer`.
    mixed_precision (bool): half precision on a GPU: fp16 if gradients are scaled, else bf16.
    transformer_config, grad_scaler_config: see spacy-transformers' TransformerModel.
    """
    from spacy_transformers.data_classes import HFObjects

    from spacy_per_label.shim import TransformerShim

    model = _make_layer(TORCH, name, window, context, layers)
    hf_objects = HFObjects(None, None, None, {}, dict(transformer_config))
    precision: dict[str, Any] = {"mixed_precision": mixed_precision, "grad_scaler_config": dict(grad_scaler_config)}
    model.shims.append(TransformerShim(hf_objects, rate=rate, decay=decay, **precision))
    return model


def _make_layer(backend: str, name: str, window: int, context: int, layers: int) -> Vectors:
    attrs = {"window": window, "context": context, "tokenizer": ""}
    return Model(backend, _forward, init=partial(_init, name, layers), dims={"nO": None}, attrs=attrs)


def _init(name: str, layers: int, model: Any, X: Any = None, Y: Any = None) -> None:
    """Read the transformer, replacing learned weights.

    RAISES (SettingError): if it is missing, lacks layers, or windows are too short or too long.
    """
    with setting_named("name", name):
        tokenizer, width, positions = model.shims[0].read(name, layers)
    window, context = model.attrs["window"], model.attrs["context"]
    shortest, longest = 2 * context + 3, positions - MAX_TOKEN_PIECES
    if not shortest <= window <= longest:
        raise SettingError(
            "window", window, f"with context = {context}, {name} needs {shortest} to {longest}; correct it"
        )
    model.attrs["tokenizer"] = adapt_tokenizer(tokenizer)
    model.set_dim("nO", width, force=True)


def window_finder(layer: Model) -> Callable[[Doc], list[Window]] | None:
    """Return the picklable function that cuts texts into a transformer's windows; None for another layer."""
    if layer.name not in (NUMPY, TORCH):
        return None
    return partial(find_windows, **{name: layer.attrs[name] for name in ("tokenizer", "window", "context")})


def _forward(model: Any, texts: Iterable[Any], is_train: bool) -> tuple[list[Any], Callable]:
    """Return the token vectors of each text, given as a Doc or as its windows."""
    ops, find = model.ops, window_finder(model)
    of_texts = [text if isinstance(text, list) else find(text) for text in texts]  # type: ignore[misc]
    sizes = np.array([sum(len(window.counts) for window in windows) for windows in of_texts], "int32")  # (texts,)
    windows = list(chain.from_iterable(of_texts))
    own_pieces, counts = find_own_pieces(windows)  # (own wordpieces,), (tokens,)
    if not len(own_pieces):  # white space alone
        return ops.unflatten(ops.alloc_f((len(counts), model.get_dim("nO"))), sizes), lambda gradients: []
    X, backprop_pieces = model.shims[0].encode(ops, windows, own_pieces, is_train)  # (own wordpieces, width)
    tokens = np.repeat(np.arange(len(counts)), counts)  # (own wordpieces,)
    shares = ops.asarray((1 / np.maximum(counts, 1)).astype("float32")[tokens, None])  # (own wordpieces, 1)
    tokens = ops.asarray(tokens)
    Y = ops.reduce_sum(X * shares, ops.asarray(counts))  # (tokens, width)

    def backprop(dYs: list[Any]) -> list[Any]:
        backprop_pieces(ops.flatten(dYs)[tokens] * shares)  # (own wordpieces, width)
        return []

    return ops.unflatten(Y, sizes), backprop


def halve(model: Model, file: Path) -> None:
    """Round the weights of a model's transformer, if any, to half precision, and save the model again.

    Computation stays in single precision, with the rounded weights.
    """
    shims: list[Any] = [node.shims[0] for node in model.walk() if node.name in (NUMPY, TORCH)]
    for shim in shims:
        shim.halve()
    if shims:
        file.unlink()  # a checkpoint may share it
        model.to_disk(file)

"""A transformer as the layer that gives tokens their vectors, for all texts of a batch at a time.

spacy-transformers cuts each text's output out of the batch, aligns it with the tokens in Python, and computes a
gradient for each text. That takes the CPU 40 ms for 1,000 words, longer than a GPU needs for them. Here arrays align
the whole batch (`wordpieces`), which may have been made before; what is computed is the same. The model, its tokenizer,
and how it is saved are spacy-transformers'.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from spacy_per_label.wordpieces import Wordpieces, find_wordpieces, join_wordpieces, make_tables


@registry.architectures("spacy-per-label.Transformer.v1")
def make_transformer(
    name: str,
    window: int = 128,
    stride: int = 96,
    tokenizer_config: dict[str, Any] = {},  # noqa: B006  registered functions take no None for it
    transformer_config: dict[str, Any] = {},  # noqa: B006
    mixed_precision: bool = False,
    grad_scaler_config: dict[str, Any] = {},  # noqa: B006
    half_weights: bool = False,
    rate: float = 1.0,
    decay: float = 1.0,
) -> Model[list[Doc], list[Floats2d]]:
    """Make a layer that gives each token the mean of its wordpieces' vectors.

    name (str): of the model on the hub, or its folder. Its tokenizer must be a fast one.
    window, stride (int): texts are given to the model in spans of so many tokens, which begin so far apart.
    tokenizer_config, transformer_config, grad_scaler_config: see spacy-transformers' TransformerModel.
    mixed_precision (bool): compute in half precision on a GPU: fp16 if gradients are scaled, else bf16.
    half_weights (bool): save weights in fp16.
    rate, decay (float): the rate at which the highest layer learns, as a share of the optimizer's, and that of each
        layer as a share of that above it.
    """
    from spacy_transformers import TransformerModel
    from spacy_transformers.span_getters import configure_strided_spans

    from spacy_per_label.shim import TransformerShim

    get_spans = configure_strided_spans(window, stride)
    model = TransformerModel(name, get_spans, dict(tokenizer_config), dict(transformer_config))
    shims: list[Any] = model.layers[0].shims
    options: dict[str, Any] = {"mixed_precision": mixed_precision, "grad_scaler_config": dict(grad_scaler_config)}
    shims[:] = [TransformerShim(shims[0]._hfmodel, half_weights=half_weights, rate=rate, decay=decay, **options)]
    return Model("transformer_vectors", _forward, init=_init, dims={"nO": None}, layers=[model])


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Read the transformer; of a folder, the path isn't saved with the weights."""
    transformer: Any = model.layers[0]
    transformer.initialize(X=X)
    if Path(transformer.attrs["name"]).is_dir():
        name = Path(transformer.attrs["name"]).name
        transformer.attrs["name"] = transformer.transformer.config.name_or_path = name
    model.set_dim("nO", transformer.get_dim("nO"))


def _forward(model: Model, texts: Sequence[Doc | Wordpieces], is_train: bool) -> tuple[list[Any], Callable]:
    """Return the vectors of the tokens of each text."""
    import torch
    from thinc.api import torch2xp, xp2torch

    ops: Any = model.ops
    transformer: Any = model.layers[0]
    given: Any = texts
    if texts and isinstance(texts[0], Wordpieces):
        pieces = join_wordpieces(given)
    else:
        pieces = find_wordpieces(transformer.tokenizer, transformer.attrs["get_spans"], given)
    lengths, sizes = pieces.lengths, np.array(list(map(len, texts)), "int32")
    if not len(pieces.of_tokens):  # white space alone
        return ops.unflatten(ops.alloc_f((len(lengths), model.get_dim("nO"))), sizes), lambda gradients: []
    batches, cell_of_piece = make_tables(pieces, transformer.tokenizer)
    outputs, backprops = zip(*(transformer.layers[0](batch, is_train) for batch in batches), strict=True)
    hidden = [output.last_hidden_state for output in outputs]
    # The kernels of thinc know single precision alone.
    X: Any = torch2xp(torch.cat([table.detach().float().flatten(0, 1) for table in hidden]), ops=ops)
    cells = ops.asarray(cell_of_piece[pieces.of_tokens])
    tokens = ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
    divisors = ops.asarray(np.maximum(lengths, 1).astype("float32")[:, None])
    vectors = ops.reduce_mean(X[cells], ops.asarray(lengths))

    def backprop(gradients: list[Any]) -> list[Any]:
        """Add up the gradients of each wordpiece's vector, and give them to the transformer."""
        dX = ops.alloc_f(X.shape)
        ops.scatter_add(dX, cells, (ops.flatten(gradients) / divisors)[tokens])
        parts = xp2torch(dX).split([len(table.flatten(0, 1)) for table in hidden])
        for table, part, backprop_table in zip(hidden, parts, backprops, strict=True):
            backprop_table({"last_hidden_state": part.reshape(table.shape).to(table.dtype)})
        return []

    return ops.unflatten(vectors, sizes), backprop

"""The transformer layer of pipelines saved by 0.3, for prediction; `Transformer.v2` trains new ones."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, chain, reduce_mean
from thinc.types import Floats2d


@registry.architectures("spacy-per-label.Transformer.v1")
def make_transformer_v1(
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
    """Make a layer that only predicts, with spacy-transformers' own alignment.

    window, stride (int): tokens of a span, and from one span's start to the next.
    """
    from spacy_transformers import TransformerModel
    from spacy_transformers.span_getters import configure_strided_spans

    from spacy_per_label.shim import TransformerShim

    get_spans = configure_strided_spans(window, stride)
    model = TransformerModel(name, get_spans, dict(tokenizer_config), dict(transformer_config))
    shims: list[Any] = model.layers[0].shims
    precision: dict[str, Any] = {"mixed_precision": mixed_precision, "grad_scaler_config": dict(grad_scaler_config)}
    shims[:] = [TransformerShim(shims[0]._hfmodel, half_weights=half_weights, **precision)]
    return Model("transformer_vectors", _forward, init=_refuse, dims={"nO": None}, layers=[model])


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable]:
    from spacy_transformers.layers import split_trf_batch, trfs2arrays

    if is_train:
        _refuse(model)
    pooled: Model = chain(model.layers[0], split_trf_batch(), trfs2arrays(reduce_mean(), 1.0))
    return pooled.predict(docs), lambda gradients: []


def _refuse(model: Model, X: Any = None, Y: Any = None) -> None:
    raise ValueError("spacy-per-label.Transformer.v1 only predicts; train with spacy-per-label.Transformer.v2")

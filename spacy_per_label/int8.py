"""Predict with the weights of `bert` in int8, by CTranslate2 (https://opennmt.net/CTranslate2)."""

from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spacy_per_label.bert import layer_weights
from spacy_per_label.windows import Window, make_tables


def quantize(W: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> Any:
    """Convert a transformer's weights and settings (`bert.encode`) to CTranslate2's Encoder."""
    from ctranslate2 import Encoder
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerEncoderModelSpec, TransformerEncoderSpec

    options = {"pre_norm": False, "activation": Activation.GELUTanh, "layernorm_embedding": True}
    spec = TransformerEncoderSpec(attrs["layers"], attrs["heads"], **options)
    spec.scale_embeddings = False
    spec.embeddings[0].weight = W["word"]
    spec.position_encodings.encodings = W["position"][attrs["first_position"] :]
    spec.layernorm_embedding.gamma, spec.layernorm_embedding.beta = W["norm_g"], W["norm_b"]
    for number, layer in enumerate(spec.layer):
        weights, attention, wide = layer_weights(W, number), layer.self_attention, layer.ffn
        linear = {"qkv": attention.linear[0], "out": attention.linear[1], "up": wide.linear_0, "down": wide.linear_1}
        for name, part in linear.items():
            part.weight, part.bias = weights[f"{name}_W"].T, weights[f"{name}_b"]
        for name, norm in (("norm1", attention.layer_norm), ("norm2", wide.layer_norm)):
            norm.gamma, norm.beta = weights[f"{name}_g"], weights[f"{name}_b"]
    model = TransformerEncoderModelSpec(spec)
    model.config.layer_norm_epsilon = attrs["eps"]
    model.register_vocabulary([str(number) for number in range(len(W["word"]))])
    model.validate()
    with TemporaryDirectory() as folder:
        model.save(folder)
        return Encoder(folder, compute_type="int8")


def encode(encoder: Any, windows: Sequence[Window]) -> np.ndarray:
    """Compute the vectors of windows' wordpieces, shape (wordpieces, width), as `bert.encode` does."""
    from ctranslate2 import StorageView

    tables, cells = make_tables(windows, 0)
    rows = []
    for ids, mask in tables:
        inputs = StorageView.from_array(ids.astype("int32")), StorageView.from_array(mask.sum(axis=1).astype("int32"))
        hidden = np.array(encoder.forward_batch(*inputs).last_hidden_state)  # (rows, longest, width)
        rows.append(hidden.reshape(-1, hidden.shape[-1]))
    return np.concatenate(rows)[cells]

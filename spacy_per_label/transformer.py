"""A transformer as the layer that gives tokens their vectors, for all texts of a batch at a time.

spacy-transformers hands its output on text by text: each one is cut out of the batch, aligned with its tokens, and
given a gradient of its own. That takes a GPU a dozen small tasks and a wait for each text, and the CPU longer than the
GPU computes. Here the tables that align a batch are made on the CPU, and used once; what is computed is the same. The
model, its tokenizer, its precision, and how it is saved are spacy-transformers'.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

KEPT = 10_000_000  # wordpieces, of some 25 bytes each


@registry.architectures("spacy-per-label.Transformer.v1")
def make_transformer(
    name: str,
    window: int = 128,
    stride: int = 96,
    max_cells: int = 4096,
    tokenizer_config: dict[str, Any] = {},  # noqa: B006  registered functions take no None for it
    transformer_config: dict[str, Any] = {},  # noqa: B006
    mixed_precision: bool = False,
    grad_scaler_config: dict[str, Any] = {},  # noqa: B006
) -> Model[list[Doc], list[Floats2d]]:
    """Make a layer that gives each token the mean of its wordpieces' vectors.

    name (str): of the model on the hub, or its folder.
    window, stride (int): texts are given to the model in spans of so many tokens, which begin so far apart.
    max_cells (int): the most (texts x longest text, in wordpieces) that are predicted at a time.
    tokenizer_config, transformer_config, mixed_precision, grad_scaler_config: see spacy-transformers' TransformerModel.
    """
    from spacy_transformers import TransformerModel
    from spacy_transformers.span_getters import configure_strided_spans

    get_spans = configure_strided_spans(window, stride)
    config, scaler = dict(transformer_config), dict(grad_scaler_config)
    model = TransformerModel(name, get_spans, dict(tokenizer_config), config, mixed_precision, scaler)
    return Model(
        "transformer_vectors",
        _forward,
        init=_init,
        dims={"nO": None},
        layers=[model],
        attrs={"max_cells": max_cells, "wordpieces": Wordpieces(get_spans)},
    )


class Pieces(NamedTuple):
    """The wordpieces of a text, which is cut into spans.

    ids, types (np.ndarray): of the wordpieces of all spans, one after the other; types are empty if the model has none.
    sizes (np.ndarray): how many wordpieces each span has.
    spans, columns (np.ndarray): of each wordpiece of each token, the number of its span, and its place in there.
    lengths (np.ndarray): how many of those each token has.
    """

    ids: np.ndarray
    types: np.ndarray
    sizes: np.ndarray
    spans: np.ndarray
    columns: np.ndarray
    lengths: np.ndarray


class Wordpieces:
    """Finds the wordpieces of Docs, each text's once, as they are the same in every epoch.

    get_spans (Callable): cuts Docs into spans, as spacy-transformers' span getters do.
    """

    def __init__(self, get_spans: Callable[[Sequence[Doc]], list[list[Any]]]) -> None:
        """Begin with none."""
        self.get_spans = get_spans
        self.kept: dict[tuple[str, int], Pieces] = {}
        self.room = KEPT

    def of(self, tokenizer: Any, doc: Doc) -> Pieces:
        """Find the wordpieces of a Doc."""
        key = (doc.text, len(doc))
        pieces = self.kept.get(key) or self._find(tokenizer, doc)
        # Texts come again in another order, so keeping the first ones is as good as keeping any.
        if key not in self.kept and self.room > len(pieces.ids):
            self.kept[key] = pieces
            self.room -= len(pieces.ids)
        return pieces

    def _find(self, tokenizer: Any, doc: Doc) -> Pieces:
        from spacy_transformers.align import get_alignment, get_alignment_via_offset_mapping
        from spacy_transformers.data_classes import WordpieceBatch
        from spacy_transformers.layers.transformer_model import huggingface_tokenize
        from spacy_transformers.truncate import truncate_oversize_splits

        [spans] = self.get_spans([doc])
        spans = [span for span in spans if len(span)]
        if not spans:
            none = np.zeros(0, "int32")
            return Pieces(none, none, none, none, none, np.zeros(len(doc), "int32"))
        tokenizer.padding_side = "right"  # as the tables are padded
        found = huggingface_tokenize(tokenizer, [span.text for span in spans])
        batch = WordpieceBatch.from_batch_encoding(found)
        if "offset_mapping" in found:
            align = get_alignment_via_offset_mapping(spans, found["offset_mapping"])
        else:
            align = get_alignment(spans, batch.strings, tokenizer.all_special_tokens)
        batch, align = truncate_oversize_splits(batch, align, tokenizer.model_max_length)
        there, types = batch.attention_mask > 0, batch.token_type_ids
        return Pieces(
            ids=batch.input_ids[there].astype("int32"),
            types=np.zeros(0, "int8") if types is None else types[there].astype("int8"),
            sizes=there.sum(axis=1, dtype="int32"),
            spans=align.dataXd // there.shape[1],
            columns=align.dataXd % there.shape[1],
            lengths=np.asarray(align.lengths),
        )


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)
    model.set_dim("nO", model.layers[0].get_dim("nO"))


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Any], Callable]:
    """Give the vectors of the tokens of each text; predictions are computed by length, some texts at a time."""
    from spacy_transformers.util import batch_by_length

    wordpieces, tokenizer = model.attrs["wordpieces"], model.layers[0].tokenizer  # type: ignore[attr-defined]
    texts = [wordpieces.of(tokenizer, doc) for doc in docs]
    if is_train:
        return _run(model, texts, is_train)
    found: list[Any] = [None] * len(texts)
    for part in batch_by_length([text.ids for text in texts], model.attrs["max_cells"]):
        vectors, _ = _run(model, [texts[number] for number in part], is_train)
        for number, own in zip(part, vectors, strict=True):
            found[number] = own
    return found, lambda gradients: []


def _run(model: Model, texts: Sequence[Pieces], is_train: bool) -> tuple[list[Any], Callable]:
    """Run the transformer for texts at once."""
    from spacy_transformers.data_classes import WordpieceBatch
    from thinc.api import torch2xp, xp2torch

    ops: Any = model.ops
    counts = np.array([len(text.lengths) for text in texts], "int32")
    lengths = np.concatenate([text.lengths for text in texts])
    if not lengths.any():  # white space alone
        return ops.unflatten(ops.alloc_f((counts.sum(), model.get_dim("nO"))), counts), lambda gradients: []
    ids, types, mask, places = _pad(texts, model.layers[0].tokenizer)  # type: ignore[attr-defined]
    batch: Any = WordpieceBatch([], ids, mask, [], types)  # type: ignore[arg-type]
    output, backprop_transformer = model.layers[0].layers[0](batch, is_train)
    hidden = output.last_hidden_state
    # The kernels of thinc know single precision alone.
    X: Any = torch2xp(hidden.detach().float().reshape(-1, hidden.shape[-1]), ops=ops)
    cells, tokens = ops.asarray(places), ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
    divisors = ops.asarray(np.maximum(lengths, 1).astype("float32")[:, None])
    vectors = ops.reduce_mean(X[cells], ops.asarray(lengths))

    def backprop(gradients: list[Any]) -> list[Any]:
        """Add up the gradients of each wordpiece's vector, and give them to the transformer."""
        dX = ops.alloc_f(X.shape)
        ops.scatter_add(dX, cells, (ops.flatten(gradients) / divisors)[tokens])
        d_hidden = xp2torch(dX.reshape(hidden.shape)).to(hidden.dtype)
        backprop_transformer({"last_hidden_state": d_hidden})
        return []

    return ops.unflatten(vectors, counts), backprop


def _pad(texts: Sequence[Pieces], tokenizer: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Put the wordpieces of texts into tables, a row for each span, padded on the right.

    RETURNS (tuple): tables of ids, of types if the model has them, and of ones where there is a wordpiece; and of each
        wordpiece of each token, its cell in them.
    """
    sizes = np.concatenate([text.sizes for text in texts])
    width = int(sizes.max())
    there = np.arange(width) < sizes[:, None]
    spans_before = np.cumsum([0, *(len(text.sizes) for text in texts)])
    rows = np.concatenate([text.spans + before for text, before in zip(texts, spans_before, strict=False)])

    def table(columns: list[np.ndarray], padding: int) -> np.ndarray:
        """Lay out what the wordpieces have."""
        padded = np.full(there.shape, padding, "int64")
        padded[there] = np.concatenate(columns)
        return padded

    ids = table([text.ids for text in texts], tokenizer.pad_token_id or 0)
    has_types = any(len(text.types) for text in texts)
    types = table([text.types for text in texts], tokenizer.pad_token_type_id) if has_types else None
    places = (rows * width + np.concatenate([text.columns for text in texts])).astype("int32")
    return ids, types, there.astype("float32"), places

"""A transformer as the layer that gives tokens their vectors, for all texts of a batch at a time.

spacy-transformers cuts each text's output out of the batch, aligns it with the tokens in Python, and computes a
gradient for each text. That takes the CPU 40 ms for 1,000 words, longer than a GPU needs for them. Here arrays align
the whole batch, and spans of about the same length share a table, as each row of a table is as long as its longest;
what is computed is the same. The model, its tokenizer, and how it is saved are spacy-transformers'.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.attrs import LENGTH, SPACY
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

TABLES = 4  # for a batch, at most; each launches all kernels of the transformer
PADDING = 0.1  # the share of a batch's cells below which no further table is worth it


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


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Any], Callable]:
    """Return the vectors of the tokens of each text."""
    import torch
    from thinc.api import torch2xp, xp2torch

    ops: Any = model.ops
    batches, places, lengths = find_wordpieces(model.layers[0], docs)
    sizes = np.array(list(map(len, docs)), "int32")
    if not len(places):  # white space alone
        return ops.unflatten(ops.alloc_f((len(lengths), model.get_dim("nO"))), sizes), lambda gradients: []
    outputs, backprops = zip(*(model.layers[0].layers[0](batch, is_train) for batch in batches), strict=True)
    hidden = [output.last_hidden_state for output in outputs]
    # The kernels of thinc know single precision alone.
    X: Any = torch2xp(torch.cat([table.detach().float().flatten(0, 1) for table in hidden]), ops=ops)
    cells, tokens = ops.asarray(places), ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
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


def find_wordpieces(transformer: Any, docs: Sequence[Doc]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Find the wordpieces of texts, in tables with a row for each span of a text, and those of each token.

    A wordpiece belongs to every token that it shares a character with. The texts "Ann ran" and "Bo" may give

        [CLS]  Ann  ran  [SEP]      cells 0 to 3
        [CLS]  B    ##o  [SEP]      cells 4 to 7

    so that the tokens Ann, ran and Bo have the cells [1, 2, 5, 6], and [1, 1, 2] of them. Cells are counted through all
    tables.

    transformer (Model): spacy-transformers' TransformerModel.
    RETURNS (tuple): the tables, as the transformer takes them; the cells of the tokens' wordpieces, token by token; and
        how many each token has.
    RAISES (ValueError): the tokenizer isn't a fast one.
    """
    from spacy_transformers.data_classes import WordpieceBatch

    tokenizer = transformer.tokenizer
    if not tokenizer.is_fast:
        raise ValueError(f"{tokenizer.name_or_path} has no fast tokenizer, which knows where its wordpieces are")
    texts, owners, before = [], [], 0
    for doc, spans in zip(docs, transformer.attrs["get_spans"](docs), strict=True):
        owner = np.repeat(np.arange(before, before + len(doc)), doc.to_array([LENGTH, SPACY]).sum(axis=1).astype(int))
        texts += [span.text for span in spans]
        owners += [owner[span.start_char : span.end_char] for span in spans]
        before += len(doc)
    encoded = tokenizer(texts or [""], padding=True, return_offsets_mapping=True, return_tensors="np")
    tables: Any = {name: table[:, : tokenizer.model_max_length] for name, table in encoded.items()}
    ids, mask, offsets = (tables[name] for name in ("input_ids", "attention_mask", "offset_mapping"))
    # For each character of each wordpiece: the wordpiece's cell, and the place of the token it is in, or behind.
    starts = (offsets[..., 0] + np.cumsum([0, *map(len, owners)])[: len(ids), None]).ravel()
    sizes = (offsets[..., 1] - offsets[..., 0]).ravel()
    cell = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(len(cell)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    owner_of_char = np.concatenate([np.zeros(0, int), *owners])
    # A pair of a token and a cell, as one number, occurs once for each character that both have.
    token, places = np.divmod(np.unique(owner_of_char[place] * sizes.size + cell), sizes.size)
    batches, cells, types = [], np.zeros(ids.shape, "int32"), tables.get("token_type_ids")
    first = 0
    for rows in split_rows(mask.sum(axis=1)):
        part = np.ix_(rows, np.flatnonzero(mask[rows].any(axis=0)))
        batches.append(
            WordpieceBatch([], ids[part], mask[part].astype("float32"), [], None if types is None else types[part])
        )
        cells[part] = first + np.arange(ids[part].size).reshape(ids[part].shape)
        first += ids[part].size
    return batches, cells.ravel()[places], np.bincount(token, minlength=before).astype("int32")


def split_rows(lengths: np.ndarray) -> list[np.ndarray]:
    """Split rows into tables, each as wide as its longest row, so that they have the fewest cells.

    RETURNS (list[np.ndarray]): the rows' numbers, in order; one table, or as many as needed for PADDING, or TABLES.
    """
    sizes, counts = np.unique(lengths, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(counts)])
    # The cells of a table that has the sizes from one number to another, and rows as long as the last of them.
    rows, widths = ends - ends[:, None], np.concatenate([[0], sizes])
    cells = np.where(rows > 0, rows * widths, np.inf)
    fewest, cuts = cells[0], list[np.ndarray]()
    while len(cuts) + 1 < TABLES and lengths.sum() < (1 - PADDING) * fewest[-1]:
        sums = fewest[:, None] + cells
        fewest = sums.min(axis=0)
        cuts.append(sums.argmin(axis=0))
    table, end = np.zeros(len(sizes), int), len(sizes)
    for cut in reversed(cuts):
        end = int(cut[end])
        table[:end] += 1
    table_of_row = table[np.searchsorted(sizes, lengths)]
    return [np.flatnonzero(table_of_row == number) for number in np.unique(table)]

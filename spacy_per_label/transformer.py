"""A transformer as the layer that gives tokens their vectors, for all texts of a batch at a time.

spacy-transformers cuts each text's output out of the batch, aligns it with the tokens in Python, and computes a
gradient for each text. That takes the CPU 40 ms for 1,000 words, longer than a GPU needs for them. Here arrays align
the whole batch, and spans of about the same length share a table, as each row of a table is as long as its longest;
what is computed is the same. The model, its tokenizer, and how it is saved are spacy-transformers'.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spacy.attrs import LENGTH, SPACY
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import ArgsKwargs, Floats2d

TABLES = 4  # for a batch, at most; each launches all kernels of the transformer
PADDING = 0.1  # the share of a batch's cells below which no further table is worth it


@dataclass(frozen=True, slots=True)
class Wordpieces:
    """The wordpieces of texts, span by span, as arrays. The texts "Ann ran" and "Bo" may have

        [CLS]  Ann  ran  [SEP]      numbered 0 to 3
        [CLS]  B    ##o  [SEP]      numbered 4 to 7

    of which the tokens Ann, ran and Bo have those numbered [1, 2, 5, 6], and [1, 1, 2] of them.

    ids, types (np.ndarray): of each wordpiece, its number in the vocabulary and its type; empty if there are no types.
    sizes (np.ndarray): how many wordpieces each span has.
    of_tokens (np.ndarray): the numbers of each token's wordpieces, token by token.
    lengths (np.ndarray): how many of those each token has.
    """

    ids: np.ndarray
    types: np.ndarray
    sizes: np.ndarray
    of_tokens: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.lengths)


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


def _forward(model: Model, texts: Any, is_train: bool) -> tuple[list[Any], Callable]:
    """Return the vectors of the tokens of each text, a Doc, or its Wordpieces."""
    import torch
    from thinc.api import torch2xp, xp2torch

    ops: Any = model.ops
    transformer: Any = model.layers[0]
    if texts and isinstance(texts[0], Wordpieces):
        pieces = join_wordpieces(texts)
    else:
        pieces = find_wordpieces(transformer.tokenizer, transformer.attrs["get_spans"], texts)
    lengths, sizes = pieces.lengths, np.array(list(map(len, texts)), "int32")
    if not len(pieces.of_tokens):  # white space alone
        return ops.unflatten(ops.alloc_f((len(lengths), model.get_dim("nO"))), sizes), lambda gradients: []
    batches, cell_of_piece = make_tables(pieces, transformer.tokenizer)
    wrapper = transformer.layers[0]
    shim, convert = wrapper.shims[0], wrapper.attrs["convert_inputs"]
    # A copy to a GPU waits for all that it computes: so each table is copied before the first one is computed.
    inputs = [convert(wrapper, batch, is_train)[0] for batch in batches]
    with shim.autocast():  # weights are cast to half precision once for all tables
        outputs, backprops = zip(*(shim(table, is_train) for table in inputs), strict=True)
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
            gradient = part.reshape(table.shape).to(table.dtype)
            backprop_table(ArgsKwargs((table,), {"grad_tensors": [gradient]}))
        return []

    return ops.unflatten(vectors, sizes), backprop


def find_wordpieces(tokenizer: Any, get_spans: Callable, docs: Sequence[Doc]) -> Wordpieces:
    """Find the wordpieces of texts. One belongs to every token that it shares a character with.

    get_spans (Callable): cuts texts into the spans that the transformer is given, as spacy-transformers' do.
    RAISES (ValueError): the tokenizer isn't a fast one.
    """
    if not tokenizer.is_fast:
        raise ValueError(f"{tokenizer.name_or_path} has no fast tokenizer, which knows where its wordpieces are")
    texts, owners, before = [], [], 0
    for doc, spans in zip(docs, get_spans(docs), strict=True):
        owner = np.repeat(np.arange(before, before + len(doc)), doc.to_array([LENGTH, SPACY]).sum(axis=1).astype(int))
        texts += [span.text for span in spans]
        owners += [owner[span.start_char : span.end_char] for span in spans]
        before += len(doc)
    encoded = tokenizer(texts or [""], padding=True, return_offsets_mapping=True, return_tensors="np")
    tables = {name: table[: len(texts), : tokenizer.model_max_length] for name, table in encoded.items()}
    there = tables["attention_mask"] > 0
    columns: Any = {name: table[there] for name, table in tables.items()}
    # For each character of each wordpiece: the wordpiece's number, and the place of the token it is in, or behind.
    starts, ends = columns["offset_mapping"].T + np.cumsum([0, *map(len, owners)])[np.nonzero(there)[0]]
    sizes = ends - starts
    number = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(len(number)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    owner_of_char = np.concatenate([np.zeros(0, int), *owners])
    # A pair of a token and a wordpiece, as one number, occurs once for each character that both have.
    token, of_tokens = np.divmod(np.unique(owner_of_char[place] * sizes.size + number), max(1, sizes.size))
    lengths = np.bincount(token, minlength=before).astype("int32")
    types = columns.get("token_type_ids", np.zeros(0, int))
    return Wordpieces(columns["input_ids"], types, there.sum(axis=1), of_tokens, lengths)


def join_wordpieces(texts: Sequence[Wordpieces]) -> Wordpieces:
    """Join the wordpieces of texts to those of a batch."""
    before = np.cumsum([0, *(len(text.ids) for text in texts)])
    parts: Any = (
        (one.ids, one.types, one.sizes, one.of_tokens + first, one.lengths)
        for one, first in zip(texts, before, strict=False)
    )
    return Wordpieces(*map(np.concatenate, zip(*parts, strict=True)))


def make_tables(pieces: Wordpieces, tokenizer: Any) -> tuple[list[Any], np.ndarray]:
    """Put wordpieces into tables with a row for each span.

    RETURNS (tuple): the tables, as the transformer takes them; and the cell of each wordpiece, counted through all.
    """
    from spacy_transformers.data_classes import WordpieceBatch

    batches, cells, first = [], np.zeros(len(pieces.ids), "int32"), 0
    span = np.repeat(np.arange(len(pieces.sizes)), pieces.sizes)
    for rows in split_rows(pieces.sizes):
        sizes, taken = pieces.sizes[rows, None], np.isin(span, rows)
        there = np.arange(sizes.max()) < sizes
        if tokenizer.padding_side == "left":
            there = there[:, ::-1]
        number = np.zeros(there.shape, int)
        number[there] = np.flatnonzero(taken)
        ids = np.where(there, pieces.ids[number], tokenizer.pad_token_id)
        types = np.where(there, pieces.types[number], tokenizer.pad_token_type_id) if len(pieces.types) else None
        batches.append(WordpieceBatch([], ids, there.astype("float32"), [], types))  # type: ignore[arg-type]
        cells[taken] = first + np.flatnonzero(there)
        first += there.size
    return batches, cells


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

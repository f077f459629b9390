"""The model: a hidden layer over a token, its neighbors and its text's mean, and five logits per label."""

from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Linear, Maxout, Model, chain, with_array
from thinc.types import Floats2d

from spacy_per_label.targets import TAGS


@registry.architectures("spacy-per-label.Heads.v2")
def make_heads(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int = 128,
    window_size: int = 1,
    maxout_pieces: int = 2,
    context: bool = True,
) -> Model[list[Doc], list[Floats2d]]:
    """Make a model with five logits per token and label.

    tok2vec (Model): vectors of tokens, of any width.
    hidden_width (int): width of the layer that all heads share.
    window_size (int): its neighbors on each side.
    maxout_pieces (int): its maxout pieces.
    context (bool): add the mean of the text's vectors.
    """
    around: Model = Model("around", _around_forward, attrs={"window_size": window_size, "context": context})
    hidden: Model = Maxout(nO=hidden_width, nP=maxout_pieces, normalize=True, dropout=0.0)
    heads: Model = Linear(nI=hidden_width)
    model: Model[list[Doc], list[Floats2d]] = chain(tok2vec, around, with_array(chain(hidden, heads)))
    model.name = "per_label_heads"
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output", heads)
    return model


def set_labels(model: Model, count: int) -> None:
    """Replace the heads by `count` new ones; `Model.initialize` draws their weights."""
    heads = model.get_ref("output")
    model.replace_node(heads, Linear(nO=TAGS * count, nI=heads.get_dim("nI")))


def _around_forward(model: Model, Xs: list[Any], is_train: bool) -> tuple[list[Any], Callable]:
    """Concatenate each vector, its neighbors' and the mean of the text's windows, for all texts at once."""
    ops: Any = model.ops
    size, context = model.attrs["window_size"], model.attrs["context"]
    sizes = np.array([len(X) for X in Xs], "int32")  # (texts,); a GPU's lists are cut by sizes on the CPU
    lengths = ops.asarray(sizes)
    text_of_token = ops.asarray(np.repeat(np.arange(len(Xs), dtype="int32"), sizes))  # (tokens,)

    def backprop(dYs: list[Any]) -> list[Any]:
        dY = ops.flatten(dYs)  # (tokens, width), or (tokens, 2 width) with context
        if context:  # a mean's gradient goes back to each row as the mean of the rows' gradients
            width = dY.shape[1] // 2
            dY = dY[:, :width] + text_means(ops, ops.as_contig(dY[:, width:]), lengths, text_of_token)[text_of_token]
        return ops.unflatten(ops.backprop_seq2col(dY, size, lengths=lengths), sizes)

    Y = ops.seq2col(ops.flatten(Xs), size, lengths=lengths)  # (tokens, width): (2 size + 1) vectors side by side
    if context:
        Y = ops.xp.concatenate([Y, text_means(ops, Y, lengths, text_of_token)[text_of_token]], axis=1)
    return ops.unflatten(Y, sizes), backprop


def text_means(ops: Any, X: Any, lengths: Any, text_of_token: Any) -> Any:
    """Compute the mean of each text's rows, shape (texts, width); zeros for an empty text.

    A GPU multiplies a matrix of shape (texts, tokens) with the rows: thinc's kernel sums each text in one thread, and
    takes longer for 1,000 tokens than the transformer.

    X (Floats2d): shape (tokens, width).
    lengths, text_of_token (Ints1d): shapes (texts,) and (tokens,).
    """
    if ops.xp is np:
        return ops.reduce_mean(X, lengths)
    shares = (ops.xp.arange(len(lengths), dtype="int32")[:, None] == text_of_token).astype("float32")
    shares /= ops.xp.maximum(lengths, 1)[:, None]
    return ops.gemm(shares, X)

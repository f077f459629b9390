"""The model: a hidden layer that sees a token, its neighbours and its text's mean, and five logits for each label."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Maxout, Model, NumpyOps, chain, glorot_uniform_init, with_array
from thinc.types import Floats2d

from spacy_per_label.targets import TAGS


@registry.architectures("spacy-per-label.Heads.v1")
def make_heads(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int = 128,
    window_size: int = 1,
    maxout_pieces: int = 2,
    context: bool = True,
) -> Model[list[Doc], list[Floats2d]]:
    """Make a model that gives each token five logits per label.

    tok2vec (Model): gives each token a vector, of any width.
    hidden_width (int): of the layer that all heads share.
    window_size (int): neighbours on each side that this layer sees.
    maxout_pieces (int): of this layer.
    context (bool): it sees the mean of the text's vectors as well, and so what kind of text it is.
    """
    around: Model = Model("around", _around_forward, attrs={"window_size": window_size, "context": context})
    hidden: Model = Maxout(nO=hidden_width, nP=maxout_pieces, normalize=True, dropout=0.0)
    output: Model = Model("heads", _heads_forward, init=_heads_init, dims={"nH": hidden_width}, layers=[hidden])
    model: Model[list[Doc], list[Floats2d]] = chain(tok2vec, around, with_array(output))
    model.name = "per_label_heads"
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output", output)
    return model


def _around_forward(model: Model, Xs: list[Any], is_train: bool) -> tuple[list[Any], Callable]:
    """Put its neighbours' vectors, and the mean of the text's windows, beside each vector; all texts at a time.

    A text of a batch has a few arrays of its own on the CPU alone: a GPU is asked as often for one as for many.
    """
    ops: Any = model.ops
    lengths = np.array([len(X) for X in Xs], "int32")
    texts = ops.asarray(np.repeat(np.arange(len(Xs), dtype="int32"), lengths))  # of each token
    means = averaging(ops, lengths)
    to_windows, from_windows = _windows(ops, model.attrs["window_size"], lengths)

    def backprop(dYs: list[Any]) -> list[Any]:
        """Give each vector its own gradient, and its shares of its neighbours' and the mean's."""
        dY = ops.flatten(dYs)
        if model.attrs["context"]:
            width = dY.shape[1] // 2
            dY = dY[:, :width] + means(ops.as_contig(dY[:, width:]))[texts]
        return ops.unflatten(from_windows(dY), lengths)

    Y = to_windows(ops.flatten(Xs))
    if model.attrs["context"]:
        Y = ops.xp.concatenate([Y, means(Y)[texts]], axis=1)
    return ops.unflatten(Y, lengths), backprop


def _windows(ops: Any, size: int, lengths: np.ndarray) -> tuple[Callable, Callable]:
    """Make what puts neighbours' vectors beside each vector, none of another text, and what gives them gradients."""
    if isinstance(ops, NumpyOps):
        return (
            lambda X: ops.seq2col(X, size, lengths=lengths),
            lambda dY: ops.backprop_seq2col(dY, size, lengths=lengths),
        )
    # cupy's kernel would wait for the device to check the lengths: zeros stand before, between and behind the texts.
    number = np.repeat(np.arange(len(lengths), dtype="int32"), lengths)
    rows = ops.asarray(np.arange(len(number), dtype="int32") + size * (number + 1))

    def apart(X: Any) -> Any:
        """Put zeros between the texts."""
        Y = ops.alloc_f((len(number) + size * (len(lengths) + 1), X.shape[1]))
        Y[rows] = X
        return Y

    return lambda X: ops.seq2col(apart(X), size)[rows], lambda dY: ops.backprop_seq2col(apart(dY), size)[rows]


def averaging(ops: Any, lengths: np.ndarray) -> Callable[[Any], Any]:
    """Make what computes the mean of each run of rows, zeros of one that is empty.

    lengths (np.ndarray): of the runs, on the CPU.
    """
    if isinstance(ops, NumpyOps):
        return lambda X: ops.reduce_mean(X, lengths) if len(X) else ops.alloc_f((len(lengths), X.shape[1]))
    # cupy's kernel would wait for the device to check the lengths.
    runs = ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
    divisors = ops.asarray(np.maximum(lengths, 1).astype("float32")[:, None])

    def means(X: Any) -> Any:
        """Compute the means."""
        sums = ops.alloc_f((len(lengths), X.shape[1]))
        ops.scatter_add(sums, runs, X)
        return sums / divisors

    return means


def _heads_init(model: Model, X: Any, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def _heads_forward(model: Model, X: Any, is_train: bool) -> tuple[Any, Callable]:
    """Compute the logits of all labels from the hidden layer that they share."""
    ops: Any = model.ops
    W, b = model.get_param("W"), model.get_param("b")
    H, backprop_hidden = model.layers[0](X, is_train)

    def backprop(dY: Any) -> Any:
        """Give the gradient of the input, and keep those of the weights."""
        model.inc_grad("W", ops.gemm(dY, H, trans1=True))
        model.inc_grad("b", dY.sum(axis=0))
        return backprop_hidden(ops.gemm(dY, W))

    return ops.gemm(H, W, trans2=True) + b, backprop


def set_heads(output: Model, labels: int) -> None:
    """Give so many labels a head with random weights."""
    shape = (TAGS * labels, output.get_dim("nH"))
    output.set_param("W", glorot_uniform_init(output.ops, shape))
    output.set_param("b", output.ops.alloc_f(shape[:1]))


def add_head(output: Model) -> None:
    """Add a head whose weights are zeros, with which nothing is predicted."""
    for name in ("W", "b"):
        there = output.get_param(name)
        new = output.ops.alloc_f((TAGS, *there.shape[1:]))
        output.set_param(name, output.ops.xp.concatenate([there, new]))
        output.set_grad(name, output.ops.alloc_f((len(there) + TAGS, *there.shape[1:])))


def keep_heads(output: Model, numbers: Sequence[int]) -> None:
    """Remove all heads but some."""
    for name in ("W", "b"):
        there: Any = output.get_param(name)
        kept = there.reshape((-1, TAGS, *there.shape[1:]))[list(numbers)]
        output.set_param(name, output.ops.as_contig(kept.reshape((-1, *there.shape[1:]))))

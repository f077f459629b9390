"""BERT's encoder in numpy, with gradients; training and use need no PyTorch.

The wordpieces of all windows are rows of one table without padding; only attention separates windows. The layers follow
Devlin et al., BERT, NAACL 2019; gelu is the approximation by tanh (Hendrycks and Gimpel, Gaussian Error Linear
Units, 2016), with an error below 0.001. Attention has no dropout.

Weights of a layer; matrices have the shape (inputs, outputs):

    qkv_W, qkv_b      queries, keys and values of all heads, side by side
    out_W, out_b      output of attention
    norm1_g, norm1_b  scales and shifts of the first normalization
    up_W, up_b        to the wide layer
    down_W, down_b    from the wide layer
    norm2_g, norm2_b  scales and shifts of the second normalization
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from thinc.api import NumpyOps

from spacy_per_label.windows import Window

ROOT = 0.7978845608  # of 2 / pi
CUBE = 0.044715
CPU = NumpyOps()
Drop = Callable[[np.ndarray], "np.ndarray | None"]  # draws a mask of the shape of an array
Gradients = dict[str, np.ndarray]
Backprop = Callable[[np.ndarray], tuple[np.ndarray, Gradients]]


def encode(
    W: Mapping[str, np.ndarray], attrs: Mapping[str, Any], windows: Sequence[Window], is_train: bool
) -> tuple[np.ndarray, Callable[[np.ndarray], Iterator[tuple[str, np.ndarray]]]]:
    """Compute the vectors of the windows' wordpieces.

    W (Mapping): weights by name; see `Encoder`.
    attrs (Mapping): `layers`, `heads`, `eps` and `first_position` of the Encoder, and `dropout_rate`.
    RETURNS (tuple): vectors, shape (wordpieces, width); backprop, which yields the gradients of layers' weights.
    """
    rate, lengths = attrs["dropout_rate"], np.array([len(window.ids) for window in windows])
    drop: Any = (lambda X: CPU.get_dropout_mask(X.shape, rate) if rate else None) if is_train else None
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths) + attrs["first_position"]  # (wordpieces,)
    X = W["word"][np.concatenate([window.ids for window in windows])] + W["position"][places]  # (wordpieces, width)
    X, _ = normalize(X, W["norm_g"], W["norm_b"], attrs["eps"], False)
    drop_inplace(X, drop)
    backprops: list[Any] = []
    for number in range(attrs["layers"]):
        X, backprop_layer = encode_layer(layer_weights(W, number), X, ends.tolist(), attrs["heads"], attrs["eps"], drop)
        backprops.append(backprop_layer)

    def backprop(dX: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        for number, backprop_layer in reversed([*enumerate(backprops)]):
            dX, gradients = backprop_layer(dX)
            yield from ((f"{number}.{name}", gradient) for name, gradient in gradients.items())

    return X, backprop


def layer_weights(W: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """Return the weights of one layer, without its number in their names."""
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in W.items() if name.startswith(prefix)}


def encode_layer(
    W: Mapping[str, np.ndarray], X: np.ndarray, ends: Sequence[int], heads: int, eps: float, drop: Drop | None
) -> tuple[np.ndarray, Backprop | None]:
    """Compute a layer's output.

    X (np.ndarray): shape (wordpieces, width).
    eps (float): added to variances.
    drop (Callable | None): draws dropout masks in training; None predicts, in less memory.
    RETURNS (tuple): output, of X's shape; in training, backprop, which returns the gradients of X and the weights.
    """
    train = drop is not None
    qkv = X @ W["qkv_W"]  # (wordpieces, 3 * width)
    qkv += W["qkv_b"]
    context, attention = attend(qkv, ends, heads, train)  # (wordpieces, width), for each window (heads, pieces, pieces)
    attended = context @ W["out_W"]  # (wordpieces, width)
    attended += W["out_b"]
    mask1 = drop_inplace(attended, drop)
    attended += X
    middle, back1 = normalize(attended, W["norm1_g"], W["norm1_b"], eps, train)  # (wordpieces, width)
    wide = middle @ W["up_W"]  # (wordpieces, wide)
    wide += W["up_b"]
    active, slope = gelu(wide, train)  # both (wordpieces, wide)
    out = active @ W["down_W"]  # (wordpieces, width)
    out += W["down_b"]
    mask2 = drop_inplace(out, drop)
    out += middle
    Y, back2 = normalize(out, W["norm2_g"], W["norm2_b"], eps, train)  # (wordpieces, width)
    if not train:
        return Y, None

    def backprop(dY: np.ndarray) -> tuple[np.ndarray, Gradients]:
        dW: Gradients = {}
        dout, dW["norm2_g"], dW["norm2_b"] = back2(dY)  # (wordpieces, width), (width,), (width,)
        dmiddle, ddown = dout, dout if mask2 is None else dout * mask2
        dW["down_W"], dW["down_b"] = active.T @ ddown, ddown.sum(axis=0)
        dwide = ddown @ W["down_W"].T  # (wordpieces, wide)
        dwide *= slope
        dW["up_W"], dW["up_b"] = middle.T @ dwide, dwide.sum(axis=0)
        dmiddle = dmiddle + dwide @ W["up_W"].T  # (wordpieces, width)
        dX, dW["norm1_g"], dW["norm1_b"] = back1(dmiddle)
        dattended = dX if mask1 is None else dX * mask1
        dW["out_W"], dW["out_b"] = context.T @ dattended, dattended.sum(axis=0)
        dqkv = attend_backward(dattended @ W["out_W"].T, qkv, attention, ends, heads)  # (wordpieces, 3 * width)
        dW["qkv_W"], dW["qkv_b"] = X.T @ dqkv, dqkv.sum(axis=0)
        return dX + dqkv @ W["qkv_W"].T, dW

    return Y, backprop


def drop_inplace(X: np.ndarray, drop: Drop | None) -> np.ndarray | None:
    """Apply a dropout mask in place, and return it, if any."""
    mask = drop(X) if drop else None
    if mask is not None:
        X *= mask
    return mask


def attend(qkv: np.ndarray, ends: Sequence[int], heads: int, train: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Compute multi-head self-attention within each window.

    qkv (np.ndarray): queries, keys and values, shape (wordpieces, 3 * width).
    RETURNS (tuple): output, shape (wordpieces, width); in training, each window's attention, shape (heads, pieces,
        pieces).
    """
    width, attentions, start = qkv.shape[1] // 3, [], 0
    out = np.empty((len(qkv), width), qkv.dtype)
    for end in ends:
        query, key, value = split_heads(qkv[start:end], heads)  # (heads, pieces, width / heads)
        attention = query @ key.transpose(0, 2, 1)  # (heads, pieces, pieces)
        attention *= (width // heads) ** -0.5
        attention -= attention.max(axis=-1, keepdims=True)  # or exp would overflow
        np.exp(attention, out=attention)
        attention /= attention.sum(axis=-1, keepdims=True)
        split_heads(out[start:end], heads, 1)[0][...] = attention @ value
        if train:
            attentions.append(attention)
        start = end
    return out, attentions


def attend_backward(
    dout: np.ndarray, qkv: np.ndarray, attentions: Sequence[np.ndarray], ends: Sequence[int], heads: int
) -> np.ndarray:
    """Compute the gradient of queries, keys and values; see `attend`."""
    dqkv, start = np.empty_like(qkv), 0  # (wordpieces, 3 * width)
    scale = (dout.shape[1] // heads) ** -0.5
    for end, attention in zip(ends, attentions, strict=True):
        query, key, value = split_heads(qkv[start:end], heads)  # (heads, pieces, width / heads)
        dquery, dkey, dvalue = split_heads(dqkv[start:end], heads)  # views, which are written to
        (dsums,) = split_heads(dout[start:end], heads, 1)
        dvalue[...] = attention.transpose(0, 2, 1) @ dsums
        dattention = dsums @ value.transpose(0, 2, 1)  # (heads, pieces, pieces)
        dattention -= np.einsum("hpq,hpq->hp", dattention, attention)[..., None]  # of the softmax
        dattention *= attention
        dattention *= scale
        dquery[...] = dattention @ key
        dkey[...] = dattention.transpose(0, 2, 1) @ query
        start = end
    return dqkv


def split_heads(X: np.ndarray, heads: int, parts: int = 3) -> list[np.ndarray]:
    """View each part of a table, shape (wordpieces, parts * width), as (heads, wordpieces, width / heads)."""
    return list(X.reshape(len(X), parts, heads, -1).transpose(1, 2, 0, 3))


def normalize(
    X: np.ndarray, scales: np.ndarray, shifts: np.ndarray, eps: float, train: bool
) -> tuple[np.ndarray, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Normalize rows to mean 0 and variance 1, then scale and shift; overwrite X.

    X (np.ndarray): shape (rows, width).
    scales, shifts (np.ndarray): shape (width,).
    RETURNS (tuple): rows; in training, backprop, which returns the gradients of X, scales and shifts.
    """
    X -= X.mean(axis=1, keepdims=True)
    deviations = np.sqrt(np.einsum("ij,ij->i", X, X)[:, None] / X.shape[1] + eps)  # (rows, 1)
    X /= deviations
    Y = X * scales if train else np.multiply(X, scales, out=X)
    Y += shifts

    def backprop(dY: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        dX = dY * scales
        dX -= dX.mean(axis=1, keepdims=True) + X * (np.einsum("ij,ij->i", dX, X)[:, None] / X.shape[1])
        dX /= deviations
        return dX, np.einsum("ij,ij->j", dY, X), dY.sum(axis=0)  # (rows, width), (width,), (width,)

    return Y, backprop


def gelu(X: np.ndarray, train: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Compute gelu, and in training its slope; prediction overwrites X."""
    square = X * X
    tanh = square * CUBE
    tanh += 1
    tanh *= X
    tanh *= ROOT
    np.tanh(tanh, out=tanh)
    if not train:
        tanh += 1
        X *= 0.5
        X *= tanh
        return X, None
    square *= 3 * CUBE * ROOT
    square += ROOT
    square *= X
    square *= 1 - tanh * tanh
    tanh += 1
    square += tanh
    square *= 0.5
    tanh *= X
    tanh *= 0.5
    return tanh, square

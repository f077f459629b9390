"""The loss: cross-entropy of the known tags of each label, and -log(1 - p) of each rejected span."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from thinc.api import NumpyOps

from spacy_per_label.targets import TAGS, UNKNOWN, tags_of

EPSILON = 1e-6
NUMPY = NumpyOps()

Arrays = Any  # numpy's or cupy's


def log_softmax(logits: Arrays, xp: Any = np) -> Arrays:
    """Compute the log-softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)  # no exponential overflows
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))


def loss_and_gradient(
    logits: Arrays, tags: np.ndarray, rejected: Sequence[tuple[int, int, int]], ops: Any = NUMPY
) -> tuple[float, Arrays]:
    """Compute the loss of tags and rejected spans, and its gradient with respect to the logits.

    One host-device sync per batch, however many spans are rejected.

    logits (Arrays): shape (tokens, labels, 5).
    tags (np.ndarray): shape (tokens, labels); UNKNOWN has no loss and no gradient.
    rejected (Sequence): non-entities, as (start, end, label's number).
    ops (Any): thinc's, of the logits' device.
    """
    log_p = log_softmax(logits, ops.xp)  # (tokens, labels, 5)
    known = tags != UNKNOWN  # (tokens, labels)
    # Places in the flat log_p: the known tag of a token and label; all five tags of a rejected span's token.
    of_known = np.flatnonzero(known) * TAGS + tags[known]  # (known,)
    span, token, label, tag = rejected_tags(rejected)  # each (rows,)
    of_rejected = (token * tags.shape[1] + label)[:, None] * TAGS + np.arange(TAGS)  # (rows, 5)
    cells = ops.asarray(np.concatenate([of_known, of_rejected.ravel()]))  # (known + 5 rows,)
    log_p_of_cells = ops.to_numpy(log_p.reshape(-1)[cells])  # the one copy from the device
    loss = -log_p_of_cells[: len(of_known)].sum(dtype="float64")
    # The gradient is softmax - 1 at a known tag, softmax at the other tags of its label, and 0 where nothing is known.
    added, rows = np.full(len(of_known), -1, log_p.dtype), log_p_of_cells[len(of_known) :].reshape(-1, TAGS)
    rejected_loss, added_rows = rejected_spans_loss(rows, span, tag)  # added_rows: (rows, 5)
    # In place, because an array of this shape may be a training's largest.
    gradient = ops.xp.exp(log_p, out=log_p)  # (tokens, labels, 5)
    gradient *= ops.asarray(known[:, :, None])
    ops.scatter_add(gradient.reshape(-1), cells, ops.asarray(np.concatenate([added, added_rows.ravel()])))
    return float(loss + rejected_loss), gradient.astype(logits.dtype, copy=False)


def rejected_spans_loss(log_p: np.ndarray, span: np.ndarray, tag: np.ndarray) -> tuple[float, np.ndarray]:
    """Compute -log(1 - p) of rejected spans, where p is the product of their tags' probabilities, and its gradient.

    log_p (np.ndarray): shape (rows, 5), a row for each of their tokens.
    span, tag (np.ndarray): shape (rows,): span's number, and the token's tag in the span.
    RETURNS (tuple): the loss, and p / (1 - p) times the gradient of log(p), shape (rows, 5).
    """
    sums = np.zeros(span.max(initial=-1) + 1, log_p.dtype)  # (spans,)
    np.add.at(sums, span, log_p[np.arange(len(tag)), tag])
    p = np.minimum(np.exp(sums).astype("float64"), 1 - EPSILON)  # at 1, the loss would be infinite
    weights = (p / (1 - p)).astype(log_p.dtype)[span, None]  # (rows, 1)
    return -np.log1p(-p).sum(), weights * ((np.arange(TAGS) == tag[:, None]) - np.exp(log_p))


def rejected_tags(rejected: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """List the tags of rejected spans: span's number, token, label and tag, shape (4, rows)."""
    columns = [
        (number, token, label, tag)
        for number, (start, end, label) in enumerate(rejected)
        for token, tag in enumerate(tags_of(end - start), start)
    ]
    return np.array(columns, int).reshape(-1, 4).T

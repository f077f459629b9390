"""The loss: cross-entropy of the known tags of each label, and -log(1 - p) of each rejected span."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from thinc.api import NumpyOps

from spacy_per_label.targets import TAGS, UNKNOWN, tags_of

TINY = 1e-6
NUMPY = NumpyOps()

Arrays = Any  # numpy's or cupy's


def log_softmax(logits: Arrays, xp: Any = np) -> Arrays:
    """Compute the logarithm of the softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))


def loss_and_gradient(
    logits: Arrays, tags: np.ndarray, rejected: Sequence[tuple[int, int, int]], ops: Any = NUMPY
) -> tuple[float, Arrays]:
    """Compute the loss of each label's tags and of rejected spans, and its gradient with respect to the logits.

    One host-device sync per batch, however many spans are rejected.

    logits (Arrays): of the shape (tokens, labels, 5).
    tags (np.ndarray): of the shape (tokens, labels); UNKNOWN has no loss and no gradient.
    rejected (Sequence): spans that aren't entities of a label, as (start, end, label's number).
    ops (Any): thinc's, of the logits' device.
    """
    log_p = log_softmax(logits, ops.xp)
    known = tags != UNKNOWN
    of_known = np.flatnonzero(known) * TAGS + tags[known]
    span, token, label, tag = rejected_tags(rejected)
    of_rejected = (token * tags.shape[1] + label)[:, None] * TAGS + np.arange(TAGS)
    cells = ops.asarray(np.concatenate([of_known, of_rejected.ravel()]))
    taken = ops.to_numpy(log_p.reshape(-1)[cells])
    loss = -taken[: len(of_known)].sum(dtype="float64")
    added = np.full(len(of_known), -1, log_p.dtype)  # to the softmax
    more, added_rows = rejected_spans_loss(taken[len(of_known) :].reshape(-1, TAGS), span, tag)
    # In place, since an array of this shape may be the largest of all of a training's.
    gradient = ops.xp.exp(log_p, out=log_p)
    gradient *= ops.asarray(known[:, :, None])
    ops.scatter_add(gradient.reshape(-1), cells, ops.asarray(np.concatenate([added, added_rows.ravel()])))
    return float(loss + more), gradient.astype(logits.dtype, copy=False)


def rejected_spans_loss(log_p: np.ndarray, span: np.ndarray, tag: np.ndarray) -> tuple[float, np.ndarray]:
    """Compute -log(1 - p) of rejected spans, where p is the product of their tags' probabilities, and its gradient.

    log_p (np.ndarray): a row of five for each of their tokens.
    span, tag (np.ndarray): of each row, the span's number, and the tag that the span would give the token.
    RETURNS (tuple): the loss, and p / (1 - p) times the gradient of log(p), row by row.
    """
    sums = np.zeros(span.max(initial=-1) + 1, log_p.dtype)
    np.add.at(sums, span, log_p[np.arange(len(tag)), tag])
    p = np.minimum(np.exp(sums).astype("float64"), 1 - TINY)
    weights = (p / (1 - p)).astype(log_p.dtype)[span, None]
    return -np.log1p(-p).sum(), weights * ((np.arange(TAGS) == tag[:, None]) - np.exp(log_p))


def rejected_tags(rejected: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """List the tags of rejected spans: four rows, the span's number, token, label and tag."""
    columns = [
        (number, token, label, tag)
        for number, (start, end, label) in enumerate(rejected)
        for token, tag in enumerate(tags_of(end - start), start)
    ]
    return np.array(columns, int).reshape(-1, 4).T
